# SPDX-License-Identifier: Apache-2.0
"""allocate: place tasks on nodes, the queue with the smallest share first. Source: Volcano `actions/allocate`
(reference section 1.2).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.core.actions.enqueue import is_strict
from pumice.core.actions.placing.domains import Decisions, DomainAllocator
from pumice.core.actions.placing.nomination import allocate_as_nominated
from pumice.core.actions.placing.plainly import FullQueues, PlainRoom, certain_template
from pumice.core.actions.placing.task_loop import allocate_tasks
from pumice.core.actions.placing.worksheet import Worksheet, organize
from pumice.core.life.pod_group import OUTSIDE
from pumice.core.life.task import TaskStatus
from pumice.core.session.action_arguments import caches_errors
from pumice.core.session.heap import PriorityQueue
from pumice.core.session.trail.records import Ending

if TYPE_CHECKING:
    from pumice.core.objects.queue import Queue
    from pumice.core.session.points.orders import JobQueue
    from pumice.core.session.session import Session
    from pumice.core.session.statement import Statement
    from pumice.core.state.jobs import Job


WAITING: Final[int] = TaskStatus.PENDING.value


@dataclass(slots=True)
class AllocateContext:
    """The waiting jobs: queues by QueueOrder, jobs of each queue by JobOrder, their worksheets, and the places chosen
    for them.
    """

    decisions: Decisions
    queues: PriorityQueue[Queue]
    full: FullQueues
    jobs: dict[str, JobQueue] = field(default_factory=dict[str, "JobQueue"])
    worksheets: dict[int, Worksheet] = field(default_factory=dict[int, Worksheet])
    plainly: PlainRoom | None = None

    def worksheet(self, session: Session, job: Job) -> Worksheet:
        """Return what the job has to place."""
        found = self.worksheets.get(job.row)
        if found is None:
            found = self.worksheets[job.row] = organize(session, job)
        return found

    def try_job(self, session: Session, job: Job, *, cache_errors: bool) -> Statement | None:
        """Place what a job waits for; a job that plainly cannot start is not tried."""
        plainly = self.plainly
        if (plainly is not None and plainly.has_failed(job)) or self.full.keeps_out(job):
            return None
        statement = _allocate_job(session, job, self.worksheet(session, job), self.decisions, cache_errors=cache_errors)
        self.full.failed(job) if statement is None else self.full.placed()
        if plainly is not None:
            plainly.failed(job) if statement is None else plainly.placed()
        return statement


def is_idle(session: Session) -> bool:
    """Return whether no job has a task that the action may place, and none is to be admitted here."""
    columns, admits = session.snapshot.jobs, "enqueue" not in session.config.actions
    # Copies that a replay left may be listed as pending although the columns say placed.
    if session.jobs.listings:
        return False
    # One look at one line of numbers answers in most cycles.
    if not admits and not np.count_nonzero(columns.counts[WAITING]):
        return True
    outside = columns.phase <= OUTSIDE
    busy = (columns.counts[WAITING] > 0) & ~outside
    return not session.jobs.holds_for_any(busy | outside if admits else busy)


def execute(session: Session) -> None:
    """Allocate until no queue has a job left that may try.

    Under the fix nominated-domains-last tasks that room was made for come before all others.
    """
    # Where a task waits, the context below finds the same out, and is needed anyway.
    if not np.count_nonzero(session.snapshot.jobs.counts[WAITING]) and is_idle(session):
        caches_errors(session, "allocate")  # the carry says that the action has read its argument
        return
    nominated = session.nominations.rows()
    if nominated:
        _drain(session, build_context(session, nominated))
    _drain(session, build_context(session))


def _drain(session: Session, context: AllocateContext) -> None:
    cache_errors = caches_errors(session, "allocate")
    queues = context.queues
    while queues:
        queue = queues.pop()
        # Not pushed back: an overused queue gets no further turn in this session.
        if session.points.overused(queue):
            session.trail.queue_ended(queue.name, Ending.QUEUE_OVERUSED, context.jobs.get(queue.name))
            continue
        jobs = context.jobs.get(queue.name)
        if not jobs:
            continue
        job = jobs.pop()
        session.trail.job_turn(job, jobs)
        statement = context.try_job(session, job, cache_errors=cache_errors)
        # A statement of a job that is only promised room is neither committed nor undone: it holds its room to the
        # session's end.
        if statement is not None and session.job_ready(job):
            statement.commit()
            session.trail.job_ended(job, Ending.COMMITTED)
            _settle(session, job, context.decisions)
            # The task loop stops at the minimum of a group; the rest of the job gets its turns behind other jobs.
            if not context.worksheet(session, job).empty:
                jobs.push(job)
        elif statement is not None and "discard-pipelined-only" in session.config.pumice.fix:
            statement.discard()
            session.trail.job_ended(job, Ending.DISCARDED)
        else:
            session.trail.job_ended(job, Ending.DISCARDED if statement is None else Ending.PROMISED)
        if not is_strict(session, queue) or session.job_ready(job):
            queues.push(queue)
        else:
            session.trail.queue_ended(queue.name, Ending.NO_TURN, jobs)


def build_context(session: Session, only: frozenset[int] | None = None) -> AllocateContext:
    """Return every valid, admitted job with tasks to place, in job order; `only`: of these rows."""
    plainly = PlainRoom(session) if session.options.wordless else None
    queues: PriorityQueue[Queue] = PriorityQueue(session.points.queue_order.before)
    context = AllocateContext(Decisions(session), queues, FullQueues(session), plainly=plainly)
    # Without enqueue no other action admits jobs (allocate.go).
    if "enqueue" not in session.config.actions:
        for job in session.jobs.where(session.snapshot.jobs.phase <= OUTSIDE):
            if only is None or job.row in only:
                session.jobs.admit(job)
    columns = session.snapshot.jobs
    has_pending = columns.counts[WAITING] > 0
    # A group may list a copy as pending while its job has no pending task (see core/session/statement.py).
    if session.jobs.listings:
        has_pending[list(session.copies.waiting_jobs())] = True
    for job in session.jobs.where(has_pending & (columns.phase > OUTSIDE)):
        if only is not None and job.row not in only:
            continue
        if (plainly is not None and plainly.has_none(job)) or not session.job_is_valid(job):
            continue
        # Volcano leaves such jobs out until its HyperNodes are ready; all other jobs go on.
        if not session.topology.is_ready and session.topology.is_asked_for(job):
            session.trail.job_ended(job, Ending.TOPOLOGY_UNFIT, session.topology.tree.problem)
            continue
        if certain_template(session, job) is None and context.worksheet(session, job).empty:
            session.trail.job_ended(job, Ending.NOTHING_TO_PLACE)
            continue
        queue = session.queue_of(job)
        if queue.name not in context.jobs:
            context.jobs[queue.name] = session.points.job_order.queue()
            context.queues.push(queue)
        context.jobs[queue.name].push(job)
    return context


def _allocate_job(
    session: Session, job: Job, worksheet: Worksheet, decisions: Decisions, *, cache_errors: bool
) -> Statement | None:
    """Place the job by domains where a topology or groups ask for it; otherwise as one group of tasks over all
    nodes.
    """
    if _by_domains(session, job):
        return DomainAllocator(session, decisions, cache_errors=cache_errors).allocate(job, worksheet)
    sub_job = session.sub_jobs(job)[job.key]
    tasks = worksheet.tasks[job.key]
    if sub_job.nominated_hyper_node:
        statement = allocate_as_nominated(session, sub_job, tasks, cache_errors=cache_errors)
        if statement is not None:
            return statement
    return allocate_tasks(session, sub_job, tasks, session.topology.tree.top, cache_errors=cache_errors)


def _by_domains(session: Session, job: Job) -> bool:
    return session.has_sub_job_policy(job) or session.topology.is_hard(job)


def _settle(session: Session, job: Job, decisions: Decisions) -> None:
    """Note that the job's statement was committed: the job occupies the chosen places, and its nomination is
    redeemed.
    """
    if _by_domains(session, job):
        decisions.apply(job)
    else:
        session.sub_jobs(job)[job.key].nominated_hyper_node = ""
