"""From what happened to what is done about it: policies of a job and its tasks (source: Volcano's `applyPolicies`)."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from actors.controllers.jobs.life import Action
from config.durations import duration_s
from core.objects.metadata import section

ANY_EVENT: Final = "*"
OUT_OF_SYNC: Final = "OutOfSync"
POD_PENDING: Final = "PodPending"
POD_RUNNING: Final = "PodRunning"
POD_FAILED: Final = "PodFailed"
POD_EVICTED: Final = "PodEvicted"
TASK_COMPLETED: Final = "TaskCompleted"
TASK_FAILED: Final = "TaskFailed"
JOB_UNKNOWN: Final = "Unknown"
COMMAND_ISSUED: Final = "CommandIssued"
_INTERNAL: Final = (OUT_OF_SYNC, COMMAND_ISSUED, POD_RUNNING, "")


class JobTrigger(Struct, frozen=True):
    """Something that happened to a job. `action` is set by commands only; `version` is the job-version of the pod."""

    event: str = OUT_OF_SYNC
    action: str = ""
    task: str = ""
    pod: str = ""
    pod_uid: str = ""
    job_uid: str = ""
    partition: str = ""
    version: int | None = None
    exit_code: int = 0


class Resolved(Struct, frozen=True):
    """The action for a trigger, after `delay_s` seconds."""

    action: Action
    trigger: JobTrigger
    delay_s: float = 0.0


def resolve(job: dict[str, Any], trigger: JobTrigger) -> Resolved:
    """The task's policies first, then the job's; SyncJob when none applies or the trigger is of an earlier life."""
    if trigger.action:
        return Resolved(Action(trigger.action), trigger)
    if trigger.event in _INTERNAL or _outdated(job, trigger):
        return Resolved(Action.SYNC_JOB, trigger)
    spec: dict[str, Any] = job["spec"]
    policies: list[dict[str, Any]] = []
    for task in spec.get("tasks") or ():
        if trigger.task and task["name"] == trigger.task:
            policies += task.get("policies") or ()
    for policy in [*policies, *(spec.get("policies") or ())]:
        if _applies(policy, trigger):
            return Resolved(Action(policy["action"]), trigger, duration_s(policy.get("timeout") or "0s") or 0.0)
    return Resolved(Action.SYNC_JOB, trigger)


def _outdated(job: dict[str, Any], trigger: JobTrigger) -> bool:
    if trigger.job_uid and trigger.job_uid != job["metadata"]["uid"]:
        return True
    version: int = section(job, "status").get("version", 0)
    return trigger.version is not None and trigger.version < version


def _applies(policy: dict[str, Any], trigger: JobTrigger) -> bool:
    events = [*(policy.get("events") or ()), *([policy["event"]] if policy.get("event") else ())]
    # waiting for a pod is a reason to act only after a time: without one, every new pod would be
    timed = trigger.event != POD_PENDING or policy.get("timeout") is not None
    if timed and (trigger.event in events or ANY_EVENT in events):
        return True
    code = policy.get("exitCode")
    return code is not None and code == trigger.exit_code
