# SPDX-License-Identifier: Apache-2.0
"""The end of a session: PodGroup phases and conditions, pod conditions, queue status, and their digest.

Source: Volcano `framework/job_updater.go`, `session.go` (jobStatus, updateQueueStatus), `cache.RecordJobStatusEvent`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from pumice.core.digest import digest
from pumice.core.life.pod_group import AFTER_FINDING, SHORT, finding
from pumice.core.life.pod_group import LABELS as PHASES
from pumice.core.life.task import COMPLETED_STATUSES, SCHEDULED_STATUSES, TaskStatus, total_of
from pumice.core.messages.decisions import CycleResult, PodCondition, PodGroupCondition, PodGroupStatus
from pumice.core.session.closing.queue_status import queue_statuses
from pumice.core.session.closing.report import brief, closing
from pumice.core.session.fit import ALL_NODES_UNAVAILABLE, UNSCHEDULABLE

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.demand import JobRows
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job

# --- Members that are leaving
# Source: Volcano after v1.15.1 (fix terminating-members).


def leaving(session: Session) -> npt.NDArray[np.int64]:
    """Return how many releasing tasks with a node each job has, by job row."""
    tasks = session.snapshot.tasks
    theirs = tasks.job[(tasks.status == TaskStatus.RELEASING) & (tasks.node >= 0) & (tasks.job >= 0)]
    return np.bincount(theirs, minlength=len(session.snapshot.jobs.phase)).astype(np.int64)


def only_waits(session: Session) -> npt.NDArray[np.bool_]:
    """Return whether a job has its minimum as long as its terminating members are there, and none of its tasks waits
    for a place; by row.
    """
    columns, gone = session.snapshot.jobs, leaving(session)
    scheduled = total_of(columns.counts, SCHEDULED_STATUSES)
    waits = columns.counts[TaskStatus.PENDING] + columns.counts[TaskStatus.PIPELINED]
    found: npt.NDArray[np.bool_] = (gone > 0) & (scheduled + gone >= columns.min_member) & (waits == 0)
    return found


STAY: Final = "void-nominations-stay"
EXPLAINED: Final = (TaskStatus.ALLOCATED, TaskStatus.PENDING, TaskStatus.PIPELINED)
OF_REPORTED = np.array([TaskStatus.RUNNING, TaskStatus.SUCCEEDED, TaskStatus.FAILED], dtype=np.intp)


def set_condition(session: Session, job: Job, condition: PodGroupCondition) -> None:
    """Replace the condition of that type, or add it (UpdatePodGroupCondition)."""
    conditions = session.conditions.setdefault(job.row, list(job.pod_group.conditions))
    for i, present in enumerate(conditions):
        if present.type == condition.type:
            conditions[i] = condition
            return
    conditions.append(condition)


def update_phases(session: Session, order: JobRows, counts: npt.NDArray[np.int32]) -> npt.NDArray[np.int8]:
    """Return the phase in which each of those jobs ends the cycle, with `counts` [status, job]; the column follows."""
    columns = session.snapshot.jobs
    scheduled, completed = total_of(counts, SCHEDULED_STATUSES), total_of(counts, COMPLETED_STATUSES)
    if "terminating-members" in session.config.pumice.fix:
        scheduled = scheduled + leaving(session)[order]
    unschedulable = np.zeros(len(columns.phase), dtype=np.bool_)
    unschedulable[list(session.unschedulable)] = True
    findings = finding(
        counts[TaskStatus.RUNNING], scheduled, completed, columns.min_member[order], unschedulable[order]
    )
    if "min-member-zero" in session.config.pumice.fix:
        findings[scheduled == 0] = SHORT
    before = columns.phase.take(order)
    phases: npt.NDArray[np.int8] = AFTER_FINDING[before, findings]
    columns.phase[order] = phases
    session.jobs.altered += order[phases != before].tolist()
    return phases


def job_statuses(session: Session) -> list[PodGroupStatus]:
    """Return the PodGroups whose status changed, in job order."""
    columns, order, counts = session.snapshot.jobs, session.jobs.unsettled, session.jobs.counts_of_unsettled()
    # A condition may have changed although phase and counts have not.
    touched = np.zeros(len(columns.phase), dtype=np.bool_)
    touched[list(session.conditions)] = True
    if len(order) < len(columns.order):
        beyond = session.unschedulable.union(session.conditions).difference(order.tolist())
        if beyond:  # a user's plugin has more to say
            order, counts = columns.order, columns.counts.take(columns.order, axis=1)
    parts = update_phases(session, order, counts)[None], counts.take(OF_REPORTED, axis=0)
    found: npt.NDArray[np.int32] = np.concatenate(parts, dtype=np.int32)
    changed = np.logical_or.reduce(found != columns.reported.take(order, axis=1))
    candidates: npt.NDArray[np.intp] = (changed | touched[order]).nonzero()[0]
    numbers: list[list[int]] = found.take(candidates, axis=1).T.tolist()
    told = zip(columns.named(order[candidates]), numbers, strict=True)
    return [written for job, those in told if (written := _job_status(session, job, those)) is not None]


def _job_status(session: Session, job: Job, numbers: list[int]) -> PodGroupStatus | None:
    """Return the status of a job. `numbers`: its phase, then its running, succeeded and failed tasks."""
    phase, running, succeeded, failed = numbers
    spec, conditions = job.pod_group, session.conditions.get(job.row)
    said, label = spec.conditions if conditions is None else tuple(conditions), PHASES[phase]
    now = (label, said, running, succeeded, failed)
    if now == (spec.phase, spec.conditions, spec.running, spec.succeeded, spec.failed):
        return None
    return PodGroupStatus(spec.namespace, spec.name, *now)


def pod_conditions(session: Session) -> list[PodCondition]:
    """Return PodScheduled=False of the tasks that did not get a node, where it or the nomination changes; gated pods
    are left alone.
    """
    written: list[PodCondition] = []
    for job in nominating_jobs(session) if session.options.wordless else jobs_with_waiting_tasks(session):
        if not is_settled(session, job) and not _explain(session, job, written) and _may_settle(session, job):
            job.settled_under = session.config
    return written


def is_settled(session: Session, job: Job) -> bool:
    """Return whether an earlier close found nothing to write about the waiting job and its pods, and nothing about it
    has changed since. On a full cluster a thousand jobs wait from cycle to cycle.
    """
    return job.settled_under is session.config and _may_settle(session, job)


def _may_settle(session: Session, job: Job) -> bool:
    """Return whether all that the close says about the job follows from the job alone."""
    if session.options.wordless or job.row in session.conditions:
        return False
    return session.jobs.all_wait(job) and session.fit.is_silent_on(job)


def _explain(session: Session, job: Job, written: list[PodCondition]) -> bool:
    """Add the conditions of a job's tasks that change; return whether a task has to be looked at again next time."""
    jobs, fit, last = session.jobs, session.fit, session.last_transaction
    otherwise, failed = fit.job_sentence(job) or ALL_NODES_UNAVAILABLE, fit.errors_of(job)
    # Most pods wait for what their job waits for and say so already: one reason for all, and nothing to write.
    shared, stirs = (UNSCHEDULABLE, otherwise), False
    for task in [task for status in EXPLAINED for task in jobs.tasks_in(job, status)]:
        settled = task.condition == shared and not task.nominated and jobs.status[task.row] == TaskStatus.PENDING
        if task.gated or (settled and task.row not in last and task.uid not in failed):
            continue
        stirs = True
        reason, message, nominated = fit.task_reason(job, task)
        message = message or otherwise
        changed, nomination = task.condition != (reason, message), _nomination(session, task, nominated)
        if changed or nomination:
            text = (reason, message) if changed else ("", "")
            written.append(PodCondition(task.namespace, task.name, task.uid, *text, nomination))
    return stirs


def _nomination(session: Session, task: Task, node: str) -> str | None:
    """Return the nomination to be written, for a pod for which room was made on that node ("": nowhere).

    A nomination that did not hold was taken out of the pod that Volcano writes back: whatever is written clears it
    (fix void-nominations-stay: it does not). Source: Volcano `actions/allocate` (invalidateSubJobNomination),
    `cache.taskUnschedulable`.
    """
    known = task.nominated if STAY in session.config.pumice.fix else session.nominated_node(task)
    if node not in ("", known):
        return node
    return "" if known == task.nominated else None


def jobs_with_waiting_tasks(session: Session) -> list[Job]:
    """Return jobs with allocated, pending or pipelined tasks, in job order."""
    waits = total_of(session.jobs.counts_of_unsettled(), EXPLAINED)
    return session.snapshot.jobs.named(session.jobs.unsettled[waits > 0])


def nominating_jobs(session: Session) -> list[Job]:
    """Return jobs with tasks whose nomination was set or cleared: that is more than a change of texts."""
    nominates = session.jobs.columns.counts[TaskStatus.PIPELINED] > 0
    nominates[[session.job_row(task) for task in session.voided]] = True
    return session.jobs.where(nominates)


def let_go(session: Session) -> None:
    """End the session, which must not be used any more.

    Its parts refer to each other: without this its columns would stay until the collector comes, and the next session
    would have to wait for the operating system to hand out as much memory again. A session that is kept stays with its
    columns, for the next one of its kind.
    """
    lease = session.snapshot.lease
    if lease is not None:
        lease.give_back(
            {*session.jobs.moved, *session.nodes.entered},
            {*session.nodes.written(), *session.kube.touched},
            session.jobs.written(),
        )
        if session.kind is not None:
            session.searches.let_go()
            session.derived.give_back()
            lease.sessions.keep(session.kind, session)
            return
    session.derived.give_back()
    session.forget()


def finish(session: Session, status: dict[str, dict[str, int]]) -> CycleResult:
    """Return everything that the cycle writes, in order, and its digest.

    `status`: counts by job and status after the last action, for the report.
    """
    # Both write into the carry, which goes into the result below.
    session.topology.remember()
    session.nominations.remember()
    pod_groups = tuple(job_statuses(session))
    pods = tuple(pod_conditions(session))
    queues = tuple(queue_statuses(session))
    binds, evicts = tuple(session.binds), tuple(session.evicts)
    return CycleResult(
        cycle=session.clock.cycle,
        digest="" if session.options.wordless else digest(binds, evicts, pods, pod_groups, queues),
        binds=binds,
        evicts=evicts,
        pod_conditions=pods,
        pod_groups=pod_groups,
        queues=queues,
        events=() if session.options.wordless else session.fit.admission.events(),
        carry=session.carry.to_dict(),
        report=closing(session, status, session.opening) if session.wants_report else brief(session),
        wake_at=session.wake_at,
        recurs=session.recurs,
        failed=tuple([one for told in session.failed for one in told()]),
    )
