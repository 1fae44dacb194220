# SPDX-License-Identifier: Apache-2.0
"""Timers of a machine: one heap, keys in order of their time and then of their setting."""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heappop, heappush
from itertools import count
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
MOMENT_DIGITS: Final = 6
"""Times that differ by less than a microsecond are the same moment: seconds since the epoch cannot tell them apart."""


def moment(seconds: float) -> float:
    """Round to the microsecond, so that sums of any order agree."""
    return round(seconds, MOMENT_DIGITS)


class Timers(Generic[K]):
    """Timers by key: at most one each; setting it anew replaces it."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, K]] = []
        self._current: dict[K, tuple[float, int, K]] = {}
        self._numbers = count()

    def set(self, key: K, due: float) -> None:
        """Set a timer for `due`, rounded by `moment`."""
        # the number keeps timers of one moment in the order of their setting, and keys need no order
        timer = self._current[key] = (moment(due), next(self._numbers), key)
        heappush(self._heap, timer)

    def cancel(self, key: K) -> None:
        """Cancel a timer, if it is set."""
        self._current.pop(key, None)

    def take_due(self, now: float) -> list[K]:
        """Remove and return the due keys, in order."""
        due: list[K] = []
        while (at := self.next_due()) is not None and at <= now:
            key = heappop(self._heap)[2]
            del self._current[key]
            due.append(key)
        return due

    def next_due(self) -> float | None:
        """Return the earliest time, or None."""
        heap = self._heap
        # a timer that was cancelled or set anew stays in the heap until it comes up: taking it out would walk the whole
        # heap
        while heap and self._current.get(heap[0][2]) is not heap[0]:
            heappop(heap)
        return heap[0][0] if heap else None

    def __contains__(self, key: object) -> bool:
        return key in self._current

    def __len__(self) -> int:
        return len(self._current)
