"""Looking for what helps: every family of changes is tried, and the smallest of each that helps as far is found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final, Protocol

from pumice.explain.advice.changes import Change, ChangeFamily
from pumice.explain.advice.deadline import TimeOverError
from pumice.explain.advice.trial import TrialResult

NEAREST: Final = 10
"""So many families are tried in pairs when none helps by itself."""
Group = tuple[ChangeFamily, ...]
Sizes = tuple[int, ...]


class TrialBench(Protocol):
    """Where changes are tried. Raises TimeOverError."""

    def attempt(self, *changes: Change) -> TrialResult: ...


@dataclass(frozen=True, slots=True)
class Found:
    """Changes (one, or two together) that help, and how far. `least`: with one less of any it is not as far; when the
    time was over first, nobody knows.
    """

    changes: tuple[Change, ...]
    result: TrialResult
    least: bool

    @property
    def size(self) -> tuple[int, int]:
        """How many changes, and of how many objects."""
        return len(self.changes), sum(len(change.edits) for change in self.changes)


@dataclass(slots=True)
class AdviceSearch:
    """`tried` of `known` families and pairs were tried before the time was over."""

    bench: TrialBench
    before: TrialResult
    found: list[Found] = field(default_factory=list[Found])
    tried: int = 0
    known: int = 0

    def run(self, families: Sequence[ChangeFamily]) -> None:
        """One by one, each as far as it goes; then not as far, for more of a change may help less; in pairs if nothing
        single lets more of the job stay where it is put.
        """
        ordered = sorted(families, key=lambda family: family.rank)
        try:
            failed = self._all([(family,) for family in ordered], at_most)
            if not self._helped():
                self._all([group for group in failed if group[0].most > 1], in_between)
            if not self._helped():
                self._all(list(combinations(ordered[:NEAREST], 2)), at_most)
        except TimeOverError:
            pass
        self.found.sort(key=lambda one: ((-one.result.kept, -one.result.found), -one.result.spared, one.size))

    def _helped(self) -> bool:
        before = self.before
        return any(one.result.kept > before.kept or one.result.admitted > before.admitted for one in self.found)

    def _all(self, groups: Sequence[Group], starts: Callable[[Group], Iterable[Sizes]]) -> list[Group]:
        """Those that did not help."""
        self.known += len(groups)
        return [group for group in groups if not self._try(group, starts(group))]

    def _try(self, group: Group, starts: Iterable[Sizes]) -> bool:
        descent = Descent(self.bench, group)
        for sizes in starts:
            result = descent.result(sizes)
            if _helps(result, self.before):
                break
        else:
            self.tried += 1
            return False
        self.tried += 1
        sizes, least = descent.smallest(sizes)
        changes = tuple(family.of(size) for family, size in zip(group, sizes, strict=True))
        self.found.append(Found(changes, descent.result(sizes), least))
        return True


def at_most(group: Group) -> Iterable[Sizes]:
    """As much as there may be."""
    return [tuple(family.most for family in group)]


def in_between(group: Group) -> Iterable[Sizes]:
    """A little, and twice as much each time."""
    size = 1
    while size < group[0].most:
        yield (size,)
        size *= 2


class Descent:
    """One group of families in all the sizes that were tried."""

    def __init__(self, bench: TrialBench, group: Group) -> None:
        self._bench = bench
        self._group = group
        self._known: dict[Sizes, TrialResult] = {}

    def result(self, sizes: Sizes) -> TrialResult:
        """Tried once."""
        if sizes not in self._known:
            changes = [family.of(size) for family, size in zip(self._group, sizes, strict=True)]
            self._known[sizes] = self._bench.attempt(*changes)
        return self._known[sizes]

    def smallest(self, sizes: Sizes) -> tuple[Sizes, bool]:
        """The smallest sizes that bring the job as far: by halving, which is sure where more never helps less, and then
        one by one as long as one less does as well. What was found so far, and False, when the time is over.
        """
        goal, best = self.result(sizes), sizes
        try:
            for place in range(len(sizes)):
                low = 1
                while low < best[place]:
                    middle = _with(best, place, (low + best[place]) // 2)
                    if self._reaches(middle, goal):
                        best = middle
                    else:
                        low = middle[place] + 1
            while (less := self._less(best, goal)) is not None:
                best = less
        except TimeOverError:
            return best, False
        return best, True

    def _less(self, sizes: Sizes, goal: TrialResult) -> Sizes | None:
        """One less of one of them, when that does as well."""
        fewer = (_with(sizes, place, size - 1) for place, size in enumerate(sizes) if size > 1)
        return next((less for less in fewer if self._reaches(less, goal)), None)

    def _reaches(self, sizes: Sizes, goal: TrialResult) -> bool:
        return self.result(sizes)[:3] >= goal[:3]


def _with(sizes: Sizes, place: int, size: int) -> Sizes:
    return (*sizes[:place], size, *sizes[place + 1 :])


def _helps(after: TrialResult, before: TrialResult) -> bool:
    """Whether the job comes further: more that may stay, or else more that find a place, or admission."""
    return after.kept >= before.kept and after[:3] > before[:3]
