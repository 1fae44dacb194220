"""Virtual time: the event loop's clock leaps from one deadline to the next, and wakes its sleepers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
import trio

from pumice.actors.runtime.clock import Alarm
from pumice.actors.system.settings import SystemSettings

if TYPE_CHECKING:
    from collections.abc import Callable

FEW: Final = 1000
"""Bells that are kept, rung or not."""


class LeapingClock(trio.abc.Clock):
    """A clock that stands still while any task can run, and leaps to the next deadline when all tasks wait.

    So does trio's MockClock with an `autojump_threshold` of 0, but it lets the loop turn once more before, in case that
    something comes from outside. `stuck_s`: how long the loop may sleep where no task has a deadline (seconds).
    """

    def __init__(self, stuck_s: float = inf) -> None:
        self._stuck_s = stuck_s
        self._now = 0.0
        self._bells: list[tuple[float, int, trio.Event | anyio.Event]] = []
        self._numbers = count()
        self._most = FEW

    def start_clock(self) -> None:
        """Start the clock, which stands still."""

    def current_time(self) -> float:
        """Return virtual seconds since the beginning."""
        return self._now

    def ring(self, bell: trio.Event | anyio.Event, time: float) -> None:
        """Set `bell` for that time, in place of an earlier time."""
        if time <= self._now:
            bell.set()
        elif time < inf:
            heappush(self._bells, (time, next(self._numbers), bell))
            if len(self._bells) > self._most:
                self._forget_rung()

    def _forget_rung(self) -> None:
        """Forget rung bells: most bells are set long before their time."""
        self._bells = [each for each in self._bells if not each[2].is_set()]
        heapify(self._bells)
        self._most = max(FEW, 2 * len(self._bells))

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Advance the clock to the next bell or deadline, since no task can run; return 0: the loop need not sleep."""
        bells = self._bells
        while bells and bells[0][2].is_set():
            heappop(bells)
        following = min(deadline, bells[0][0]) if bells else deadline
        if following == inf:
            return self._stuck_s
        if self._now < following:
            self._now = following
        while bells and bells[0][0] <= self._now:
            heappop(bells)[2].set()
        return 0.0


class Bell(Alarm):
    """An alarm that the clock itself rings, at a quarter of the cost of a scope that is cancelled at its deadline.

    Its events are trio's own, which anyio's are only a shell of: one is made for every message that is waited for.
    """

    def __init__(self, clock: LeapingClock) -> None:
        super().__init__()
        self.event = cast("Callable[[], anyio.Event]", trio.Event)
        self._clock = clock
        self._bell: trio.Event | None = None
        self._due = inf

    def now(self) -> float:
        """Return the time."""
        return self._clock.current_time()

    async def sleep_until(self, time: float) -> float:
        """Sleep until then, or until an earlier time that is set meanwhile, and return the time that has come."""
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
        """Wake the sleeper then, unless it wakes earlier."""
        if self._bell is not None and time < self._due:
            self._due = time
            self._clock.ring(self._bell, time)


def leaping(settings: SystemSettings) -> tuple[SystemSettings, dict[str, Any]]:
    """Return a system's settings for virtual time, and what anyio is to run trio with."""
    clock = LeapingClock()
    return replace(settings, alarm=partial(Bell, clock), inline_delivery=True), {"clock": clock}
