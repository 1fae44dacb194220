"""Lanes: where slices that overlap are drawn beside each other."""

from __future__ import annotations

from heapq import heappop, heappush


class Lanes:
    """Hands out the lowest lane that is free, from 0 on."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._next = 0

    def take(self) -> int:
        """The lowest free lane, which is free no longer."""
        if self._free:
            return heappop(self._free)
        self._next += 1
        return self._next - 1

    def give_back(self, lane: int) -> None:
        """It is free again."""
        heappush(self._free, lane)
