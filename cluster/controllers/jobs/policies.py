# SPDX-License-Identifier: Apache-2.0
"""Policies of a job and its tasks: the action for each event (source: Volcano's `applyPolicies`)."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from pumice.cluster.controllers.jobs.life import Action
from pumice.config.durations import duration_s
from pumice.core.objects.metadata import Object, section

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
_OF_PODS: Final = {
    POD_PENDING: "waits",
    POD_RUNNING: "runs",
    POD_FAILED: "failed",
    POD_EVICTED: "was evicted or deleted",
}
_OF_TASKS: Final = {TASK_COMPLETED: "has completed", TASK_FAILED: "was started again too often"}
_OF_JOBS: Final = {JOB_UNKNOWN: "its PodGroup is Unknown, for too few of its pods run"}
_INTERNAL: Final = (OUT_OF_SYNC, COMMAND_ISSUED, POD_RUNNING, "")


class JobTrigger(Struct, frozen=True):
    """An event of a job. `action` is set by commands, and by a `policy` with an expired timeout; `version` is the
    job-version of the pod.
    """

    event: str = OUT_OF_SYNC
    action: str = ""
    task: str = ""
    pod: str = ""
    pod_uid: str = ""
    job_uid: str = ""
    partition: str = ""
    version: int | None = None
    exit_code: int = 0
    policy: str = ""


class Resolved(Struct, frozen=True):
    """The action for a trigger, after `delay_s` seconds. `policy`: its name and scope, "" without one."""

    action: Action
    trigger: JobTrigger
    delay_s: float = 0.0
    policy: str = ""

    def because(self) -> str:
        """Return the policy that asked for the action, and the event; "" without a policy."""
        if self.action is Action.SYNC_JOB or self.trigger.event == COMMAND_ISSUED:
            return ""
        return f"{self.action} by the policy for {self.policy or self.trigger.event}: {happened(self.trigger)}"


def resolve(job: Object, trigger: JobTrigger) -> Resolved:
    """Return the action by the task's policies first, then the job's; SyncJob when none applies or the trigger is of an
    earlier life.
    """
    # A command, or a policy whose time is up: it was chosen already, and no version can outdate it.
    if trigger.action:
        return Resolved(Action(trigger.action), trigger, policy=trigger.policy)
    # isInternalEvent in job_controller_util.go: not even a policy for any event (*) hears of these.
    if trigger.event in _INTERNAL or _outdated(job, trigger):
        return Resolved(Action.SYNC_JOB, trigger)
    spec: Object = job["spec"]
    policies: list[tuple[str, Object]] = []
    for task in spec.get("tasks") or ():
        if trigger.task and task["name"] == trigger.task:
            policies += [(f"task {trigger.task}", policy) for policy in task.get("policies") or ()]
    # The first that applies, so a task's policy hides the Job's for the same event.
    for whose, policy in [*policies, *(("the Job", policy) for policy in spec.get("policies") or ())]:
        if what := _applies(policy, trigger):
            delay_s = duration_s(policy.get("timeout") or "0s") or 0.0
            return Resolved(Action(policy["action"]), trigger, delay_s, f"{what} of {whose}")
    return Resolved(Action.SYNC_JOB, trigger)


def _outdated(job: Object, trigger: JobTrigger) -> bool:
    if trigger.job_uid and trigger.job_uid != job["metadata"]["uid"]:
        return True
    version: int = section(job, "status").get("version", 0)
    # a pod of an earlier life: Volcano's `applyPolicies` only syncs then
    return trigger.version is not None and trigger.version < version


def happened(trigger: JobTrigger) -> str:
    """Return the words for a trigger."""
    match trigger.event:
        case _ if trigger.event in _OF_PODS:
            code = f" with exit code {trigger.exit_code}" if trigger.event == POD_FAILED and trigger.exit_code else ""
            return f"pod {trigger.pod} {_OF_PODS[trigger.event]}{code}"
        case _ if trigger.event in _OF_TASKS:
            return f"task {trigger.task} {_OF_TASKS[trigger.event]}"
        case _:
            return _OF_JOBS.get(trigger.event, trigger.event)


def _applies(policy: Object, trigger: JobTrigger) -> str:
    """Return the part of the policy that applies: an event or an exit code; "" for none."""
    events = [*(policy.get("events") or ()), *([policy["event"]] if policy.get("event") else ())]
    # waiting for a pod is a reason to act only after a time: without one, every new pod would be
    timed = trigger.event != POD_PENDING or policy.get("timeout") is not None
    if timed and (trigger.event in events or ANY_EVENT in events):
        return trigger.event if trigger.event in events else ANY_EVENT
    # 0 stands here for no exit code: admission refuses a policy for it (validatePolicies in webhooks/admission/jobs).
    code = policy.get("exitCode")
    return f"exit code {code}" if code is not None and code == trigger.exit_code else ""
