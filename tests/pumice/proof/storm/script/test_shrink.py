"""Cutting down, on storms that are a few lines of Python: what is left, and how many storms it took."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from pumice.proof.storm.invariants.upheld import Violation
from pumice.proof.storm.script.events import Event, Script
from pumice.proof.storm.script.shrink import FEW, PATIENCE, shrink, subject, written_out
from pumice.proof.storm.simulation import StormOutcome

WORDS = "pod default/j7-0 was bound to n1"
INPUTS = [
    *(Event("node", target=f"n{number}") for number in range(5)),
    *(Event("job", target=f"j{number}", details={"pods": 8, "min": 6, "queue": "wide"}) for number in range(20)),
    *(Event("delete-pod", float(number), target=f"j{number}") for number in range(20)),
]
FAULTS = [Event("bind-lost", on=f"bind default/j{job}-{pod} #1") for job in range(20) for pod in range(3)]

Fails = Callable[[Script], bool]


class Storms:
    """Counts the storms; `fails` says which of them break the invariant."""

    def __init__(self, fails: Fails) -> None:
        self.run = 0
        self._fails = fails

    def __call__(self, script: Script) -> StormOutcome:
        self.run += 1
        return StormOutcome([Violation("decided-once", WORDS)]) if self._fails(script) else StormOutcome()


def shrunk(fails: Fails, *, seed: int = 0, runs: int = 400) -> tuple[Script, Storms]:
    storms = Storms(fails)
    outcome = StormOutcome([Violation("decided-once", WORDS)], struck=FAULTS)
    return shrink(Script(seed, tuple(INPUTS), {"bind-lost": 0.1}), outcome, runs=runs, simulate=storms), storms


def needs(*events: Event) -> Fails:
    return lambda script: (
        {(each.what, each.on or each.target) for each in events}
        <= {(each.what, each.on or each.target) for each in script.events}
    )


def names(script: Script) -> Sequence[str]:
    return [each.on or each.target for each in script.events]


def test_what_the_words_name_is_found_in_a_few_storms() -> None:
    script, storms = shrunk(needs(INPUTS[1], INPUTS[12], FAULTS[21]))
    assert names(script) == ["n1", "j7", "bind default/j7-0 #1"]
    assert storms.run <= 100


def test_what_the_words_do_not_name_is_found_too() -> None:
    script, storms = shrunk(needs(INPUTS[3], INPUTS[19], INPUTS[39], FAULTS[40]))
    assert set(names(script)) == {"n3", "j14", "bind default/j13-1 #1"}
    assert len(script.events) == 4
    assert storms.run <= 400


def test_a_defect_that_shows_in_some_orders_only_is_cut_down_in_one_of_them() -> None:
    """With the list the order changes: here it must be the third as soon as anything is missing."""
    wanted = needs(INPUTS[1], INPUTS[12])
    script, _ = shrunk(lambda script: wanted(script) and (len(script.events) > 30 or script.order == 3), seed=77)
    assert (names(script), script.seed, script.order) == (["n1", "j7"], 77, 3)


def test_what_is_left_is_made_small() -> None:
    script, _ = shrunk(lambda script: any(int(each.details.get("pods", 0)) >= 2 for each in script.events))
    assert [each.details for each in script.events] == [{"pods": 2, "min": 2}]


@pytest.mark.parametrize("runs", [0, 1, 7, 50])
def test_no_more_storms_are_run_than_allowed(runs: int) -> None:
    script, storms = shrunk(needs(INPUTS[3], INPUTS[19]), runs=runs)
    assert storms.run == runs * (PATIENCE if len(script.events) > FEW else 1)
    assert needs(INPUTS[3], INPUTS[19])(script)
    assert (script.rates, script.invariant) == ({}, "decided-once")


def test_a_storm_that_does_not_repeat_is_written_out_as_it_is() -> None:
    script, storms = shrunk(lambda _: False)
    assert script == written_out(Script(0, tuple(INPUTS)), StormOutcome([Violation("decided-once", "")], struck=FAULTS))
    assert storms.run == 1


def test_another_invariant_is_another_defect() -> None:
    def fails(script: Script) -> bool:
        return len(script.events) == len(INPUTS) + len(FAULTS)

    storms = Storms(fails)

    def simulate(script: Script) -> StormOutcome:
        return storms(script) if fails(script) else StormOutcome([Violation("one-node", WORDS)])

    whole = shrink(
        Script(0, tuple(INPUTS)), StormOutcome([Violation("decided-once", WORDS)], struck=FAULTS), simulate=simulate
    )
    assert len(whole.events) == len(INPUTS) + len(FAULTS)


def test_the_subject_of_an_event() -> None:
    jobs = ["j1", "j12"]
    assert subject(Event("delete-pod", target="j1"), jobs) == "j1"
    assert subject(Event("clock-jump", amount=3.0), jobs) == "clock-jump"
    assert subject(Event("bind-lost", on="bind default/j12-0 #1"), jobs) == "j12"
    assert subject(Event("status-lost", on="status PodGroup default/j1 by scheduler #2"), jobs) == "j1"
    assert subject(Event("watch-gone", on="watch Node+Pod #3"), jobs) == "watch Node+Pod #3"
