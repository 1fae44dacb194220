# SPDX-License-Identifier: Apache-2.0
"""Amounts over time in bounded memory: a step function's mean in each of at most `BINS` equal spans of time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

BINS: Final = 1024
"""A series that grows beyond gets stretches of twice the length: a day keeps its minutes, a year its half days."""


@dataclass
class Grid:
    """The spans of all series of a run: from `began` on (seconds since the epoch), each `width` seconds long."""

    began: float
    width: float = 1.0

    def reach(self, at: float) -> None:
        """Widen the spans until one contains this moment."""
        while at >= self.began + self.width * BINS:
            self.width *= 2

    def starts(self, count: int) -> list[float]:
        """Return the start of each of the first `count` stretches, in seconds after `began`."""
        return [index * self.width for index in range(count)]


@dataclass
class Steps:
    """An amount that changes in steps. `total` is amount × seconds so far."""

    grid: Grid
    value: float = 0.0
    total: float = 0.0
    _since: float | None = None
    _width: float = 0.0
    _bins: list[float] = field(default_factory=list[float])

    def add(self, change: float, at: float) -> None:
        """Add to the value from now on."""
        self.to(at)
        self.value += change

    def set(self, value: float, at: float) -> None:
        """Set the value from now on."""
        self.to(at)
        self.value = value

    def to(self, at: float) -> None:
        """Advance the time to this moment."""
        since = self.grid.began if self._since is None else self._since
        self._since = at
        if at <= since:
            return
        self.grid.reach(at)
        self._widen()
        self.total += self.value * (at - since)
        if self.value:
            self._fill(since - self.grid.began, at - self.grid.began)

    def _fill(self, first: float, last: float) -> None:
        width, bins = self._width, self._bins
        index = int(first / width)
        bins.extend([0.0] * (int(last / width) + 1 - len(bins)))
        while first < last:
            end = min(last, (index + 1) * width)
            bins[index] += self.value * (end - first)
            first, index = end, index + 1

    def _widen(self) -> None:
        self._width = self._width or self.grid.width
        while self._width < self.grid.width:
            self._bins = [sum(self._bins[index : index + 2]) for index in range(0, len(self._bins), 2)]
            self._width *= 2

    def means(self, until: float) -> list[float]:
        """Return the mean in each span up to `until`; the last one's is that of its past part."""
        self.to(until)
        self._widen()
        length = until - self.grid.began
        count = max(1, -int(-length // self._width))
        bins = [*self._bins, *[0.0] * (count - len(self._bins))][:count]
        last = length - (count - 1) * self._width
        return [held / (self._width if index < count - 1 or not last else last) for index, held in enumerate(bins)]
