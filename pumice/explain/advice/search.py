"""Looking for what helps: every family of changes is tried, and the smallest of each that helps as far is found."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

from pumice.explain.advice.changes import Change, ChangeFamily
from pumice.explain.advice.trial import Bench, TrialResult

NEAREST: Final = 10
"""So many families are tried in pairs when none helps by itself."""


@dataclass(frozen=True, slots=True)
class Found:
    """Changes (one, or two together) that help, and how far."""

    changes: tuple[Change, ...]
    result: TrialResult

    @property
    def size(self) -> tuple[int, int]:
        """How many changes, and of how many objects."""
        return len(self.changes), sum(len(change.edits) for change in self.changes)


@dataclass(slots=True)
class AdviceSearch:
    """`spent` says whether the time is over; `tried` of `known` families and pairs were tried before it was."""

    bench: Bench
    before: TrialResult
    spent: Callable[[], bool]
    found: list[Found] = field(default_factory=list[Found])
    tried: int = 0
    known: int = 0

    def run(self, families: Sequence[ChangeFamily]) -> None:
        """One by one; in pairs if nothing single lets more of the job stay where it is put."""
        ordered = sorted(families, key=lambda family: family.rank)
        self._all([(family,) for family in ordered])
        if not any(
            found.result.kept > self.before.kept or found.result.admitted > self.before.admitted for found in self.found
        ):
            self._all(list(combinations(ordered[:NEAREST], 2)))
        self.found.sort(key=lambda one: ((-one.result.kept, -one.result.found), -one.result.spared, one.size))

    def _all(self, groups: Sequence[tuple[ChangeFamily, ...]]) -> None:
        self.known += len(groups)
        for group in groups:
            if self.spent():
                return
            self.tried += 1
            self._try(group)

    def _try(self, group: tuple[ChangeFamily, ...]) -> None:
        sizes = [family.most for family in group]
        result = self._attempt(group, sizes)
        if not _helps(result, self.before):
            return
        for place in range(len(group)):
            sizes[place] = self._smallest(group, sizes, place, result)
        changes = tuple(family.of(size) for family, size in zip(group, sizes, strict=True))
        self.found.append(Found(changes, self.bench.attempt(*changes)))

    def _smallest(self, group: tuple[ChangeFamily, ...], sizes: list[int], place: int, goal: TrialResult) -> int:
        """The smallest size that brings the job as far, by halving; what was found so far when the time is over."""
        low, high = 1, sizes[place]
        while low < high and not self.spent():
            middle = (low + high) // 2
            if self._attempt(group, [*sizes[:place], middle, *sizes[place + 1 :]])[:3] >= goal[:3]:
                high = middle
            else:
                low = middle + 1
        return high

    def _attempt(self, group: tuple[ChangeFamily, ...], sizes: Sequence[int]) -> TrialResult:
        return self.bench.attempt(*[family.of(size) for family, size in zip(group, sizes, strict=True)])


def _helps(after: TrialResult, before: TrialResult) -> bool:
    """Whether the job comes further: more that may stay, or else more that find a place, or admission."""
    return after.kept >= before.kept and after[:3] > before[:3]


def budget(seconds: float) -> Callable[[], bool]:
    """Whether that time is over."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end
