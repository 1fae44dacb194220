# SPDX-License-Identifier: Apache-2.0
"""The report of a session for readers: statuses, phases, queue numbers, filters and scores at opening."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Protocol

import numpy as np

from pumice.core.life.pod_group import LABELS as PHASES
from pumice.core.life.task import COUNT, LABELS, TaskStatus
from pumice.core.messages.decisions import BindingJob, CycleReport, PendingReason, TaskAtOpen
from pumice.core.messages.queue_tables import CardTable, JobShares, QueueTables, readable
from pumice.core.session.fit import ALL_NODES_UNAVAILABLE
from pumice.core.session.reasons import FitFailure
from pumice.core.session.search.node_search import ErrorCache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pumice.core.objects.pod import Task
    from pumice.core.resources import Resource

    Owned = Callable[[], Iterable[tuple[Task, dict[str, float]]]]
    Texts = Callable[[], dict[str, dict[str, str]]]
    from collections.abc import Callable, Iterable, Sequence

    from pumice.core.session.session import Session

# --- Tellers


class QueueTeller(Protocol):
    """A plugin that orders queues. It works with copies, so that it can be asked at any time, also after the session;
    None: no answer.
    """

    def gauges(self) -> QueueTables | None:
        """Return Volcano's metrics as they were when the session opened."""
        ...

    def amounts(self) -> QueueTables | None:
        """Return what the plugin knows besides (guarantee, inqueue, elastic, real_capacity at opening)."""
        ...

    def share_now(self, queue: str) -> float | None:
        """Return the present share of a queue that has a job; asked only while the session is open."""
        ...

    def held_now(self, queue: str) -> Resource | None:
        """Return the amount that a queue with a job holds now; asked only while the session is open."""
        ...

    def verdicts(self) -> QueueTables | None:
        """Return which queues are overused now."""
        ...


@dataclass(slots=True)
class Tellers:
    """The tellers of a session, in the order in which they were opened.

    `queues`: see QueueTeller; `owned`: (task, what its devices amount to) of allocated pods, in milli-units by
    resource; `annotated`: pod ("namespace/name") -> annotation -> value; `numa`: node -> resource -> CPUs that are
    free in its cells; `shares`: who has how much of the cluster, also when the session is over.
    """

    queues: list[QueueTeller] = field(default_factory=list["QueueTeller"])
    owned: list[Owned] = field(default_factory=list["Owned"])
    annotated: list[Texts] = field(default_factory=list["Texts"])
    numa: list[Texts] = field(default_factory=list["Texts"])
    shares: list[Callable[[], JobShares]] = field(default_factory=list["Callable[[], JobShares]"])


APART = "gauges-kept-apart"


@dataclass(slots=True)
class Opening:
    """The facts that were known when the session opened."""

    tasks: dict[str, TaskAtOpen] = field(default_factory=dict[str, TaskAtOpen])


def at_open(session: Session) -> Opening:
    """Return filters and scores of the requested tasks."""
    wanted = session.options.explain
    tasks = {key: task_at_open(session, task) for key in wanted if (task := _pending_task(session, key)) is not None}
    return Opening(tasks)


def _pending_task(session: Session, key: str) -> Task | None:
    return next((t for t in session.snapshot.tasks.handles if t is not None and t.key == key), None)


def gauges_of(tellers: Iterable[QueueTeller], apart: bool) -> tuple[QueueTables, ...]:
    """Return Volcano's metrics. They are the same for all plugins: a gauge that one plugin names and the next does not
    is set to 0, unless they are kept `apart`.
    """
    tables = _said(teller.gauges() for teller in tellers)
    alike = all(each.queues == tables[0].queues for each in tables)
    # Volcano's gauges are global (metrics/queue.go), so what one plugin sets another overwrites.
    return tables if apart or len(tables) < 2 or not alike else (reduce(QueueTables.then, tables),)


def amounts_of(tellers: Sequence[QueueTeller]) -> tuple[QueueTables, ...]:
    """Return the amounts that have no metrics."""
    return _said((*[teller.amounts() for teller in tellers], *[teller.verdicts() for teller in tellers]))


def _said(answers: Iterable[QueueTables | None]) -> tuple[QueueTables, ...]:
    return tuple([answer for answer in answers if answer is not None])


def tables_later(session: Session, *, amounts: bool = True) -> Callable[[], tuple[QueueTables, ...]]:
    """Return all answers, or those without the `amounts` that have no metrics, for readers after the session, which
    are rare.
    """
    tellers, apart = _tellers_later(session), keeps_apart(session)
    return lambda: (*gauges_of(tellers().queues, apart), *(amounts_of(tellers().queues) if amounts else ()))


def _tellers_later(session: Session) -> Callable[[], Tellers]:
    tellers = session.tellers
    # A spared session has not opened the plugins that would answer; they are opened for the first reader.
    return session.later or (lambda: tellers)


def cards_later(session: Session) -> Callable[[], CardTable]:
    """Return a function for the use of each virtual GPU, in the same way."""
    devices = session.devices
    return lambda: next((table for each in devices if (table := each.table()) is not None), CardTable())


def shares_later(session: Session) -> Callable[[], JobShares]:
    """Return a function for each job's share of the cluster, in the same way."""
    tellers = _tellers_later(session)
    return lambda: next((told() for told in tellers().shares), JobShares())


def keeps_apart(session: Session) -> bool:
    """Return whether no plugin sets another one's gauges to 0."""
    return APART in session.config.pumice.fix


def task_at_open(session: Session, task: Task) -> TaskAtOpen:
    """Return the answers of filters and scores about a task, without room.

    The session forgets that it was asked: preempt looks at what went through PrePredicate, and decides by it.
    """
    asked_before, counted = task.row in session.pre_filtered, session.counted.get(task.row)
    try:
        return _task_at_open(session, task)
    finally:
        if not asked_before:
            # Undone: a cycle with a reader must decide what a cycle without one decides.
            session.pre_filtered.discard(task.row)
        session.counted.pop(task.row, None)
        if counted is not None:
            session.counted[task.row] = counted


def _task_at_open(session: Session, task: Task) -> TaskAtOpen:
    try:
        search = session.search_for(task, room=False)
    except FitFailure as failure:
        return TaskAtOpen(pre_predicate=str(failure))
    # Without the error cache: a reader wants each node's own reason, not the one remembered for its role.
    search.refresh(ErrorCache(enabled=False))
    names = session.nodes.names
    rejected: dict[str, str] = {}
    for row in np.flatnonzero(search.codes).tolist():
        texts = ", ".join(reason.text for reason in session.reasons.reasons(int(search.codes[row])))
        rejected[names[row]] = f"task {task.key} on node {names[row]} fit failed: {texts}"
    rows = np.flatnonzero(search.codes == 0)
    totals = search.scoring.totals(rows)
    return TaskAtOpen(
        "", rejected, {names[row]: float(total) for row, total in zip(rows.tolist(), totals.tolist(), strict=True)}
    )


def task_status(session: Session) -> dict[str, dict[str, int]]:
    """Return job -> status -> number of tasks, after the last action."""
    counts = session.jobs.counts
    return {
        job.key: {LABELS[s]: n for s in range(COUNT) if (n := int(counts[s][job.row]))} for job in session.jobs.in_order
    }


def brief(session: Session) -> CycleReport:
    """Return the part of the report that costs next to nothing, for metrics."""
    return CycleReport(
        unready=dict(session.unready),
        binding=binding_jobs(session),
        created=tuple([task.created for task in session.bound]),
        obstacles=dict(session.fit.obstacles),
        troubles=dict(session.fit.troubles),
    )


def binding_jobs(session: Session) -> dict[str, BindingJob]:
    """Return the jobs of this session's binds."""
    some_task = {task.job: task for task in session.bound}
    jobs = {key: session.job_of(task) for key, task in some_task.items()}
    return {key: BindingJob(job.pod_group.queue, job.pod_group.created) for key, job in jobs.items() if job is not None}


def closing(session: Session, status: dict[str, dict[str, int]], opening: Opening) -> CycleReport:
    """Return the whole report, made after everything else is written."""
    nodes, jobs = session.nodes.names, session.jobs
    pipelined: dict[str, str] = {}
    uncommitted: dict[str, str] = {}
    for job in jobs.in_order:
        for where, state in ((pipelined, TaskStatus.PIPELINED), (uncommitted, TaskStatus.ALLOCATED)):
            for task in jobs.tasks_in(job, state):
                where[task.key] = nodes[jobs.node[task.row]]
    tellers = session.tellers
    gauges, amounts = gauges_of(tellers.queues, keeps_apart(session)), amounts_of(tellers.queues)
    return CycleReport(
        pipelined=pipelined,
        uncommitted=uncommitted,
        phases={job.key: PHASES[jobs.phase[job.row]] for job in jobs.in_order},
        task_status=status,
        conditions={job.key: session.conditions.get(job.row, list(job.pod_group.conditions)) for job in jobs.in_order},
        pending=pending_reasons(session),
        queues=readable(gauges),
        queue_amounts=readable(amounts),
        unready=dict(session.unready),
        tasks_at_open=opening.tasks,
        binding=binding_jobs(session),
        created=tuple(task.created for task in session.bound),
        pod_annotations=_told_by(tellers.annotated),
        numa_allocatable=_told_by(tellers.numa),
        obstacles=dict(session.fit.obstacles),
        troubles=dict(session.fit.troubles),
    )


def _told_by(tellers: Iterable[Texts]) -> dict[str, dict[str, str]]:
    """Return the plugins' answers about pods or nodes."""
    found: dict[str, dict[str, str]] = {}
    for ask in tellers:
        for name, said in ask().items():
            found.setdefault(name, {}).update(said)
    return found


def pending_reasons(session: Session) -> dict[str, PendingReason]:
    """Return for each pod that is still pending the reason and message of its condition, whether or not that had to be
    written."""
    reasons: dict[str, PendingReason] = {}
    for job in session.jobs.in_order:
        waiting = session.jobs.tasks_in(job, TaskStatus.PENDING)
        otherwise = session.fit.job_sentence(job) or ALL_NODES_UNAVAILABLE if waiting else ""
        for task in waiting:
            reason, message, _ = session.fit.task_reason(job, task)
            if task.gated:
                gates = ", ".join(task.template.scheduling_gates)
                reason, message = "SchedulingGated", f"waits for its scheduling gates: {gates}"
            reasons[task.key] = PendingReason(reason, message or otherwise)
    return reasons
