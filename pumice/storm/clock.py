"""The clocks of a storm: the event loop's, which does not wait, and the wall's, which follows it and may jump."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Final

import anyio
import trio
from trio.testing import MockClock

from actors.runtime.alarm import Alarm

START: Final = 1_700_000_000.0


class LeapingClock(trio.abc.Clock):
    """trio's MockClock: it stands still while anybody can run, and leaps to the next deadline when everybody waits.

    It leaps so by itself with an `autojump_threshold` of 0, but lets the loop turn once more before, in case that
    something comes from outside. Into a storm nothing does.
    """

    def __init__(self) -> None:
        self._time = MockClock()
        self._now = self._time.current_time()  # which stands between two leaps, and is asked for at every turn
        self._bells: list[tuple[float, int, trio.Event | anyio.Event]] = []
        self._numbers = count()

    def start_clock(self) -> None:
        """It stands."""

    def current_time(self) -> float:
        """Virtual seconds since the beginning."""
        return self._now

    def ring(self, bell: trio.Event | anyio.Event, time: float) -> None:
        """Set `bell` at that time; one that was set before counts no more."""
        if time <= self._now:
            bell.set()
        elif time < inf:
            heappush(self._bells, (time, next(self._numbers), bell))

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """What the loop asks for when nobody can run: it need not sleep, the deadline has come."""
        bells = self._bells
        while bells and bells[0][2].is_set():
            heappop(bells)
        following = min(deadline, bells[0][0]) if bells else deadline
        if self._now < following < inf:
            self._time.jump(following - self._now)
            self._now = self._time.current_time()
        while bells and bells[0][0] <= self._now:
            heappop(bells)[2].set()
        return 0.0


class Bell(Alarm):
    """An alarm that the clock itself rings, at a quarter of the cost of a scope that is cancelled at its deadline."""

    def __init__(self, clock: LeapingClock) -> None:
        super().__init__()
        self._clock = clock
        self._bell: trio.Event | None = None
        self._due = inf

    def now(self) -> float:
        """What time it is."""
        return self._clock.current_time()

    async def sleep_until(self, time: float) -> float:
        """Sleep until then, or until an earlier time that is set meanwhile. Returns the one that has come."""
        bell = self._bell = trio.Event()
        self._due = time
        self._clock.ring(bell, time)
        try:
            await bell.wait()
        finally:
            bell.set()
        return self._due

    async def wait(self, event: anyio.Event, until: float) -> None:
        """Wait for an event that is the caller's own, at most until then: it is set at that time."""
        self._clock.ring(event, until)
        await event.wait()

    def no_later_than(self, time: float) -> None:
        """Have the sleeper wake then, unless it does so before."""
        if self._bell is not None and time < self._due:
            self._due = time
            self._clock.ring(self._bell, time)


@dataclass
class JumpingClock:
    """trio's time since the first look, and all jumps so far (seconds, either way), after START."""

    offset_s: float = START
    _began: float = 0.0
    _elapsed: Callable[[], float] | None = None

    def now(self) -> float:
        """Seconds since the epoch."""
        if self._elapsed is None:
            self._elapsed = trio.lowlevel.current_clock().current_time
            self._began = self._elapsed()
        return self._elapsed() - self._began + self.offset_s

    def jump(self, seconds: float) -> None:
        """Be so much later, or earlier, from now on."""
        self.offset_s += seconds
