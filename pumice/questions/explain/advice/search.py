# SPDX-License-Identifier: Apache-2.0
"""Search for advice: every family of changes is tried, and the smallest of each that helps as far is found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final, Protocol

from pumice.questions.explain.advice.changes import Change, ChangeFamily, Group
from pumice.questions.explain.advice.trial import TimeOverError, TrialResult
from pumice.reduction import LeastSearch, Sizes

NEAREST: Final = 10
"""Number of families that are tried in pairs when none brings all of the job by itself."""


class TrialBench(Protocol):
    """Bench on which changes are tried. Raises TimeOverError."""

    def attempt(self, *changes: Change) -> TrialResult: ...


@dataclass(frozen=True, slots=True)
class Found:
    """Changes (one, or several together) that help, and how far. `least`: with one less of any they help less; unknown
    when the time was over first. `alone`: how many tasks keep their places by each of several. `group` in these `sizes`
    makes the changes, after those that only have `made` what was missing.
    """

    changes: tuple[Change, ...]
    result: TrialResult
    least: bool
    alone: tuple[int, ...] = ()
    group: Group = ()
    sizes: Sizes = ()
    made: tuple[Change, ...] = ()

    def of(self, sizes: Sizes) -> tuple[Change, ...]:
        """Return the changes in other sizes."""
        return (*self.made, *changes_of(self.group, sizes))

    @property
    def in_pair(self) -> bool:
        """Return whether the changes concern different things."""
        return len({each.subject or each.words for each in self.changes}) > 1

    @property
    def size(self) -> tuple[int, float, int]:
        """Return the number of changes, the sum of their amounts, and the number of objects; pods of a template count
        once."""
        changes = self.changes
        objects = {edit.who if edit.who[0] != "Pod" else ("Pod", "", "") for each in changes for edit in each.edits}
        return len(changes), sum(each.amount for each in changes), len(objects)


@dataclass(slots=True)
class AdviceSearch:
    """A search for advice. `tried` of `known` families and pairs were tried before the time was over."""

    bench: TrialBench
    before: TrialResult
    found: list[Found] = field(default_factory=list[Found])
    tried: int = 0
    known: int = 0
    _reached: dict[int, TrialResult] = field(default_factory=dict[int, TrialResult])

    def run(self, families: Sequence[ChangeFamily], joint: Sequence[Group] = ()) -> None:
        """Try families one by one, each to its end; then not as far, since more of a change may help less; `joint` ones
        where no member brings all of the job; and pairs if nothing does, first with those that brought it further.
        """
        ordered = sorted(families, key=lambda family: family.rank)
        try:
            failed = self._all([(family,) for family in ordered], at_most)
            if not self.found:
                failed = self._all([group for group in failed if group[0].most > 1], in_between)
            self._all([group for group in joint if not any(map(self._brings_all, group))], at_most)
            for pairs in self._pairs(ordered):
                if not any(self._is_all(one.result) for one in self.found):
                    self._all(pairs, at_most)
        except TimeOverError:
            pass
        if any(self._is_all(one.result) for one in self.found):  # then two together for less are not worth telling
            self.found = [one for one in self.found if not one.in_pair or self._is_all(one.result)]
        self._sort()

    def add(self, found: Iterable[Found], further: AdviceSearch) -> None:
        """Add the results of another search that went on from this one."""
        self.found += found
        self.tried, self.known = self.tried + further.tried, self.known + further.known
        self._sort()

    def _sort(self) -> None:
        self.found.sort(key=lambda one: (-one.result.kept, -one.result.spared, one.size))

    def _is_all(self, result: TrialResult) -> bool:
        return result.kept >= result.pods if result.pods else result.admitted

    def _brings_all(self, family: ChangeFamily) -> bool:
        return self._is_all(self._after((family,)))

    def _after(self, group: Group) -> TrialResult:
        """Return the best known result of any of them by itself."""
        return max((self._reached.get(id(family), self.before) for family in group), key=lambda result: result[:3])

    def _pairs(self, ordered: Sequence[ChangeFamily]) -> Iterator[list[Group]]:
        """Yield pairs among the nearest: first with those that brought the job further, though it did not start, or not
        all of it; then the others.
        """
        closer = [family for family in ordered if self._after((family,))[:3] > self.before[:3]]
        nearest = sorted(ordered, key=lambda family: tuple(-part for part in self._after((family,))[:3]))[:NEAREST]
        for known in (True, False):
            yield [pair for pair in combinations(nearest, 2) if known == any(family in closer for family in pair)]

    def _all(self, groups: Sequence[Group], starts: Callable[[Group], Iterable[Sizes]]) -> list[Group]:
        """Return the families that did not help."""
        self.known += len(groups)
        return [group for group in groups if not self._try(group, starts(group))]

    def _try(self, group: Group, starts: Iterable[Sizes]) -> bool:
        descent = Descent(self.bench, group)
        known = self._after(group)
        for sizes in starts:
            result = descent.result(sizes)
            if len(group) == 1:
                self._reached[id(group[0])] = max(self._after(group), result, key=lambda one: one[:3])
            if _helps(result, self.before) and (len(group) == 1 or result.kept > known.kept):
                break
        else:
            self.tried += 1
            return False
        self.tried += 1
        sizes, least = descent.smallest(sizes)
        if least and len(group) == 1 and (other := group[0].instead(sizes[0])) is not None:
            group, descent, sizes, least = self._otherwise(other, descent.result(sizes))
        changes = changes_of(group, sizes)
        alone = self._alone(changes) if least else ()
        self.found.append(Found(changes, descent.result(sizes), least, alone, group, sizes))
        return True

    def _otherwise(self, family: ChangeFamily, known: TrialResult) -> tuple[Group, Descent, Sizes, bool]:
        """Return the smallest of other forms that helps as far as the greatest, where that is `known`; and so on."""
        descent = Descent(self.bench, (family,), {(family.most,): known})
        sizes: Sizes = (family.most,)
        least = True
        if not family.near or descent.may_be_less(sizes):
            sizes, least = descent.smallest(sizes)
        other = family.instead(sizes[0]) if least else None
        if other is not None:
            return self._otherwise(other, descent.result(sizes))
        return (family,), descent, sizes, least

    def _alone(self, changes: Sequence[Change]) -> tuple[int, ...]:
        """Return how far each of several changes helps by itself, as time permits."""
        try:
            return tuple(self.bench.attempt(change).kept for change in changes) if len(changes) > 1 else ()
        except TimeOverError:
            return ()


def changes_of(group: Group, sizes: Sizes) -> tuple[Change, ...]:
    """Return the changes of these sizes, without those of size 0."""
    return tuple(family.of(size) for family, size in zip(group, sizes, strict=True) if size)


def at_most(group: Group) -> Iterable[Sizes]:
    """Return the greatest size of each change of the group."""
    return [tuple(family.most for family in group)]


def in_between(group: Group) -> Iterable[Sizes]:
    """Yield a small number, doubled each time."""
    size = 1
    while size < group[0].most:
        yield (size,)
        size *= 2


def from_below(least: int, end: int) -> Iterator[int]:
    """Yield sizes from `least` on, below `end`: each greater than the one before by half at most, or by one."""
    size = least
    while size < end:
        yield size
        size += max(1, size // 2)


class Descent:
    """One group of families in all their tried sizes."""

    def __init__(self, bench: TrialBench, group: Group, known: Mapping[Sizes, TrialResult] | None = None) -> None:
        self._bench = bench
        self._group = group
        self._known: dict[Sizes, TrialResult] = {**(known or {})}

    def result(self, sizes: Sizes) -> TrialResult:
        """Return the result of the sizes, tried once."""
        if sizes not in self._known:
            self._known[sizes] = self._bench.attempt(*changes_of(self._group, sizes))
        return self._known[sizes]

    def smallest(self, sizes: Sizes) -> tuple[Sizes, bool]:
        """Return the smallest sizes that bring the job as far: by halving, which is certain where more never helps
        less. More may help less, where others take the difference: so a few small sizes of one family are tried as
        well, and then one by one as long as one less suffices. When the time is over, return the best so far, and
        False.
        """
        search, lowest = self._search(sizes), tuple(family.least for family in self._group)
        try:
            for place, low in enumerate(lowest):
                search.halve(place, low)
            if len(lowest) == 1:
                search.take_first((size,) for size in from_below(lowest[0], search.best[0]))
            search.step_down(lowest)
        except TimeOverError:
            return search.best, False
        return search.best, True

    def may_be_less(self, sizes: Sizes) -> bool:
        """Return whether one less may be enough; also True, as unknown, if the budget ends first."""
        try:
            return self._search(sizes).one_less(tuple(family.least for family in self._group)) is not None
        except TimeOverError:
            return True

    def _search(self, sizes: Sizes) -> LeastSearch:
        goal = self.result(sizes)[:3]
        return LeastSearch(lambda fewer: self.result(fewer)[:3] >= goal, sizes)


def _helps(after: TrialResult, before: TrialResult) -> bool:
    """Return whether more tasks of the job keep their places; for a job without pods: whether the job is admitted."""
    if after.kept != before.kept:
        return after.kept > before.kept
    return not before.pods and after.admitted > before.admitted
