"""The least amount that does, where more is not always better."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pumice.questions.whatif.search.searches import ONE_BY_ONE, least


@given(st.sets(st.integers(1, 40)), st.integers(1, 40))
def test_what_is_found_does_and_one_less_does_not(doing: set[int], most: int) -> None:
    asked: list[int] = []

    def does(amount: int) -> bool:
        asked.append(amount)
        return amount in doing

    found = least(does, most)
    assert len(asked) == len(set(asked))
    assert all(1 <= amount <= most for amount in asked)
    if found is None:
        assert not doing & set(asked)
        return
    assert found.amount in doing
    assert found.amount - 1 not in doing
    if found.least:
        assert found.amount == min(doing)
    if min(doing) <= ONE_BY_ONE:
        assert found.least


@given(st.integers(1, 500), st.integers(1, 500))
def test_of_what_only_gets_better_the_least_is_found(first: int, most: int) -> None:
    found = least(lambda amount: amount >= first, most)
    assert (found and found.amount) == (first if first <= most else None)


def test_when_the_time_is_over_nothing_more_is_tried() -> None:
    asked: list[int] = []

    def does(amount: int) -> bool:
        asked.append(amount)
        return False

    assert least(does, 100, lambda: len(asked) >= 3) is None
    assert asked == [1, 2, 3]
