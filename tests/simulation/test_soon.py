"""One cycle after the faults have stopped the cache's books are those of the api, but for what is in doubt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.cache import Cache
from pumice.storm.script import Event, Script
from pumice.storm.simulation import simulate
from pumice.storm.soon import MOST, misplaced

PLACES = st.dictionaries(st.sampled_from("abcd"), st.tuples(st.sampled_from("1234"), st.sampled_from(("n0", "n1"))))
NODE = Event("node", target="n0", details={"cpu": 8, "memory": "16Gi"})
JOB = Event("job", 0.5, target="j", details={"pods": 1, "cpu": "1", "memory": "1Gi"})
DROPPED = Event("bind-dropped", on="bind default/j-0 #1")
STORM = Script(1, (NODE, JOB, DROPPED), faults_end_s=3.0)


def test_a_pod_whose_bind_nobody_answered_is_in_doubt() -> None:
    outcome = simulate(STORM)
    assert outcome.violations == []
    assert outcome.pods == {"default/j-0": ("n0", "Running")}


def test_without_that_doubt_the_books_do_not_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cache, "_in_doubt", _nothing)
    (violation,) = simulate(STORM).violations
    assert violation.invariant == "books-agree"
    assert violation.words.startswith("pod default/j-0 is on n0 (")
    assert violation.words.endswith("in the cache's books and nowhere in the api's")


def _nothing(cache: Cache) -> tuple[str, ...]:
    del cache
    return ()


@given(PLACES, PLACES, st.sets(st.sampled_from("1234")))
def test_every_difference_is_told_but_for_what_is_in_doubt(
    ours: dict[str, tuple[str, str]], theirs: dict[str, tuple[str, str]], doubtful: set[str]
) -> None:
    different = {key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)}
    open_ones = {key for book in (ours, theirs) for key, (uid, _) in book.items() if uid in doubtful}
    problems = misplaced(ours, theirs, tuple(doubtful))
    assert len(problems) == min(MOST, len(different - open_ones))
    assert [words.split()[1] for words in problems] == sorted(different - open_ones)[:MOST]
