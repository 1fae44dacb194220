"""Sleeping until a time that may be moved: to move it wakes nobody, as an event would, only to sleep on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio

from pumice.cluster.timers import moment

if TYPE_CHECKING:
    from collections.abc import Callable

LEAST_S: Final = 1e-6
STOOD_STILL_S: Final = 1.0
"""Who wakes so much too late was not alone: the process was stopped (SIGSTOP, a paused machine)."""


class Alarm:
    """One task sleeps by it. Times are the event loop's, in seconds."""

    def __init__(self) -> None:
        self._sleep: anyio.CancelScope | None = None  # to make one takes an event loop
        self._scope: type[anyio.CancelScope] = anyio.CancelScope  # then the event loop's own, which need not be found
        self.event: Callable[[], anyio.Event] = anyio.Event
        """Makes one that is not set, for who waits in this event loop."""
        self._never = anyio.Event()  # waiting for it sets no other deadline, as sleeping does

    def now(self) -> float:
        """What time it is."""
        return anyio.current_time()

    def after(self, seconds: float) -> float:
        """The moment that comes when so many seconds have gone by, later than now: what is due at one moment of the
        wall clock has one time here, from wherever that was reckoned.
        """
        return moment(self.now() + max(seconds, LEAST_S))

    async def sleep_until(self, time: float) -> float:
        """Sleep until then, or until an earlier time that is set meanwhile. Returns the one that has come."""
        with self._scope(deadline=time) as self._sleep:
            self._scope = type(self._sleep)
            await self._never.wait()
        return self._sleep.deadline

    async def wait(self, event: anyio.Event, until: float) -> None:
        """Wait for an event that is the caller's own, at most until then: it may be set at that time.

        Any number of tasks may do so, and one sleep at the same time. Where the process stood still over that time,
        they wait once more as long: whoever was to set it could not.
        """
        wait_s = until - self.now()
        with self._scope(deadline=until) as scope:
            self._scope = type(scope)
            await event.wait()
        if not event.is_set() and stood_still(self.now() - until):
            with self._scope(deadline=self.now() + wait_s):
                await event.wait()

    def no_later_than(self, time: float) -> None:
        """Have the sleeper wake then, unless it does so before. Who is awake decides anew before it sleeps."""
        if self._sleep is not None and time < self._sleep.deadline:
            self._sleep.deadline = time


def stood_still(late_s: float) -> bool:
    """Whether so long after its time means that nobody could do anything."""
    return late_s > STOOD_STILL_S
