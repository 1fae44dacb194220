# SPDX-License-Identifier: Apache-2.0
"""Reductions by trials: a list without the items that a failure does not need (delta debugging, Zeller and Hildebrandt
2002), and the smallest sizes of a change that suffices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

Sizes = tuple[int, ...]


def leave_out_pieces(
    count: Callable[[], int], without: Callable[[int, int], bool], exhausted: Callable[[], bool]
) -> None:
    """Leave out pieces of half the items, then a quarter, down to one by one, until no single item can go.

    `count`: how many items there are now; `without(start, end)`: leave out these if the failure stays, and return
    whether it did.
    """
    size = max(1, count() // 2)
    while not exhausted():
        start, before = 0, count()
        while start < count():
            if not without(start, start + size):
                start += size
        if size > 1:
            size //= 2
        elif count() == before:
            return


@dataclass
class LeastSearch:
    """Search for the smallest sizes that suffice, from sizes that do. Larger ones need not suffice, too: scheduling is
    not monotone, so a search that halves also tries one less at its end.

    `best`: the smallest sizes so far, which stay when a trial raises. `over`: whether no further trial may begin.
    """

    suffices: Callable[[Sizes], bool]
    best: Sizes
    over: Callable[[], bool] = lambda: False

    def halve(self, place: int, first: int) -> None:
        """Halve the size at a place down to `first`: certain only where more never helps less."""
        while first < self.best[place] and not self.over():
            middle = resized(self.best, place, (first + self.best[place]) // 2)
            if self.suffices(middle):
                self.best = middle
            else:
                first = middle[place] + 1

    def take_first(self, rising: Iterable[Sizes]) -> None:
        """Take the first of these sizes that suffices, if any does."""
        self.best = next(filter(self.suffices, rising), self.best)

    def step_down(self, lowest: Sizes) -> None:
        """Lower one size by one, as long as that suffices."""
        while not self.over() and (less := self.one_less(lowest)) is not None:
            self.best = less

    def one_less(self, lowest: Sizes) -> Sizes | None:
        """Return sizes with one less of one of them that suffice, None without any."""
        pairs = enumerate(zip(self.best, lowest, strict=True))
        fewer = (resized(self.best, place, size - 1) for place, (size, low) in pairs if size > low)
        return next(filter(self.suffices, fewer), None)


def resized(sizes: Sizes, place: int, size: int) -> Sizes:
    """Return the sizes with another one at a place."""
    return (*sizes[:place], size, *sizes[place + 1 :])
