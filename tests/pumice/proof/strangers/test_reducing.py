"""Cutting down a storm that breaks its invariant only sometimes."""

from __future__ import annotations

from random import Random

import msgspec

from pumice.proof.storm.script.events import Event
from pumice.proof.strangers.reducing import reduced
from pumice.proof.strangers.script import FAULT, StrangerScript
from pumice.proof.strangers.storming import ShownViolation, StormJudgement

NODES = tuple(Event("node", target=f"n{number}", details={"cpu": 4, "memory": "8Gi"}) for number in range(4))
JOBS = tuple(Event("job", 1.0, target=f"j{number}", details={"pods": 2}) for number in range(6))
FAULTS = tuple(Event(FAULT, details={"fault": "refuse", "rule": f"r{number}"}) for number in range(4))
WHOLE = StrangerScript(seed=1, events=(*NODES, *JOBS, *FAULTS), invariant="one-node")
NEEDED = {"j3", "r2"}


class Process:
    """Breaks the invariant with this chance, where all that it takes is there."""

    def __init__(self, chance: float, needed: set[str]) -> None:
        self.runs = 0
        self._random = Random(1)
        self._chance = chance
        self._needed = needed

    def run(self, script: StrangerScript) -> StormJudgement:
        self.runs += 1
        there = {event.target or event.details["rule"] for event in script.events}
        broken = there >= self._needed and self._random.random() < self._chance
        return StormJudgement(script, [ShownViolation("one-node", "it moved", 1.0)] if broken else [])


def names(script: StrangerScript) -> set[str]:
    return {event.target or event.details["rule"] for event in script.events}


def test_what_is_not_needed_goes_and_one_node_stays() -> None:
    found = reduced(WHOLE, Process(1.0, NEEDED).run, tries=3, runs=200)
    assert names(found.script) - {"n0", "n1", "n2", "n3"} == NEEDED
    assert sum(event.what == "node" for event in found.script.events) == 1
    assert (found.shown, found.tries) == (3, 3)


def test_a_violation_that_shows_sometimes_has_a_rate() -> None:
    found = reduced(WHOLE, Process(0.5, NEEDED).run, tries=8, runs=1000)
    assert names(found.script) >= NEEDED
    assert len(found.script.events) == 3
    assert 0 < found.shown < found.tries == 8


def test_a_violation_that_needs_no_fault_loses_all_at_once() -> None:
    process = Process(1.0, {"j3"})
    found = reduced(WHOLE, process.run, tries=1, runs=1)
    assert not any(event.what == FAULT for event in found.script.events)
    assert process.runs == 2


def test_a_violation_that_never_shows_again_is_left_as_it_was() -> None:
    found = reduced(WHOLE, Process(0.0, NEEDED).run, tries=2, runs=50)
    assert found.script == WHOLE
    assert (found.shown, found.outcome) == (0, None)


def test_in_lockstep_each_storm_is_tried_once() -> None:
    script = msgspec.structs.replace(WHOLE, lockstep=True)
    assert reduced(script, Process(1.0, NEEDED).run, tries=5, runs=200).tries == 1
