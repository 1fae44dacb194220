# SPDX-License-Identifier: Apache-2.0
"""Clocks and alarms: the wall clock, the machine's or the event loop's, and sleeping until a time that may be moved."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

import anyio

from pumice.cluster.timers import moment

# --- Alarms

LEAST_S: Final = 1e-6
STOOD_STILL_S: Final = 1.0
"""A wake-up this late means that the whole process was stopped (SIGSTOP, a paused machine)."""


class Alarm:
    """An alarm for one sleeping task. Times are the event loop's, in seconds."""

    def __init__(self) -> None:
        self._sleep: anyio.CancelScope | None = None  # to make one takes an event loop
        self._scope: type[anyio.CancelScope] = anyio.CancelScope  # then the event loop's own, which need not be found
        self.event: Callable[[], anyio.Event] = anyio.Event
        """Return a new, unset event for a waiter in this event loop."""
        self._never = anyio.Event()  # waiting for it sets no other deadline, as sleeping does

    def now(self) -> float:
        """Return the time, in seconds."""
        return anyio.current_time()

    def after(self, seconds: float) -> float:
        """Return the moment after so many seconds, later than now. Timers due at one moment of the wall clock get one
        time here, whenever it was computed.
        """
        return moment(self.now() + max(seconds, LEAST_S))

    async def sleep_until(self, time: float) -> float:
        """Sleep until then, or until an earlier time that is set meanwhile, and return the time that has come."""
        with self._scope(deadline=time) as self._sleep:
            self._scope = type(self._sleep)
            await self._never.wait()
        return self._sleep.deadline

    async def wait(self, event: anyio.Event, until: float) -> None:
        """Wait for an event that is the caller's own, at most until then: it may be set at that time.

        Any number of tasks may do so, and one sleep at the same time. Where the process stood still over that time,
        they wait once more as long: the one that sets it was stopped too.
        """
        wait_s = until - self.now()
        with self._scope(deadline=until) as scope:
            self._scope = type(scope)
            await event.wait()
        if not event.is_set() and stood_still(self.now() - until):
            with self._scope(deadline=self.now() + wait_s):
                await event.wait()

    def scope_until(self, time: float) -> anyio.CancelScope:
        """Return a scope that is cancelled at that time."""
        return self._scope(deadline=time)

    def no_later_than(self, time: float) -> None:
        """Wake the sleeper then at the latest. A sleeper that is awake decides anew before it sleeps."""
        if self._sleep is not None and time < self._sleep.deadline:
            self._sleep.deadline = time


def stood_still(late_s: float) -> bool:
    """Return whether so long a delay means that the whole process stood still."""
    return late_s > STOOD_STILL_S


log = logging.getLogger(__name__)
SLEWED_S: Final = 1.0
"""What a clock that is being corrected may be behind; more is a jump."""


class Clock(Protocol):
    """The wall clock: seconds since the epoch. Waiting uses `anyio.sleep`, never this clock."""

    def now(self) -> float: ...


@dataclass(eq=False)
class RealClock:
    """The machine's clock, which never goes back here: after it was set back this one follows the steady clock until
    the machine's has caught up, and logs that once. A comparison of `now()` with a written time meets no hour twice.
    """

    wall: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic
    _told: float = field(default=float("-inf"), init=False)
    _at: float = field(default=0.0, init=False)
    _behind: bool = field(default=False, init=False)

    def now(self) -> float:
        wall, steady = self.wall(), self.steady()
        going_on = self._told + (steady - self._at)
        behind = wall < going_on - SLEWED_S
        if behind and not self._behind:
            log.warning("the machine's clock went back by %.0f s: time goes on from where it was", going_on - wall)
        self._behind, self._at = behind, steady
        self._told = going_on if behind else max(wall, self._told)
        return self._told


@dataclass
class VirtualClock:
    """A wall clock that follows the event loop's (trio's MockClock), from `start` on (seconds since the epoch), one
    `moment` after the other.
    """

    start: float = 1_700_000_000.0
    elapsed: Callable[[], float] = anyio.current_time
    _began: float | None = None
    _newest: tuple[float, float] = (float("nan"), 0.0)  # the event loop's time and the wall clock's

    def now(self) -> float:
        elapsed = self.elapsed()
        at, told = self._newest
        # asked many times at one moment, which is rounded once
        if elapsed != at:
            if self._began is None:
                self._began = moment(elapsed)
            told = moment(self.start + elapsed - self._began)
            self._newest = elapsed, told
        return told
