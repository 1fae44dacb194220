"""Jobs as `JobInfo` encodes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.config.durations import parse_duration_ns
from pumice.core.life.pod_group import LABELS
from pumice.core.objects.metadata import format_time, section
from pumice.core.objects.typed import typed_group

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.plugins.extender.task_bodies import TaskBodies
    from pumice.core.session.session import Session
    from pumice.core.session.subjobs import SubJob
    from pumice.core.session.topology import Wish
    from pumice.core.state.columns import FloatArray
    from pumice.core.state.jobs import Job

Body = dict[str, Any]
WAITING_TIME: Final = ("volcano.sh/sla-waiting-time", "sla-waiting-time")
MIN_AVAILABLE: Final = "volcano.sh/jdb-min-available"
MAX_UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"
ENQUEUE: Final = "enqueue"


class JobBodies:
    """Of one session, as they are when they are asked for. `column`: of columns and a row, a `Resource`."""

    def __init__(self, session: Session, tasks: TaskBodies, column: Callable[[FloatArray, int], Body]) -> None:
        self._session, self._tasks, self._column = session, tasks, column

    def job(self, job: Job) -> Body:
        """`JobInfo`."""
        session, group, tasks = self._session, job.pod_group, job.in_uid_order()
        columns, row, told = session.jobs.columns, job.row, self._tasks
        groups = session.sub_jobs(job)
        return {
            "UID": job.key,
            "PgUID": group.uid,
            "Name": job.name,
            "Namespace": job.namespace,
            "Queue": group.queue,
            "Priority": session.jobs.priority[row],
            "MinAvailable": group.min_member,
            "WaitingTime": _waiting_time(group.annotations),
            "JobFitErrors": "",
            "NodesFitErrors": {task.uid: {} for task in tasks if session.fit.of(job, task) is not None},
            "AllocatedHyperNode": "",
            "NetworkTopology": _topology(group.network_topology, session.topology.of_job(job)),
            "SubJobs": {uid: self._sub_job(each) for uid, each in groups.items()},
            "TaskToSubJob": {task.uid: uid for uid, each in groups.items() for task in each.tasks},
            "MinSubJobs": {
                f"{job.key}/{each.get('name') or ''}": int(each.get("minSubGroups") or 0)
                for each in group.sub_group_policy
            },
            "TaskStatusIndex": told.by_status(tasks),
            "Tasks": told.by_uid(tasks),
            "TaskMinAvailable": group.min_task_member,
            "TaskMinAvailableTotal": group.min_task_total,
            "Allocated": self._column(columns.allocated, row),
            "TotalRequest": self._column(columns.total, row),
            "CreationTimestamp": section(group.pod_group, "metadata").get("creationTimestamp"),
            "PodGroup": self._pod_group(job),
            "ScheduleStartTimestamp": self._looked_at(),
            "Preemptable": group.preemptable,
            "RevocableZone": group.revocable_zone,
            "Budget": _budget(group.annotations),
        }

    def _looked_at(self) -> str | None:
        """When enqueue first looked at the jobs in this session; None before that."""
        session = self._session
        known = [name for name in session.config.actions if name in (ENQUEUE, session.action)]
        return format_time(session.clock.now) if session.action and known[0] == ENQUEUE else None

    def _pod_group(self, job: Job) -> Body:
        whole = typed_group(job.pod_group.pod_group)
        phase = LABELS[self._session.jobs.phase[job.row]]
        return {**whole, "status": {**section(whole, "status"), "phase": phase}, "Version": "v1beta1"}

    def _sub_job(self, group: SubJob) -> Body:
        return {
            "GID": group.gid,
            "UID": group.uid,
            "Job": group.job.key,
            "MinAvailable": group.min_available,
            "Priority": max((task.priority for task in group.tasks), default=0),
            "MatchIndex": group.match_index,
            "Tasks": self._tasks.by_uid(group.tasks),
            "TaskStatusIndex": self._tasks.by_status(group.tasks),
            "AllocatedHyperNode": group.allocated_hyper_node,
            "NominatedHyperNode": group.nominated_hyper_node,
            "NetworkTopology": _topology(group.network_topology, self._session.topology.of_sub_job(group)),
        }


def _topology(said: Body | None, wish: Wish | None) -> Body | None:
    """`NetworkTopologySpec` as the session reads it: what is soft as a limit that keeps nothing out, and of a tier
    called by a name its number.
    """
    if said is None or wish is None or wish.highest_tier is None:
        return said
    mode = {"mode": "hard"} if said.get("mode") == "soft" else {"mode": said["mode"]} if said.get("mode") else {}
    return {**mode, "highestTierAllowed": wish.highest_tier}


def _waiting_time(annotations: dict[str, str]) -> int | None:
    """In nanoseconds; None where neither annotation is a positive duration."""
    return next((found for name in WAITING_TIME if (found := _nanoseconds(annotations.get(name)))), None)


def _nanoseconds(text: str | None) -> int | None:
    try:
        waiting = parse_duration_ns(text or "")
    except ValueError:
        return None
    return waiting if waiting > 0 else None


def _budget(annotations: dict[str, str]) -> Body:
    """`DisruptionBudget`: the first of the two that is there."""
    least = annotations.get(MIN_AVAILABLE, "")
    return {"MinAvailable": least, "MaxUnavailable": "" if least else annotations.get(MAX_UNAVAILABLE, "")}
