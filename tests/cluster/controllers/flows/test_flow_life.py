"""The life of a JobFlow, pair by pair."""

from __future__ import annotations

import pytest

from pumice.cluster.controllers.flows import FLOW_LIFE, FlowPhase, FlowTrigger, trigger_of

P, T = FlowPhase, FlowTrigger

EXPECTED = {
    P.PENDING: {T.BEGUN: P.RUNNING, T.BROKEN: P.FAILED, T.STOPPED: P.FAILED},
    P.RUNNING: {T.BROKEN: P.FAILED, T.DONE: P.SUCCEED},
    P.SUCCEED: {},
    P.TERMINATING: {},
    P.FAILED: {},
}


@pytest.mark.parametrize("phase", P)
@pytest.mark.parametrize("trigger", T)
def test_every_pair(phase: FlowPhase, trigger: FlowTrigger) -> None:
    assert FLOW_LIFE.step(phase, trigger) == EXPECTED[phase].get(trigger)


@pytest.mark.parametrize(
    ("jobs", "phase", "trigger"),
    [
        ({}, P.PENDING, None),
        ({"Pending": ["a"]}, P.PENDING, None),
        ({"Running": ["a"]}, P.PENDING, T.BEGUN),
        ({"Completed": ["a"]}, P.PENDING, T.BEGUN),
        ({"Completed": ["a", "b"]}, P.PENDING, T.BEGUN),
        ({"Completed": ["a", "b"]}, P.RUNNING, T.DONE),
        ({"Running": ["a"], "Failed": ["b"]}, P.RUNNING, T.BROKEN),
        ({"Terminated": ["a"]}, P.PENDING, T.STOPPED),
        ({"Running": ["b"], "Terminated": ["a"]}, P.PENDING, T.BEGUN),
    ],
)
def test_what_its_jobs_say(jobs: dict[str, list[str]], phase: FlowPhase, trigger: FlowTrigger | None) -> None:
    assert trigger_of(jobs, 2, phase) is trigger
