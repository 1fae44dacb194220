"""Which policy answers to what happened."""

from typing import Any

import pytest

from pumice.cluster.controllers.jobs.life import Action
from pumice.cluster.controllers.jobs.policies import JobTrigger, Resolved, resolve
from pumice.cluster.controllers.jobs.state import PodView, gone_trigger
from pumice.core.objects.metadata import Object


def job(policies: list[Object] | None = None, task_policies: list[Object] | None = None, version: int = 1) -> Object:
    return {
        "metadata": {"uid": "u"},
        "spec": {"policies": policies or [], "tasks": [{"name": "a", "policies": task_policies or []}, {"name": "b"}]},
        "status": {"version": version},
    }


def happened(event: str, **each: Any) -> JobTrigger:
    usual: Object = {"event": event, "task": "a", "pod": "p", "job_uid": "u", "version": 1}
    return JobTrigger(**(usual | each))


def action(found: Resolved) -> tuple[Action, float]:
    return found.action, found.delay_s


ON_FAILURE = {"event": "PodFailed", "action": "RestartJob"}


def test_a_policy_answers_to_its_event_alone() -> None:
    assert action(resolve(job([ON_FAILURE]), happened("PodFailed"))) == (Action.RESTART_JOB, 0)
    assert action(resolve(job([ON_FAILURE]), happened("PodEvicted"))) == (Action.SYNC_JOB, 0)


def test_a_tasks_policy_comes_before_the_jobs() -> None:
    found = job([ON_FAILURE], [{"event": "PodFailed", "action": "RestartTask"}])
    assert action(resolve(found, happened("PodFailed")))[0] is Action.RESTART_TASK
    assert action(resolve(found, happened("PodFailed", task="b")))[0] is Action.RESTART_JOB


def test_several_events_and_any_event() -> None:
    several = {"events": ["PodFailed", "PodEvicted"], "action": "AbortJob"}
    assert action(resolve(job([several]), happened("PodEvicted")))[0] is Action.ABORT_JOB
    anything = {"event": "*", "action": "TerminateJob"}
    for event in ("PodFailed", "PodEvicted", "TaskCompleted", "Unknown"):
        assert action(resolve(job([anything]), happened(event)))[0] is Action.TERMINATE_JOB


@pytest.mark.parametrize("event", ["OutOfSync", "PodRunning", "CommandIssued", ""])
def test_internal_events_are_nobodys_business(event: str) -> None:
    assert action(resolve(job([{"event": "*", "action": "TerminateJob"}]), happened(event)))[0] is Action.SYNC_JOB


def test_exit_codes() -> None:
    found = job([{"exitCode": 3, "action": "AbortJob"}, ON_FAILURE])
    assert action(resolve(found, happened("PodFailed", exit_code=3)))[0] is Action.ABORT_JOB
    assert action(resolve(found, happened("PodFailed", exit_code=4)))[0] is Action.RESTART_JOB


def test_deletion_of_a_failed_pod_names_no_exit_code() -> None:
    pod = PodView("p", "pu", "u", "a", 1, "", "Failed", False, False, 3, False)
    found = job([{"exitCode": 3, "action": "AbortJob"}])
    assert action(resolve(found, gone_trigger(pod)))[0] is Action.SYNC_JOB


def test_waiting_is_a_reason_only_after_a_time() -> None:
    assert (
        action(resolve(job([{"event": "PodPending", "action": "AbortJob"}]), happened("PodPending")))[0]
        is Action.SYNC_JOB
    )
    assert action(resolve(job([{"event": "*", "action": "AbortJob"}]), happened("PodPending")))[0] is Action.SYNC_JOB
    timed = {"event": "PodPending", "action": "AbortJob", "timeout": "10m"}
    assert action(resolve(job([timed]), happened("PodPending"))) == (Action.ABORT_JOB, 600)


@pytest.mark.parametrize("stale", [{"version": 0}, {"job_uid": "earlier"}])
def test_what_comes_from_an_earlier_life_changes_nothing(stale: Object) -> None:
    assert action(resolve(job([ON_FAILURE]), happened("PodFailed", **stale)))[0] is Action.SYNC_JOB


def test_a_command_asks_no_policy() -> None:
    assert action(resolve(job([ON_FAILURE]), JobTrigger("CommandIssued", "ResumeJob")))[0] is Action.RESUME_JOB
