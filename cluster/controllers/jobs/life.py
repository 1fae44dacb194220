# SPDX-License-Identifier: Apache-2.0
"""The life cycle of a Volcano Job: phases, triggers and the one table that joins them, and the outcome of an action.

Source: Volcano's `pkg/controllers/job/state`, which spreads the same over eight files. A reaction says what is done to
the pods and what then decides about the next phase; every phase knows every action.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

from pumice.cluster.kube.min_resources import least_of
from pumice.core.life.cycle import LifeCycle
from pumice.core.objects.metadata import Object, section


class JobPhase(StrEnum):
    """Phases of status.state.phase; an empty one counts as PENDING."""

    PENDING = "Pending"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    ABORTING = "Aborting"
    ABORTED = "Aborted"
    COMPLETING = "Completing"
    COMPLETED = "Completed"
    TERMINATING = "Terminating"
    TERMINATED = "Terminated"
    FAILED = "Failed"


class Action(StrEnum):
    """Action that a policy, a command or an event asks of a job."""

    SYNC_JOB = "SyncJob"
    ABORT_JOB = "AbortJob"
    RESTART_JOB = "RestartJob"
    RESTART_TASK = "RestartTask"
    RESTART_POD = "RestartPod"
    RESTART_PARTITION = "RestartPartition"
    TERMINATE_JOB = "TerminateJob"
    COMPLETE_JOB = "CompleteJob"
    RESUME_JOB = "ResumeJob"


class Do(StrEnum):
    """Operation on the pods."""

    SYNC = "sync"  # create what is missing, delete what is too much
    KILL = "kill"  # delete all, and the PodGroup
    KILL_TARGET = "kill target"  # delete the task, pod or partition the action is about, and the PodGroup


class Then(StrEnum):
    """Rule for the phase afterwards (`next_phase`)."""

    STAY = "stay"
    START = "start"
    PROGRESS = "progress"
    RESTART = "restart"
    RESTARTED = "restarted"
    ABORT = "abort"
    COMPLETE = "complete"
    TERMINATE = "terminate"
    EMPTY = "empty"


class Reaction(Struct, frozen=True, gc=False):
    """One cell of the table. `keep_ended`: pods that succeeded or failed are not deleted."""

    do: Do
    then: Then
    keep_ended: bool = True


class PhaseTrigger(StrEnum):
    """Trigger of the phase: an action that begins, or the counts of pods."""

    RESTART = "it is to be restarted"
    ABORT = "it is to be aborted"
    COMPLETE = "it is to be completed"
    TERMINATE = "it is to be terminated"
    EMPTY = "no pod of it is left"
    ENOUGH_RUN = "enough of its pods run or have ended"
    SHORT = "too few of its pods run"
    SUCCEEDED = "enough of its pods have succeeded"
    FAILED = "it cannot succeed any more, or was restarted too often"


_P, _T = JobPhase, PhaseTrigger

JOB_LIFE: Final = LifeCycle(
    {
        (_P.PENDING, _T.ENOUGH_RUN): _P.RUNNING,
        (_P.PENDING, _T.RESTART): _P.RESTARTING,
        (_P.PENDING, _T.ABORT): _P.ABORTING,
        (_P.PENDING, _T.COMPLETE): _P.COMPLETING,
        (_P.PENDING, _T.TERMINATE): _P.TERMINATING,
        (_P.RUNNING, _T.SHORT): _P.PENDING,
        (_P.RUNNING, _T.SUCCEEDED): _P.COMPLETED,
        (_P.RUNNING, _T.FAILED): _P.FAILED,
        (_P.RUNNING, _T.RESTART): _P.RESTARTING,
        (_P.RUNNING, _T.ABORT): _P.ABORTING,
        (_P.RUNNING, _T.COMPLETE): _P.COMPLETING,
        (_P.RUNNING, _T.TERMINATE): _P.TERMINATING,
        (_P.RESTARTING, _T.SHORT): _P.PENDING,  # the pods of the life before have gone
        (_P.RESTARTING, _T.FAILED): _P.FAILED,
        (_P.ABORTING, _T.EMPTY): _P.ABORTED,
        (_P.ABORTING, _T.RESTART): _P.RESTARTING,  # it is resumed
        (_P.ABORTED, _T.RESTART): _P.RESTARTING,
        (_P.COMPLETING, _T.EMPTY): _P.COMPLETED,
        (_P.TERMINATING, _T.EMPTY): _P.TERMINATED,
    }
)
"""Nothing follows on Completed, Terminated and Failed."""

_PHASES: Final[dict[str, JobPhase]] = {phase.value: phase for phase in JobPhase}

FINISHED: Final = (JobPhase.COMPLETED, JobPhase.FAILED, JobPhase.TERMINATED)
"""Phases from which a time to live counts."""

TARGETED: Final = (Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION)

_RESTART: Final = Reaction(Do.KILL, Then.RESTART, keep_ended=False)
_RESTART_TARGET: Final = Reaction(Do.KILL_TARGET, Then.RESTART)
_ABORT: Final = Reaction(Do.KILL, Then.ABORT)
_COMPLETE: Final = Reaction(Do.KILL, Then.COMPLETE)
_TERMINATE: Final = Reaction(Do.KILL, Then.TERMINATE)
_RESUME: Final = Reaction(Do.KILL, Then.RESTART)

_ALIVE: Final[dict[Action, Reaction]] = {
    Action.RESTART_JOB: _RESTART,
    **dict.fromkeys(TARGETED, _RESTART_TARGET),
    Action.ABORT_JOB: _ABORT,
    Action.COMPLETE_JOB: _COMPLETE,
    Action.TERMINATE_JOB: _TERMINATE,
}

# phase: (what is done for an action without an entry, SyncJob among them; entries)
_ROWS: Final[dict[JobPhase, tuple[Reaction, dict[Action, Reaction]]]] = {
    JobPhase.PENDING: (Reaction(Do.SYNC, Then.START), _ALIVE),
    JobPhase.RUNNING: (Reaction(Do.SYNC, Then.PROGRESS), _ALIVE),
    JobPhase.RESTARTING: (
        Reaction(Do.KILL, Then.RESTARTED, keep_ended=False),
        {
            Action.SYNC_JOB: Reaction(Do.SYNC, Then.RESTARTED),
            **dict.fromkeys(TARGETED, Reaction(Do.KILL_TARGET, Then.RESTARTED)),
        },
    ),
    JobPhase.ABORTING: (Reaction(Do.KILL, Then.EMPTY), {Action.RESUME_JOB: _RESUME}),
    JobPhase.ABORTED: (Reaction(Do.KILL, Then.STAY), {Action.RESUME_JOB: _RESUME}),
    JobPhase.COMPLETING: (Reaction(Do.KILL, Then.EMPTY), {}),  # too late for anything else
    JobPhase.TERMINATING: (Reaction(Do.KILL, Then.EMPTY), {}),  # too late for anything else
    JobPhase.COMPLETED: (Reaction(Do.KILL, Then.STAY), {}),
    JobPhase.TERMINATED: (Reaction(Do.KILL, Then.STAY), {}),
    JobPhase.FAILED: (Reaction(Do.KILL, Then.STAY), {}),
}

REACTIONS: Final[dict[tuple[JobPhase, Action], Reaction]] = {
    (phase, action): entries.get(action, otherwise)
    for phase, (otherwise, entries) in _ROWS.items()
    for action in Action
}
"""Every phase and action."""


def phase_of(status: Object) -> JobPhase:
    """Return the phase of a job: Pending without one, or for an unknown one (Volcano's `state/factory.go`)."""
    phase = section(status, "state").get("phase")
    return _PHASES.get(phase, JobPhase.PENDING) if isinstance(phase, str) else JobPhase.PENDING


def next_phase(phase: JobPhase, then: Then, spec: Object, status: Object) -> JobPhase | None:
    """Return the phase that follows from the counts in `status`; None when it stays."""
    trigger = trigger_of(then, spec, status)
    return None if trigger is None else JOB_LIFE.step(phase, trigger)


def trigger_of(then: Then, spec: Object, status: Object) -> PhaseTrigger | None:
    """Return the trigger for the counts in `status`; None when the phase stays."""
    match then:
        case Then.STAY:
            return None
        case Then.START:
            ended_or_running = sum(status.get(name, 0) for name in ("running", "succeeded", "failed"))
            return PhaseTrigger.ENOUGH_RUN if spec.get("minAvailable", 0) <= ended_or_running else None
        case Then.PROGRESS:
            return _progress(spec, status)
        case Then.RESTARTED:
            return _after_restart(spec, status)
        case Then.EMPTY:
            left = any(status.get(name, 0) for name in ("terminating", "pending", "running"))
            return None if left else PhaseTrigger.EMPTY
        case _:
            return _AT_ONCE[then]


_AT_ONCE: Final = {
    Then.RESTART: PhaseTrigger.RESTART,
    Then.ABORT: PhaseTrigger.ABORT,
    Then.COMPLETE: PhaseTrigger.COMPLETE,
    Then.TERMINATE: PhaseTrigger.TERMINATE,
}


def _after_restart(spec: Object, status: Object) -> PhaseTrigger | None:
    if status.get("retryCount", 0) >= spec.get("maxRetry", 0):
        return PhaseTrigger.FAILED
    going = total_replicas(spec) - int(status.get("terminating", 0))
    return PhaseTrigger.SHORT if going >= status.get("minAvailable", 0) else None


def _progress(spec: Object, status: Object) -> PhaseTrigger | None:
    """Return the progress of a running job: Running until all pods have ended, enough have succeeded, or too few are
    left.
    """
    replicas = total_replicas(spec)
    if replicas == 0:  # scaled down to nothing
        return None
    succeeded, wanted = status.get("succeeded", 0), spec.get("minSuccess")
    if wanted is not None and succeeded >= wanted:
        return PhaseTrigger.SUCCEEDED
    if succeeded + status.get("failed", 0) == replicas:
        if _some_task_failed(spec, status) or (wanted is not None and succeeded < wanted):
            return PhaseTrigger.FAILED
        return PhaseTrigger.SUCCEEDED if succeeded >= spec.get("minAvailable", 0) else PhaseTrigger.FAILED
    return PhaseTrigger.SHORT if status.get("pending", 0) > replicas - spec.get("minAvailable", 0) else None


def _some_task_failed(spec: Object, status: Object) -> bool:
    """Return whether a task has fewer successes than its minimum; checked only when the job needs every task's
    minimum.
    """
    tasks: list[Object] = spec.get("tasks") or []
    if spec.get("minAvailable", 0) < sum(map(least_of, tasks)):
        return False
    counts: Object = status.get("taskStatusCount") or {}
    return any(
        counts[task["name"]]["phase"].get("Succeeded", 0) < task["minAvailable"]
        for task in tasks
        if "minAvailable" in task and task["name"] in counts
    )


def total_replicas(spec: Object) -> int:
    """Return the number of pods of all tasks."""
    return sum(task.get("replicas", 0) for task in spec.get("tasks") or ())
