"""Which request held the event loop longest: everybody else waited for it. In seconds of the thread's processor."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Generator
from time import thread_time
from typing import Any, Final, TypeVar

from config.printable import printable

R = TypeVar("R")

SHOWN: Final = 200
"""Letters of a request that are told."""


class Longest:
    """The longest step of any request since the beginning, or since `forget`; `request` says whose it was."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.request = ""

    def note(self, began: float, what: str, about: str) -> None:
        """A step that began at this `thread_time` ends now."""
        seconds = thread_time() - began
        if seconds > self.seconds:
            self.seconds = seconds
            self.request = printable(f"{what} {about[:SHOWN]}")

    def forget(self) -> None:
        """Begin again."""
        self.seconds, self.request = 0.0, ""

    def timed(self, work: Coroutine[Any, Any, R], what: str, about: str) -> Awaitable[R]:
        """Does the work; each stretch of it between two waits is a step."""
        return _Timed(self, work, what, about)


class _Timed(Awaitable[R]):
    def __init__(self, longest: Longest, work: Coroutine[Any, Any, R], what: str, about: str) -> None:
        self._longest, self._work, self._what, self._about = longest, work, what, about

    def __await__(self) -> Generator[Any, Any, R]:
        value: Any = None
        error: BaseException | None = None
        while True:
            began = thread_time()
            try:
                waiting = self._work.send(value) if error is None else self._work.throw(error)
            except StopIteration as done:
                found: R = done.value
                return found
            finally:
                self._longest.note(began, self._what, self._about)
            value = error = None
            try:
                value = yield waiting
            except BaseException as thrown:  # noqa: BLE001 - it is for the work, a cancellation too
                error = thrown
