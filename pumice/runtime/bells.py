# SPDX-License-Identifier: Apache-2.0
"""Bells: events that are set at their times, by a clock that another task moves; and sleeping by them."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Final, Protocol

import anyio

from pumice.actors.runtime.clock import Alarm

FEW: Final = 1000
"""Bells that are kept, rung or not."""


class RungEvent(Protocol):
    """The event that a bell sets, of any event loop or of a similar type."""

    def set(self) -> object: ...
    def is_set(self) -> bool: ...


class Bells:
    """A clock that stands until it is moved, and the bells that ring by it. Times are seconds since the beginning."""

    def __init__(self) -> None:
        self._now = 0.0
        self._bells: list[tuple[float, int, RungEvent]] = []
        self._numbers = count()
        self._most = FEW

    def current_time(self) -> float:
        """Return virtual seconds since the beginning."""
        return self._now

    def ring(self, bell: RungEvent, time: float) -> None:
        """Set `bell` for that time, in place of an earlier time."""
        if time <= self._now:
            bell.set()
        elif time < inf:
            # The number decides between equal times: events cannot be compared, and bells ring as they were set.
            heappush(self._bells, (time, next(self._numbers), bell))
            if len(self._bells) > self._most:
                self._forget_rung()

    def _forget_rung(self) -> None:
        """Forget rung bells: most bells are set long before their time."""
        self._bells = [each for each in self._bells if not each[2].is_set()]
        heapify(self._bells)
        # Doubled: the next sweep comes only after as many new bells as are left now, however many those are.
        self._most = max(FEW, 2 * len(self._bells))

    def next_due(self) -> float:
        """Return the time of the next bell; infinity for none."""
        bells = self._bells
        while bells and bells[0][2].is_set():
            heappop(bells)
        return bells[0][0] if bells else inf

    def go_to(self, time: float) -> None:
        """Move the clock, and ring what is due by then; it does not go back."""
        self._now = max(self._now, time)
        while self._bells and self._bells[0][0] <= self._now:
            heappop(self._bells)[2].set()


class RungAlarm(Alarm):
    """An alarm that bells ring. Its events are those of the event loop that is running."""

    def __init__(self, bells: Bells) -> None:
        super().__init__()
        self._bells = bells
        self._bell: anyio.Event | None = None
        self._due = inf

    def now(self) -> float:
        """Return the time."""
        return self._bells.current_time()

    async def sleep_until(self, time: float) -> float:
        """Sleep until then, or until an earlier time that is set meanwhile, and return the time that has come."""
        bell = self._bell = self.event()
        self._due = time
        self._bells.ring(bell, time)
        try:
            await bell.wait()
        finally:
            # Also when cancelled: a bell that is set may be forgotten.
            bell.set()
        return self._due

    async def wait(self, event: anyio.Event, until: float) -> None:
        """Wait for an event that is the caller's own, at most until then: it is set at that time."""
        self._bells.ring(event, until)
        await event.wait()

    def no_later_than(self, time: float) -> None:
        """Wake the sleeper then, unless it wakes earlier."""
        if self._bell is not None and time < self._due:
            self._due = time
            self._bells.ring(self._bell, time)


class HeldAlarm(RungAlarm):
    """An alarm on an event loop whose own clock goes on by itself: its scopes, too, end when a bell rings."""

    def scope_until(self, time: float) -> anyio.CancelScope:
        """Return a scope that is cancelled at that time."""
        scope = anyio.CancelScope()
        self._bells.ring(_ScopeEnd(scope), time)
        return scope


class _ScopeEnd:
    """The end of a scope, as an event."""

    def __init__(self, scope: anyio.CancelScope) -> None:
        self._scope = scope

    def set(self) -> None:
        """Cancel the scope."""
        self._scope.cancel()

    def is_set(self) -> bool:
        """Return whether it was cancelled."""
        return self._scope.cancel_called
