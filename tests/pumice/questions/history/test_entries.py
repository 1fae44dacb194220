"""Entries of a story: each kind of record has words of its own."""

from pumice.questions.history.entries import TELLERS
from pumice.storage.journal import KINDS


def test_each_kind_of_record_has_a_teller() -> None:
    assert set(TELLERS) == set(KINDS)
