"""Go's sort: as any other where the comparison is an order, and as Go's own where it is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.devices.numa.go_sort import in_go_order

# pairs of digits, and the order in which Go 1 left them where a smaller digit in either place comes first
RECORDED = [
    (
        "13 11 43 13 03 04 01 04 10 21 20 04 00 01 14 23 01 01 11 10 34",
        "12 17 16 13 6 4 11 5 7 8 19 18 1 3 0 14 10 9 15 20 2",
    ),
    (
        (
            "68 81 00 86 48 46 51 02 75 28 08 87 76 81 15 30 46 12 78 37 64 42 02 12 34 46 37 00 07 58 12 27 "
            "51 37 88 01 87 10 74 60 16 20 04 32 10 71 14 77 40 07 55 12 13 28 11 05"
        ),
        (
            "2 27 44 37 41 15 48 39 35 7 22 42 55 54 6 32 45 17 51 23 30 43 21 13 1 52 46 24 20 38 14 40 50 "
            "8 25 5 16 12 3 28 49 10 31 9 53 19 26 33 4 29 0 47 18 36 11 34"
        ),
    ),
]


@given(st.lists(st.integers(-50, 50), max_size=200))
def test_an_order_is_kept(items: list[int]) -> None:
    assert in_go_order(items, lambda one, two: one < two) == sorted(items)


@given(st.lists(st.integers(0, 3), min_size=50, max_size=300), st.booleans())
def test_patterns_are_sorted_too(items: list[int], rising: bool) -> None:
    pattern = sorted(items, reverse=not rising) + items[:3]
    assert in_go_order(pattern, lambda one, two: one < two) == sorted(pattern)


@pytest.mark.parametrize(("facts", "order"), RECORDED)
def test_what_is_no_order_is_left_as_go_leaves_it(facts: str, order: str) -> None:
    pairs = facts.split()

    def before(one: int, two: int) -> bool:
        return any(mine < theirs for mine, theirs in zip(pairs[one], pairs[two], strict=True))

    assert in_go_order(list(range(len(pairs))), before) == [int(each) for each in order.split()]
