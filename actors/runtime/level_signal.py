# SPDX-License-Identifier: Apache-2.0
"""A level signal: a level is never lost and never queued."""

from __future__ import annotations

import anyio


class LevelSignal:
    """A number that only rises, and a way to wait for it: a late waiter misses nothing, an early one is woken once."""

    def __init__(self, value: int = 0) -> None:
        self.value = value
        self._waited_for: dict[int, anyio.Event] = {}

    @property
    def waiting(self) -> int:
        """Return the number of waiters, all of whom the next value wakes."""
        return sum([event.statistics().tasks_waiting for event in self._waited_for.values()])

    def raise_to(self, value: int) -> None:
        """Raise the level and wake its waiters; a lower value changes nothing."""
        if value <= self.value:
            return
        self.value = value
        if self._waited_for:
            # a list first: the loop takes entries out of the table that it reads
            for passed in [each for each in self._waited_for if each < value]:
                self._waited_for.pop(passed).set()

    async def wait_beyond(self, value: int) -> int:
        """Wait until the level is above `value`, and return it."""
        while self.value <= value:
            # one event for all that wait beyond the same value
            if value not in self._waited_for:
                self._waited_for[value] = anyio.Event()
            await self._waited_for[value].wait()
        return self.value
