"""The search for what helps, on a bench that answers by a table: what is said was tried, and one less does not do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.questions.explain.advice.advise import advise
from pumice.questions.explain.advice.changes import Change, ChangeFamily
from pumice.questions.explain.advice.search import AdviceSearch
from pumice.questions.explain.advice.trial import Bench, TimeOverError, TrialResult
from pumice.work import WorkBudget
from tests.pumice.questions.explain.test_advice import FOUND, scene

NOTHING = TrialResult(0, 0, admitted=True, spared=0, pods=9)


class Table:
    """Answers by the words of the changes. `tries`: after so many the time is over."""

    def __init__(self, kept: Callable[[tuple[str, ...]], int], tries: int = 10_000) -> None:
        self._kept = kept
        self._left = tries

    def attempt(self, *changes: Change) -> TrialResult:
        if not self._left:
            raise TimeOverError
        self._left -= 1
        kept = self._kept(tuple(change.words for change in changes))
        return TrialResult(kept, kept, admitted=True, spared=0, pods=9)


def family(name: str, most: int) -> ChangeFamily:
    return ChangeFamily(0, most, lambda size: Change(f"{name}{size}"))


def searched(table: Table, *families: ChangeFamily) -> AdviceSearch:
    search = AdviceSearch(table, NOTHING)
    search.run(families)
    return search


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(0, 60))
def test_what_is_found_helps_and_one_less_does_not(kept: list[int], tries: int) -> None:
    """Whatever each size leads to: more may well help less."""

    def reached(words: tuple[str, ...]) -> int:
        return kept[int(words[0][1:]) - 1] if len(words) == 1 else 0

    for one in searched(Table(reached, tries), family("a", len(kept))).found:
        size = int(one.changes[0].words[1:])
        assert kept[size - 1] == one.result.kept > 0
        if one.least:
            assert size == 1 or kept[size - 2] < one.result.kept


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40))
def test_rising_help_is_found_at_its_least(kept: list[int]) -> None:
    rising = sorted(kept)
    found = searched(Table(lambda words: rising[int(words[0][1:]) - 1]), family("a", len(rising))).found
    assert [one.changes[0].words for one in found] == ([f"a{rising.index(rising[-1]) + 1}"] if rising[-1] else [])


def test_too_much_of_it_may_help_nobody() -> None:
    """Of ten 3 and 4 help: neither the most nor one does."""
    found = searched(Table(lambda words: int(words[0] in ("a3", "a4"))), family("a", 10)).found
    assert [(one.changes[0].words, one.least) for one in found] == [("a3", True)]


@given(st.integers(2, 30), st.data())
def test_little_that_helps_is_found_though_more_of_it_does_not(least: int, data: st.DataObject) -> None:
    """What lies in between others take; far above there is enough for all."""
    enough = data.draw(st.integers(3 * least, 100))

    def reached(words: tuple[str, ...]) -> int:
        size = int(words[0][1:])
        return int(least <= size < least * 3 // 2 + 1 or size >= enough)

    found = searched(Table(reached), family("a", 100)).found
    assert [(one.changes[0].words, one.least) for one in found] == [(f"a{least}", True)]


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 40))
def test_of_two_together_neither_can_be_less(a: int, b: int, tries: int) -> None:
    def reached(words: tuple[str, ...]) -> int:
        return int(len(words) == 2 and int(words[0][1:]) >= a and int(words[1][1:]) >= b)

    search = searched(Table(reached, tries), family("a", 9), family("b", 9))
    for one in search.found:
        assert one.result.kept == 1
        if one.least:
            assert [change.words for change in one.changes] == [f"a{a}", f"b{b}"]
    if not search.found:
        assert search.tried < search.known, "the time was over"


def test_other_pairs_are_tried_when_what_came_further_alone_brings_not_all() -> None:
    """`fewer` starts one of nine by itself; the two that bring all do nothing alone."""

    def reached(words: tuple[str, ...]) -> int:
        return 9 if {"limit1", "room1"} <= set(words) else int("fewer1" in words)

    search = searched(Table(reached), family("fewer", 1), family("limit", 1), family("room", 1))
    told = [([change.words for change in one.changes], one.result.kept) for one in search.found]
    assert told == [(["limit1", "room1"], 9), (["fewer1"], 1)]


@given(st.integers(1, 9), st.integers(1, 9))
def test_of_other_forms_the_least_that_helps_as_far_is_said(first: int, second: int) -> None:
    """A family of 9 that starts at 5 gives way to `b`, which gives way to `c`; of `c` one less is tried first."""

    def reached(words: tuple[str, ...]) -> int:
        name, size = words[0][0], int(words[0][1:])
        return int(size >= {"a": 5, "b": first, "c": second}[name])

    c = ChangeFamily(0, 9, lambda size: Change(f"c{size}"), near=True)
    b = ChangeFamily(0, 9, lambda size: Change(f"b{size}"), instead=lambda size: c if size == first else None)
    a = ChangeFamily(0, 9, lambda size: Change(f"a{size}"), instead=lambda size: b if size == 5 else None)
    found = searched(Table(reached), a).found
    assert [(one.changes[0].words, one.least) for one in found] == [(f"c{second}", True)]


class Ticks(WorkBudget):
    """Work that is over at the n-th question."""

    def __init__(self, questions: int) -> None:
        super().__init__(inf)
        self.asked = 0
        self._questions = questions

    def __call__(self) -> bool:
        return self.asked > self._questions

    def demand(self, units: float = 0.0) -> None:
        self.asked += 1
        if self.asked > self._questions:
            raise TimeOverError


def moments(questions: int) -> Iterator[int]:
    return iter(range(0, questions, max(1, questions // 25)))


def test_a_try_that_is_broken_off_anywhere_leaves_no_trace() -> None:
    objects, _ = FOUND["priority"]
    here = scene(*objects)
    endless = Ticks(1_000_000)
    whole = Bench.of(here, "default/g", endless)
    built, expected = endless.asked, whole.attempt()
    for moment in moments(endless.asked - built):
        broken = Bench.of(here, "default/g", Ticks(built + moment))
        with pytest.raises(TimeOverError):
            broken.attempt()
        assert broken.view.check() == []
        again = Bench(broken.scene, broken.objects, broken.job, Ticks(1_000_000))
        assert again.attempt() == expected


def test_the_time_is_kept_while_the_view_is_made_and_while_a_cycle_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it is over, it is said, and nothing is done after that."""
    ticks: list[Ticks] = []

    def clock(questions: float) -> Ticks:
        ticks.append(Ticks(int(questions)))
        return ticks[-1]

    monkeypatch.setattr("pumice.questions.explain.advice.advise.budget", clock)
    objects, _ = FOUND["room"]
    remarks: set[str] = set()
    for questions in (0, 3, 16, 17, 19, 25, 60, 100):
        told = advise(scene(*objects), "podgroup", "default/g", float(questions))
        assert ticks[-1].asked == questions + 1
        remarks.add(told.remark.split(" over ")[1].split(" of ")[0])
    assert "before anything was tried (--budget)" in remarks
    assert any(remark.startswith("after ") for remark in remarks)
