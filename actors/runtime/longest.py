# SPDX-License-Identifier: Apache-2.0
"""The slowest request since the start: the one that blocked the event loop longest, in seconds of the thread's
processor.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from time import perf_counter, thread_time
from typing import Any, Final, TypeVar

from pumice.config.printable import printable

R = TypeVar("R")

SHOWN: Final = 200
"""Letters of a request that are shown."""
FRESH_S: Final = 0.005
"""So old may a reading of the processor's clock be when a step begins: of other steps so much may be counted with it.
A watch that wakes does little, and two readings would be a sixth of what hundreds of watches cost the loop.
"""


class Longest:
    """The longest step of any request since the start, or since `forget`; `request` names it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.request = ""
        self._processor, self._wall = thread_time(), perf_counter()

    def begun(self) -> float:
        """Begin a step, and return the wall time for `ended`."""
        wall = perf_counter()
        if wall - self._wall > FRESH_S:
            self._processor, self._wall = thread_time(), wall
        return wall

    def ended(self, began: float, what: str, about: str) -> None:
        """End the step that began then."""
        wall = perf_counter()
        # by the wall's time it cannot be longer than this: the processor's clock, ten times as dear, is read only for a
        # candidate
        if wall - began > self.seconds:
            processor = thread_time()
            self.took(min(wall - began, processor - self._processor), what, about)
            self._processor, self._wall = processor, perf_counter()

    def took(self, seconds: float, what: str, about: str) -> None:
        """Note that a step has taken so long."""
        if seconds > self.seconds:
            self.seconds = seconds
            self.request = printable(f"{what} {about[:SHOWN]}")

    def forget(self) -> None:
        """Begin again."""
        self.seconds, self.request = 0.0, ""

    def timed(self, work: Coroutine[Any, Any, R], what: str, about: str) -> Awaitable[R]:
        """Run the work; each stretch of it between two waits is a step."""
        return _Timed(self, work, what, about)


class Laps:
    """Steps that follow each other without a wait.

    The processor's clock is a system call, ten times as dear as the wall's, and twice a request 2 % of the whole
    system's time. A step takes no more of the processor than of the wall's time, nor than all steps since the
    processor's clock was last read: so that is read only when by the wall a step would be the longest.
    """

    def __init__(self, longest: Longest) -> None:
        self._longest = longest
        self.begin()

    def begin(self) -> None:
        """Begin the first step now."""
        self._processor, self._wall = thread_time(), perf_counter()

    def lap(self, what: str, about: Callable[[], str]) -> None:
        """End a step now, and begin the next. `about` is only called for the longest."""
        now = perf_counter()
        if now - self._wall > self._longest.seconds:
            processor = thread_time()
            self._longest.took(min(now - self._wall, processor - self._processor), what, about())
            # `about` took time of its own, which belongs to no step
            self._processor, now = processor, perf_counter()
        self._wall = now


class _Timed(Awaitable[R]):
    def __init__(self, longest: Longest, work: Coroutine[Any, Any, R], what: str, about: str) -> None:
        self._longest, self._work, self._what, self._about = longest, work, what, about

    def __await__(self) -> Generator[Any, Any, R]:
        value: Any = None
        error: BaseException | None = None
        while True:
            began = self._longest.begun()
            try:
                waiting = self._work.send(value) if error is None else self._work.throw(error)
            except StopIteration as done:
                found: R = done.value
                return found
            finally:
                self._longest.ended(began, self._what, self._about)
                value = error = None  # an error that holds this frame, which holds it, would be left to the collector
            try:
                value = yield waiting
            except BaseException as thrown:  # noqa: BLE001 - it is for the work, a cancellation too
                error = thrown
