# pyright: reportPrivateUsage=false
"""One cycle after the faults have stopped the cache has heard of everything, and its books are those of the api.

But for binds that have not come true.
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.actors.runtime.watcher import WatchedChanges, Watcher
from pumice.core.state.view import View
from pumice.proof.storm.invariants.monitor import Monitor
from pumice.proof.storm.invariants.soon import MOST, misplaced
from pumice.proof.storm.script.events import Event, Script
from pumice.proof.storm.simulation import simulate

SEATS = st.tuples(st.sampled_from("1234"), st.sampled_from(("n0", "n1")))
PLACES = st.dictionaries(st.sampled_from("abcd"), SEATS)
NODE = Event("node", target="n0", details={"cpu": 8, "memory": "16Gi"})
JOB = Event("job", 0.5, target="j", details={"pods": 1, "cpu": "1", "memory": "1Gi"})
DROPPED = Event("bind-dropped", on="bind default/j-0 #1")
STORM = Script(1, (NODE, JOB, DROPPED), faults_end_s=3.0)


def test_the_cache_may_hold_a_bind_that_nobody_answered() -> None:
    outcome = simulate(STORM)
    assert outcome.violations == []
    assert outcome.pods == {"default/j-0": ("n0", "Running")}


def test_no_more_than_what_was_decided_and_has_not_come_true(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pumice.proof.storm.invariants.soon.may_hold", _nothing)
    (violation,) = simulate(STORM).violations
    assert violation.invariant == "books-agree"
    assert violation.words.startswith("pod default/j-0 is on n0 (")
    assert violation.words.endswith("in the cache's books and nowhere in the api's")


def test_the_cache_has_no_say_in_what_it_may_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds the pod on another node than was decided, and awaits its outcome."""
    assume = View.assume

    def elsewhere(self: View, namespace: str, name: str, _: str, *rest: Any) -> bool:
        return assume(self, namespace, name, "n1", *rest)

    monkeypatch.setattr(View, "assume", elsewhere)
    other = Event("node", target="n1", details={"cpu": 1, "memory": "1Gi"})
    (violation,) = simulate(Script(1, (NODE, other, JOB, DROPPED), faults_end_s=3.0)).violations
    assert violation.invariant == "books-agree"
    assert violation.words.startswith("pod default/j-0 is on n1 (")


@pytest.mark.parametrize("late_s", [5.0, 100.0])
def test_a_cache_that_hears_of_things_late_is_found(late_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    late_from(0.4, late_s, monkeypatch)
    (violation,) = simulate(Script(1, (NODE, JOB), faults_end_s=1.0)).violations
    assert violation.invariant == "books-agree"
    assert violation.words.startswith("the cache does not see what the api published")


def test_a_moment_is_not_late(monkeypatch: pytest.MonkeyPatch) -> None:
    late_from(0.4, 2.0, monkeypatch)
    assert simulate(Script(1, (NODE, JOB), faults_end_s=1.0)).violations == []


def test_the_cache_need_not_know_what_it_cannot_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """It lists anew at every change, and the api is away for ten seconds."""
    read = Watcher._read

    async def listing(self: Watcher) -> WatchedChanges:
        changes = await read(self)
        if self.name != "cache" or changes.relisted:
            return changes
        await anyio.sleep(0.01)  # the api crashes here
        return await self._relist()

    monkeypatch.setattr(Watcher, "_read", listing)
    monkeypatch.setattr("pumice.actors.runtime.supervisor.FIRST_S", 10.0)
    crash = Event("crash", on="watch Node+Queue #2", target="api-server")
    outcome = simulate(Script(1, (NODE, JOB, crash), faults_end_s=1.0))
    assert (outcome.violations, len(outcome.struck)) == ([], 1)


def test_it_need_not_know_what_is_not_told_yet() -> None:
    assert simulate(Script(1, (NODE, JOB), faults_end_s=1.0, news_delay_s=30.0)).violations == []


def test_it_need_not_know_what_is_not_written_yet() -> None:
    storms = [
        Script(1, (NODE, JOB, Event("journal-slow", on=f"append #{number}", amount=8.0)), faults_end_s=1.0)
        for number in range(2, 20)
    ]
    assert [simulate(script).violations for script in storms] == [[]] * len(storms)


def late_from(when_s: float, late_s: float, patch: pytest.MonkeyPatch) -> None:
    """From then on the cache reads each batch of changes so much later."""
    read = Watcher._read

    async def late(self: Watcher) -> WatchedChanges:
        if self.name == "cache" and anyio.current_time() > when_s:
            await anyio.sleep(late_s)
        return await read(self)

    patch.setattr(Watcher, "_read", late)


def _nothing(_: Monitor) -> dict[str, str]:
    return {}


@given(PLACES, PLACES, st.dictionaries(st.sampled_from("1234"), st.sampled_from(("n0", "n1"))))
def test_every_difference_is_told_but_for_binds_that_have_not_come_true(
    ours: dict[str, tuple[str, str]], theirs: dict[str, tuple[str, str]], may_hold: dict[str, str]
) -> None:
    different = {key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)}
    open_ones = {key for key in ours.keys() - theirs.keys() if ours[key] in may_hold.items()}
    problems = misplaced(ours, theirs, may_hold)
    assert len(problems) == min(MOST, len(different - open_ones))
    assert [words.split()[1] for words in problems] == sorted(different - open_ones)[:MOST]
