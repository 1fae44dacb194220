"""The life cycle of a Job: every phase and every action, and what the counts decide."""

import itertools
from typing import Any

import pytest

from pumice.cluster.controllers.jobs.life import (
    JOB_LIFE,
    REACTIONS,
    Action,
    Do,
    JobPhase,
    PhaseTrigger,
    Then,
    next_phase,
    phase_of,
)

A, P, T = Action, JobPhase, PhaseTrigger

# What Volcano's state files say, cell by cell: (do, then); an action that is not named is the first entry.
EXPECTED: dict[JobPhase, dict[Action | None, tuple[Do, Then]]] = {
    P.PENDING: {
        None: (Do.SYNC, Then.START),
        A.RESTART_JOB: (Do.KILL, Then.RESTART),
        A.RESTART_TASK: (Do.KILL_TARGET, Then.RESTART),
        A.RESTART_POD: (Do.KILL_TARGET, Then.RESTART),
        A.RESTART_PARTITION: (Do.KILL_TARGET, Then.RESTART),
        A.ABORT_JOB: (Do.KILL, Then.ABORT),
        A.COMPLETE_JOB: (Do.KILL, Then.COMPLETE),
        A.TERMINATE_JOB: (Do.KILL, Then.TERMINATE),
    },
    P.RUNNING: {
        None: (Do.SYNC, Then.PROGRESS),
        A.RESTART_JOB: (Do.KILL, Then.RESTART),
        A.RESTART_TASK: (Do.KILL_TARGET, Then.RESTART),
        A.RESTART_POD: (Do.KILL_TARGET, Then.RESTART),
        A.RESTART_PARTITION: (Do.KILL_TARGET, Then.RESTART),
        A.ABORT_JOB: (Do.KILL, Then.ABORT),
        A.COMPLETE_JOB: (Do.KILL, Then.COMPLETE),
        A.TERMINATE_JOB: (Do.KILL, Then.TERMINATE),
    },
    P.RESTARTING: {
        None: (Do.KILL, Then.RESTARTED),
        A.SYNC_JOB: (Do.SYNC, Then.RESTARTED),
        A.RESTART_TASK: (Do.KILL_TARGET, Then.RESTARTED),
        A.RESTART_POD: (Do.KILL_TARGET, Then.RESTARTED),
        A.RESTART_PARTITION: (Do.KILL_TARGET, Then.RESTARTED),
    },
    P.ABORTING: {None: (Do.KILL, Then.EMPTY), A.RESUME_JOB: (Do.KILL, Then.RESTART)},
    P.ABORTED: {None: (Do.KILL, Then.STAY), A.RESUME_JOB: (Do.KILL, Then.RESTART)},
    P.COMPLETING: {None: (Do.KILL, Then.EMPTY)},
    P.COMPLETED: {None: (Do.KILL, Then.STAY)},
    P.TERMINATING: {None: (Do.KILL, Then.EMPTY)},
    P.TERMINATED: {None: (Do.KILL, Then.STAY)},
    P.FAILED: {None: (Do.KILL, Then.STAY)},
}


@pytest.mark.parametrize(("phase", "action"), list(itertools.product(JobPhase, Action)))
def test_every_phase_knows_every_action(phase: JobPhase, action: Action) -> None:
    reaction = REACTIONS[(phase, action)]
    row = EXPECTED[phase]
    assert (reaction.do, reaction.then) == row.get(action, row[None])


@pytest.mark.parametrize(("phase", "action"), list(itertools.product(JobPhase, Action)))
def test_only_a_restart_deletes_pods_that_have_ended(phase: JobPhase, action: Action) -> None:
    reaction = REACTIONS[(phase, action)]
    restarts = (phase in (P.PENDING, P.RUNNING) and action is A.RESTART_JOB) or (
        phase is P.RESTARTING and reaction.do is Do.KILL
    )
    assert reaction.keep_ended is not restarts


def test_a_job_without_phase_is_pending() -> None:
    assert phase_of({}) is JobPhase.PENDING
    assert phase_of({"state": {}}) is JobPhase.PENDING
    assert phase_of({"state": {"phase": "Weird"}}) is JobPhase.PENDING
    assert phase_of({"state": {"phase": ["Running"]}}) is JobPhase.PENDING


def task(name: str, replicas: int, least: int | None = None) -> dict[str, Any]:
    return {"name": name, "replicas": replicas} | ({} if least is None else {"minAvailable": least})


SPEC = {"minAvailable": 3, "maxRetry": 3, "tasks": [task("a", 2, 2), task("b", 2, 1)]}


def spec(**changes: Any) -> dict[str, Any]:
    return SPEC | changes


@pytest.mark.parametrize(
    ("then", "phase"),
    [
        (Then.RESTART, P.RESTARTING),
        (Then.ABORT, P.ABORTING),
        (Then.COMPLETE, P.COMPLETING),
        (Then.TERMINATE, P.TERMINATING),
    ],
)
def test_some_phases_follow_whatever_the_counts(then: Then, phase: JobPhase) -> None:
    assert next_phase(P.RUNNING, then, SPEC, {}) is phase


@pytest.mark.parametrize(
    ("before", "phase"), [(P.ABORTING, P.ABORTED), (P.COMPLETING, P.COMPLETED), (P.TERMINATING, P.TERMINATED)]
)
def test_others_wait_for_the_last_pod(before: JobPhase, phase: JobPhase) -> None:
    for alive in ("terminating", "pending", "running"):
        assert next_phase(before, Then.EMPTY, SPEC, {alive: 1}) is None
    assert next_phase(before, Then.EMPTY, SPEC, {"succeeded": 1, "failed": 2}) is phase


@pytest.mark.parametrize(
    ("status", "phase"),
    [
        ({}, None),
        ({"running": 2}, None),
        ({"running": 1, "succeeded": 1, "failed": 1}, P.RUNNING),
        ({"pending": 4}, None),
    ],
)
def test_a_job_runs_when_enough_of_it_does(status: dict[str, int], phase: JobPhase | None) -> None:
    assert next_phase(P.PENDING, Then.START, SPEC, status) is phase


@pytest.mark.parametrize(
    ("status", "phase"),
    [
        ({"minAvailable": 3, "terminating": 4}, None),
        ({"minAvailable": 3, "terminating": 1}, P.PENDING),
        ({"minAvailable": 3, "terminating": 0, "retryCount": 2}, P.PENDING),
        ({"minAvailable": 3, "terminating": 4, "retryCount": 3}, P.FAILED),
    ],
)
def test_a_restart_ends_when_enough_pods_have_gone_or_fails_after_too_many(
    status: dict[str, int], phase: JobPhase | None
) -> None:
    assert next_phase(P.RESTARTING, Then.RESTARTED, SPEC, status) is phase


def counts(a: dict[str, int], b: dict[str, int]) -> dict[str, Any]:
    return {"taskStatusCount": {"a": {"phase": a}, "b": {"phase": b}}}


@pytest.mark.parametrize(
    ("spec_changes", "status", "phase"),
    [
        ({}, {"running": 4}, None),
        ({}, {"running": 3, "failed": 1}, None),
        ({}, {"succeeded": 4, **counts({"Succeeded": 2}, {"Succeeded": 2})}, P.COMPLETED),
        ({}, {"succeeded": 3, "failed": 1, **counts({"Succeeded": 2}, {"Succeeded": 1, "Failed": 1})}, P.COMPLETED),
        ({}, {"succeeded": 3, "failed": 1, **counts({"Succeeded": 1, "Failed": 1}, {"Succeeded": 2})}, P.FAILED),
        ({"minAvailable": 2}, {"succeeded": 3, "failed": 1, **counts({"Succeeded": 1}, {"Succeeded": 2})}, P.COMPLETED),
        ({"minAvailable": 2}, {"succeeded": 1, "failed": 3, **counts({"Succeeded": 1}, {"Failed": 2})}, P.FAILED),
        ({"minSuccess": 1}, {"succeeded": 1, "running": 3}, P.COMPLETED),
        ({"minSuccess": 4}, {"succeeded": 3, "failed": 1, **counts({"Succeeded": 2}, {"Succeeded": 1})}, P.FAILED),
        ({}, {"pending": 2, "running": 2}, P.PENDING),
        ({}, {"pending": 1, "running": 3}, None),
        ({"tasks": []}, {}, None),
    ],
)
def test_progress(spec_changes: dict[str, Any], status: dict[str, Any], phase: JobPhase | None) -> None:
    assert next_phase(P.RUNNING, Then.PROGRESS, spec(**spec_changes), status) is phase


def test_nothing_follows_from_staying() -> None:
    assert [next_phase(phase, Then.STAY, SPEC, {"running": 3}) for phase in P] == [None] * len(P)


def test_every_trigger_that_a_reaction_may_lead_to_is_known_in_its_phase() -> None:
    """No count of pods is lost on a Job because its table has no row for it."""
    leads_to = {
        Then.STAY: (),
        Then.START: (T.ENOUGH_RUN,),
        Then.PROGRESS: (T.SUCCEEDED, T.FAILED, T.SHORT),
        Then.RESTARTED: (T.SHORT, T.FAILED),
        Then.EMPTY: (T.EMPTY,),
        Then.RESTART: (T.RESTART,),
        Then.ABORT: (T.ABORT,),
        Then.COMPLETE: (T.COMPLETE,),
        Then.TERMINATE: (T.TERMINATE,),
    }
    reached = {(phase, trigger) for (phase, _), reaction in REACTIONS.items() for trigger in leads_to[reaction.then]}
    assert reached == set(JOB_LIFE.transitions)
