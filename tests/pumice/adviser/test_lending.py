"""Who borrows from whom: the nearest kin's first, and every amount is somebody's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.messages.queue_gauges import borrowed
from pumice.adviser.lending import lending, loans
from pumice.adviser.queues import QueueStanding


def standing(parent: str, deserved: float, allocated: float) -> QueueStanding:
    entitled, has = {"cpu": deserved}, {"cpu": allocated, "pods": allocated}
    more = borrowed(has, entitled)
    return QueueStanding(parent, "Open", 1, 0, None, deserved=entitled, allocated=has, borrowed=more)


def test_sisters_lend_before_cousins_and_cousins_before_nobody() -> None:
    tree = {
        "root": standing("", 100, 100),
        "eng": standing("root", 60, 76),
        "speech": standing("eng", 20, 56),
        "vision": standing("eng", 30, 20),
        "sci": standing("root", 40, 24),
        "bio": standing("sci", 30, 24),
    }
    assert loans(tree, "cpu") == [
        ("bio", "speech", pytest.approx(6)),
        ("eng", "speech", pytest.approx(10)),  # what it keeps undivided
        ("sci", "speech", pytest.approx(10)),
        ("vision", "speech", pytest.approx(10)),
    ]


def test_equally_near_ones_lend_in_proportion_and_the_rest_is_nobodys() -> None:
    flat = {"a": standing("", 10, 4), "b": standing("", 10, 8), "c": standing("", 5, 9), "d": standing("", 1, 9)}
    assert loans(flat, "cpu") == [
        ("", "c", pytest.approx(4 / 3)),
        ("", "d", pytest.approx(8 / 3)),
        ("a", "c", pytest.approx(2)),
        ("a", "d", pytest.approx(4)),
        ("b", "c", pytest.approx(2 / 3)),
        ("b", "d", pytest.approx(4 / 3)),
    ]
    assert lending(flat).keys() == {"cpu"}


QUEUES = st.lists(st.tuples(st.integers(-1, 6), st.integers(0, 9), st.integers(0, 9)), max_size=8)


@given(QUEUES)
def test_every_borrower_has_all_that_it_borrows_and_no_leaf_lends_more_than_it_leaves(
    drawn: list[tuple[int, int, int]],
) -> None:
    tree = {
        f"q{number}": standing(f"q{min(parent, number - 1)}" if number and parent >= 0 else "", deserved, allocated)
        for number, (parent, deserved, allocated) in enumerate(drawn)
    }
    inner = {one.parent for one in tree.values()}
    made = loans(tree, "cpu")
    for name, one in tree.items():
        has = sum(loan.amount for loan in made if loan.borrower == name)
        assert has == pytest.approx(0.0 if name in inner else one.borrowed.get("cpu", 0.0))
        if name not in inner:
            lent = sum(loan.amount for loan in made if loan.lender == name)
            assert lent <= max(0.0, one.deserved["cpu"] - one.allocated["cpu"]) + 1e-6
    assert all(loan.amount > 0 for loan in made)
