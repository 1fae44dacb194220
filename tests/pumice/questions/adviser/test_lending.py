"""Who borrows from whom: the nearest kin's first, and every amount is somebody's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.messages.queue_tables import borrowed
from pumice.questions.adviser.queues import QueueStanding
from pumice.questions.adviser.waiting_jobs import lending, loans


def standing(parent: str, deserved: float, allocated: float) -> QueueStanding:
    entitled, has = {"cpu": deserved}, {"cpu": allocated, "pods": allocated}
    more = borrowed(has, entitled)
    return QueueStanding(parent, "Open", 1, 0, None, deserved=entitled, allocated=has, borrowed=more)


def rounded(standings: dict[str, QueueStanding]) -> list[tuple[str, str, float]]:
    return [(each.lender, each.borrower, round(each.amount, 6)) for each in loans(standings, "cpu")]


def test_sisters_lend_before_cousins_and_cousins_before_nobody() -> None:
    tree = {
        "root": standing("", 100, 100),
        "eng": standing("root", 60, 76),
        "speech": standing("eng", 20, 56),
        "vision": standing("eng", 30, 20),
        "sci": standing("root", 40, 24),
        "bio": standing("sci", 30, 24),
    }
    assert rounded(tree) == [
        ("bio", "speech", 6),
        ("eng", "speech", 10),  # what it keeps undivided
        ("sci", "speech", 10),
        ("vision", "speech", 10),
    ]


def test_equally_near_ones_lend_in_proportion_and_the_rest_is_nobodys() -> None:
    flat = {"a": standing("", 10, 4), "b": standing("", 10, 8), "c": standing("", 5, 9), "d": standing("", 1, 9)}
    assert rounded(flat) == [
        ("", "c", round(4 / 3, 6)),
        ("", "d", round(8 / 3, 6)),
        ("a", "c", 2),
        ("a", "d", 4),
        ("b", "c", round(2 / 3, 6)),
        ("b", "d", round(4 / 3, 6)),
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
