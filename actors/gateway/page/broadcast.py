# SPDX-License-Identifier: Apache-2.0
"""Broadcast of the state to all open pages: read once, encoded once, at most four times a second.

Nothing is read while no page listens. What a look costs the process is rested for: until it has worked a hundred times
as long, but no longer than three seconds, unless that were more than a fiftieth of the event loop. The first picture is
made once for who comes. Who does not read falls behind and is shown everything anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from time import perf_counter, process_time, thread_time
from typing import TYPE_CHECKING, Final

import anyio
import numpy as np

from pumice.actors.gateway.page import frames
from pumice.actors.runtime.level_signal import LevelSignal
from pumice.actors.runtime.mailbox import ask_again
from pumice.core.messages.boards import BoardRead, ReadBoard, ReadRecent, RecentRead
from pumice.core.messages.commands import TellQueues
from pumice.core.objects.metadata import Object

if TYPE_CHECKING:
    import numpy.typing as npt

    from pumice.actors.system.ports import CachePort, MetricsPort, RunnerPort
    from pumice.core.messages.boards import BoardLayout
    from pumice.core.messages.events import CycleMeasured
    from pumice.core.messages.queue_tables import QueuesMeasured

PERIOD_S: Final = 0.25
QUEUES_S: Final = 2.0
"""Queues' amounts are made for us by the session runner: not more often than that."""
LATEST_S: Final = 3.0
"""So old may a picture be, as long as a fiftieth of the event loop makes newer ones."""
REST: Final = 100.0
"""Of so many seconds of work one is for pages."""
HOPS_S: Final = 1e-3
"""A look's turns of other actors and its way to a page, which are not measured one by one."""
LEAST_REST: Final = 50.0
"""Of every so many seconds one is spent on pages at most, however large the cluster is."""
LEAST_S: Final = 1e-3
KEPT: Final = 32
"""Number of events that a page may be behind."""
CYCLES: Final = 240


@dataclass
class ToldPages:
    """State that the open pages have received."""

    layout: BoardLayout | None = None
    read: BoardRead = field(default_factory=lambda: BoardRead(-1, -1))
    amounts: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros((4, 0, 0)))
    cycles: deque[Object] = field(default_factory=lambda: deque[Object](maxlen=CYCLES))
    queues: Object = field(default_factory=lambda: Object(queues={}, cards={}))


class ProcessWork:
    """Measure of the load of this process."""

    def __init__(self) -> None:
        self._at, self._worked = perf_counter(), process_time()

    def busy(self) -> float:
        """Return seconds of processors a second, since this was asked last."""
        at, worked = perf_counter(), process_time()
        found = (worked - self._worked) / max(at - self._at, LEAST_S)
        self._at, self._worked = at, worked
        return found


def rest_s(spent: float, busy: float) -> float:
    """Return seconds to rest for so many that were spent, where the process works `busy` seconds a second."""
    # At most 1: several processors at work make the one event loop no faster.
    worked = REST * spent / min(max(busy, LEAST_S), 1.0)
    return max(PERIOD_S, LEAST_REST * spent, min(LATEST_S, worked))


class Broadcast:
    """Sends the state to pages. `cache` and `runner` are None where no scheduler runs: the page has no board then."""

    def __init__(self, cache: CachePort | None, metrics: MetricsPort, runner: RunnerPort | None) -> None:
        self._cache, self._metrics, self._runner = cache, metrics, runner
        self._queues_due = -inf
        self._queues_old = True  # something has been since they were asked for
        self._somebody = anyio.Event()
        self._listening = 0
        self._shown = ToldPages()
        self._events: deque[bytes] = deque(maxlen=KEPT)
        self._whole: tuple[int, bytes] = (-1, b"")
        self._work = ProcessWork()
        self.news = LevelSignal()

    @contextmanager
    def listening(self) -> Generator[None]:
        """Count one more page, until the block ends."""
        self._listening += 1
        self._somebody.set()
        try:
            yield
        finally:
            self._listening -= 1

    async def keep(self) -> None:
        """Look at the system while pages are connected, until cancelled."""
        while True:
            if not self._listening:
                self._somebody = anyio.Event()
                # The next viewer is shown everything anew; keeping up without viewers would slow the cycles.
                self._shown, self._whole, self._queues_old = ToldPages(), (-1, b""), True
                await self._somebody.wait()
            first = self._shown.layout is None
            spent = await self._look()
            await anyio.sleep(rest_s(0.0 if first else spent, self._work.busy()))

    async def after(self, position: int) -> tuple[int, bytes]:
        """Wait for events after a position (0: everything), and return the new position and the events."""
        newest = await self.news.wait_beyond(position)
        behind = newest - position
        # Events that a page has missed are gone.
        if not position or behind > len(self._events):
            return newest, self._everything(newest)
        return newest, b"".join(list(self._events)[-behind:])

    async def _look(self) -> float:
        """Read, tell, and say how many seconds of processors that took."""
        shown, told, seconds = self._shown, list[bytes](), 0.0
        read = None
        if self._cache is not None:
            read = await ask_again(self._cache, ReadBoard(shown.read.version, shown.read.layout_version))
        changed = isinstance(read, BoardRead) and read.version != shown.read.version
        self._queues_old |= changed
        queues_asked = await self._queues_told()
        recent = await ask_again(self._metrics, ReadRecent(shown.cycles[-1]["cycle"] if shown.cycles else 0))
        # Of this thread alone: other threads do not work for pages.
        began = thread_time()
        if isinstance(read, BoardRead) and changed:
            told.append(self._board(read))
            seconds = read.seconds
        if isinstance(recent, RecentRead):
            if recent.cycles:
                told.append(self._cycles(recent.cycles))
            if queues_asked and recent.queues is not None:
                told.append(self._queues(recent.queues))
        self._events.extend(told)
        # 1 at least: a page that opens waits beyond 0, and gets its first picture even when nothing happens.
        self.news.raise_to(max(1, self.news.value + len(told)))
        return thread_time() - began + seconds + (HOPS_S if told else 0.0)

    async def _queues_told(self) -> bool:
        """Have the runner report queues, which it does only on request: when a cycle has run since, and at most every
        few seconds.
        """
        now = anyio.current_time()
        if self._runner is None or not self._queues_old or now < self._queues_due:
            return False
        self._queues_due, self._queues_old = now + QUEUES_S, False
        await ask_again(self._runner, TellQueues())
        return True

    def _board(self, read: BoardRead) -> bytes:
        shown = self._shown
        layout = read.layout or shown.layout
        assert layout is not None
        after = read.columns(layout)
        # Other nodes or resources give the arrays another shape: a change of them could not be told.
        if read.layout is not None or after.shape != shown.amounts.shape:
            found = frames.event("board", frames.whole(layout, after, read))
        else:
            found = frames.event("change", frames.change(shown.amounts, after, read))
        shown.layout, shown.read, shown.amounts = layout, read, after
        return found

    def _cycles(self, newest: Sequence[CycleMeasured]) -> bytes:
        cycles = [frames.cycle(each) for each in newest]
        self._shown.cycles.extend(cycles)
        self._queues_old = True
        return frames.event("cycles", {"cycles": cycles})

    def _queues(self, measured: QueuesMeasured) -> bytes:
        self._shown.queues = {"queues": frames.queues(measured), "cards": frames.cards(measured.cards)}
        return frames.event("queues", self._shown.queues)

    def _everything(self, newest: int) -> bytes:
        """Return all events for a new page: encoded once for all pages that come between two looks."""
        if self._whole[0] != newest:
            shown, told = self._shown, list[bytes]()
            if shown.layout is not None:
                told.append(frames.event("board", frames.whole(shown.layout, shown.amounts, shown.read)))
            told.append(frames.event("cycles", {"cycles": list(shown.cycles), "anew": True}))
            told.append(frames.event("queues", shown.queues))
            self._whole = (newest, b"".join(told))
        return self._whole[1]
