# SPDX-License-Identifier: Apache-2.0
"""Virtual time: the event loop's clock leaps from one deadline to the next, and wakes its sleepers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from heapq import heappop
from math import inf
from typing import TYPE_CHECKING, Any, cast

import trio

from pumice.actors.system.settings import SystemSettings
from pumice.runtime.bells import Bells, RungAlarm

if TYPE_CHECKING:
    from collections.abc import Callable

    import anyio


class LeapingClock(Bells, trio.abc.Clock):
    """A clock that stands still while any task can run, and leaps to the next deadline when all tasks wait.

    So does trio's MockClock with an `autojump_threshold` of 0, but it lets the loop turn once more before, in case that
    something comes from outside. `stuck_s`: how long the loop may sleep where no task has a deadline (seconds).
    """

    def __init__(self, stuck_s: float = inf) -> None:
        super().__init__()
        self._stuck_s = stuck_s

    def start_clock(self) -> None:
        """Start the clock, which stands still."""

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Advance the clock to the next bell or deadline, for no task can run; return 0: the loop need not sleep."""
        bells = self._bells  # as `next_due` and `go_to` do, without their calls: this is each turn of the loop
        while bells and bells[0][2].is_set():
            heappop(bells)
        following = min(deadline, bells[0][0]) if bells else deadline
        if following == inf:
            return self._stuck_s
        if self._now < following:
            self._now = following
        while bells and bells[0][0] <= self._now:
            # All bells of this moment before any task runs: as with trio's own deadlines.
            heappop(bells)[2].set()
        return 0.0


class Bell(RungAlarm):
    """An alarm that the clock itself rings, at a quarter of the cost of a scope that is cancelled at its deadline.

    Its events are trio's own, which anyio's are only a shell of: one is made for every message that is waited for.
    """

    def __init__(self, clock: LeapingClock) -> None:
        super().__init__(clock)
        self.event = cast("Callable[[], anyio.Event]", trio.Event)


def leaping(settings: SystemSettings) -> tuple[SystemSettings, dict[str, Any]]:
    """Return a system's settings for virtual time, and what anyio is to run trio with."""
    clock = LeapingClock()
    return replace(settings, alarm=partial(Bell, clock), inline_delivery=True), {"clock": clock}
