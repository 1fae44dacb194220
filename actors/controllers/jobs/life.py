"""The life cycle of a Volcano Job: phases, actions, and the one table that joins them.

Source: Volcano's `pkg/controllers/job/state`, which spreads the same over eight files. A row says what is done to the
pods and what then decides about the next phase; every phase knows every action.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from core.objects.metadata import section


class JobPhase(StrEnum):
    """status.state.phase; an empty one counts as PENDING."""

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
    """What a policy, a command or an event asks of a job."""

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
    """What is done to the pods."""

    SYNC = "sync"  # create what is missing, delete what is too much
    KILL = "kill"  # delete all, and the PodGroup
    KILL_TARGET = "kill target"  # delete the task, pod or partition the action is about, and the PodGroup


class Then(StrEnum):
    """What decides about the phase afterwards (`next_phase`)."""

    STAY = "stay"
    START = "start"
    PROGRESS = "progress"
    RESTART = "restart"
    RESTARTED = "restarted"
    ABORT = "abort"
    ABORTED = "aborted"
    COMPLETE = "complete"
    COMPLETED = "completed"
    TERMINATE = "terminate"
    TERMINATED = "terminated"


class Reaction(Struct, frozen=True, gc=False):
    """One cell of the table. `keep_ended`: pods that succeeded or failed are not deleted."""

    do: Do
    then: Then
    keep_ended: bool = True


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
    JobPhase.ABORTING: (Reaction(Do.KILL, Then.ABORTED), {Action.RESUME_JOB: _RESUME}),
    JobPhase.ABORTED: (Reaction(Do.KILL, Then.STAY), {Action.RESUME_JOB: _RESUME}),
    JobPhase.COMPLETING: (Reaction(Do.KILL, Then.COMPLETED), {}),  # too late for anything else
    JobPhase.TERMINATING: (Reaction(Do.KILL, Then.TERMINATED), {}),  # too late for anything else
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


def phase_of(status: dict[str, Any]) -> JobPhase:
    """The phase a job is in; Pending when it has none yet, or one that nobody knows (Volcano's `state/factory.go`)."""
    phase = section(status, "state").get("phase")
    return _PHASES.get(phase, JobPhase.PENDING) if isinstance(phase, str) else JobPhase.PENDING


def next_phase(then: Then, spec: dict[str, Any], status: dict[str, Any]) -> JobPhase | None:
    """The phase that follows from the counts in `status`; None: the phase stays."""
    if (fixed := _FIXED.get(then)) is not None:
        return fixed
    if (quiet := _WHEN_QUIET.get(then)) is not None:
        return None if any(status.get(name, 0) for name in ("terminating", "pending", "running")) else quiet
    if then is Then.START:
        ended_or_running = sum(status.get(name, 0) for name in ("running", "succeeded", "failed"))
        return JobPhase.RUNNING if spec.get("minAvailable", 0) <= ended_or_running else None
    if then is Then.RESTARTED:
        return _after_restart(spec, status)
    return _progress(spec, status) if then is Then.PROGRESS else None


_FIXED: Final = {
    Then.RESTART: JobPhase.RESTARTING,
    Then.ABORT: JobPhase.ABORTING,
    Then.COMPLETE: JobPhase.COMPLETING,
    Then.TERMINATE: JobPhase.TERMINATING,
}
_WHEN_QUIET: Final = {
    Then.ABORTED: JobPhase.ABORTED,
    Then.COMPLETED: JobPhase.COMPLETED,
    Then.TERMINATED: JobPhase.TERMINATED,
}


def _after_restart(spec: dict[str, Any], status: dict[str, Any]) -> JobPhase | None:
    if status.get("retryCount", 0) >= spec.get("maxRetry", 0):
        return JobPhase.FAILED
    going = total_replicas(spec) - int(status.get("terminating", 0))
    return JobPhase.PENDING if going >= status.get("minAvailable", 0) else None


def _progress(spec: dict[str, Any], status: dict[str, Any]) -> JobPhase | None:
    """Running until all pods have ended, enough have succeeded, or too few are left."""
    replicas = total_replicas(spec)
    if replicas == 0:  # scaled down to nothing
        return None
    succeeded, wanted = status.get("succeeded", 0), spec.get("minSuccess")
    if wanted is not None and succeeded >= wanted:
        return JobPhase.COMPLETED
    if succeeded + status.get("failed", 0) == replicas:
        if _some_task_failed(spec, status) or (wanted is not None and succeeded < wanted):
            return JobPhase.FAILED
        return JobPhase.COMPLETED if succeeded >= spec.get("minAvailable", 0) else JobPhase.FAILED
    return JobPhase.PENDING if status.get("pending", 0) > replicas - spec.get("minAvailable", 0) else None


def _some_task_failed(spec: dict[str, Any], status: dict[str, Any]) -> bool:
    """A task has fewer successes than its minimum; looked at only when the job needs every task's minimum."""
    tasks: list[dict[str, Any]] = spec.get("tasks") or []
    least = [task.get("minAvailable", task.get("replicas", 0)) for task in tasks]
    if spec.get("minAvailable", 0) < sum(least):
        return False
    counts: dict[str, Any] = status.get("taskStatusCount") or {}
    return any(
        counts[task["name"]]["phase"].get("Succeeded", 0) < task["minAvailable"]
        for task in tasks
        if "minAvailable" in task and task["name"] in counts
    )


def total_replicas(spec: dict[str, Any]) -> int:
    """Pods of all tasks."""
    return sum(task.get("replicas", 0) for task in spec.get("tasks") or ())
