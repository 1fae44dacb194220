"""The ledger of a watch names what was missed, what came twice and what came out of order, and nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.benches.soak.ledger import MOST_SAID, PATIENCE_S, WatchLedger


def begun() -> WatchLedger:
    ledger = WatchLedger("watch")
    ledger.begin(10, {"old"})
    return ledger


def test_an_event_after_its_answer_has_a_lag_and_one_before_has_none() -> None:
    ledger = begun()
    assert ledger.written(11, 1.0) is None
    assert ledger.seen("ADDED", "a", 11, 1.25) == 0.25
    assert ledger.seen("ADDED", "b", 12, 1.5) is None
    assert ledger.written(12, 2.0) == 0.0
    assert (ledger.problems, ledger.settled, ledger.events, ledger.alive) == ([], True, 2, {"old", "a", "b"})


def test_an_event_that_does_not_come_is_missed() -> None:
    ledger = begun()
    ledger.written(11, 1.0)
    ledger.look(1.0 + PATIENCE_S)
    assert not ledger.settled
    assert ledger.problems == []
    ledger.look(1.5 + PATIENCE_S)
    assert ledger.problems == ["watch: the event of revision 11 was missed"]
    assert ledger.settled


def test_an_answer_that_the_watch_has_passed_was_missed() -> None:
    ledger = begun()
    ledger.seen("ADDED", "a", 12, 1.0)
    ledger.written(11, 1.0)
    assert ledger.problems == ["watch: revision 11 was passed over: the watch is at 12"]


def test_what_comes_again_is_named_after_a_bookmark_too() -> None:
    ledger = begun()
    ledger.seen("ADDED", "a", 11, 1.0)
    ledger.seen("ADDED", "a", 11, 1.0)
    ledger.bookmark(20)
    ledger.bookmark(5)
    ledger.seen("MODIFIED", "a", 20, 1.0)
    assert ledger.count == 2
    assert ledger.problems[0] == "watch: ADDED of a at 11 came again or late, after 11"
    assert ledger.problems[1] == "watch: MODIFIED of a at 20 came again or late, after 20"


def test_an_object_is_added_once_and_changes_only_while_it_is_there() -> None:
    ledger = begun()
    ledger.seen("ADDED", "old", 11, 1.0)
    ledger.seen("MODIFIED", "none", 12, 1.0)
    ledger.seen("DELETED", "old", 13, 1.0)
    ledger.seen("DELETED", "old", 14, 1.0)
    assert [words.partition(": ")[2] for words in ledger.problems] == [
        "old was added twice",
        "MODIFIED of none, which was not there",
        "DELETED of old, which was not there",
    ]


def test_a_deletion_must_be_told() -> None:
    ledger = begun()
    ledger.deleted("old", 1.0)
    ledger.deleted("gone already", 1.0)
    assert not ledger.settled
    ledger.look(2.0 + PATIENCE_S)
    assert ledger.problems == ["watch: old was deleted, and its watch was not told"]
    told = begun()
    told.deleted("old", 1.0)
    told.seen("DELETED", "old", 11, 2.0)
    told.look(9.0 + PATIENCE_S)
    assert (told.problems, told.settled) == ([], True)


def test_all_are_counted_and_the_first_are_said() -> None:
    ledger = begun()
    for _ in range(MOST_SAID + 5):
        ledger.seen("ADDED", "old", 3, 1.0)
    assert (ledger.count, len(ledger.problems)) == (MOST_SAID + 5, MOST_SAID)


@given(st.integers(1, 60), st.data())
def test_a_whole_stream_beside_its_answers_in_any_order_is_without_problems(events: int, data: st.DataObject) -> None:
    """Others' events among them, each answer before or after its event; nothing is kept of what is old."""
    ledger = WatchLedger("watch")
    own = data.draw(st.sets(st.integers(1, events)))
    first = data.draw(st.sets(st.sampled_from(sorted(own)))) if own else set[int]()
    for revision in range(1, events + 1):
        if revision in first:
            ledger.written(revision, float(revision))
        ledger.seen("ADDED", f"u{revision}", revision, float(revision))
        if revision in own - first:
            assert ledger.written(revision, float(revision)) == 0.0
        ledger.look(float(revision))
    ledger.look(events + PATIENCE_S + 1)
    assert (ledger.problems, ledger.settled) == ([], True)
    assert len(ledger.alive) == events


@given(st.integers(2, 40), st.data())
def test_whatever_is_left_out_is_found(events: int, data: st.DataObject) -> None:
    ledger, lost = WatchLedger("watch"), data.draw(st.integers(1, events))
    for revision in range(1, events + 1):
        if revision != lost:
            ledger.seen("ADDED", f"u{revision}", revision, 0.0)
        ledger.written(revision, 0.0)
    ledger.look(PATIENCE_S + 1)
    assert ledger.count == 1
    assert str(lost) in ledger.problems[0]
