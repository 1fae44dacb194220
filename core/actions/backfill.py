# SPDX-License-Identifier: Apache-2.0
"""backfill: place tasks without requests wherever the filters allow it. Source: Volcano `actions/backfill` (reference
section 1.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.core.life.pod_group import OUTSIDE
from pumice.core.life.task import TaskStatus
from pumice.core.session.action_arguments import caches_errors
from pumice.core.session.heap import PriorityQueue
from pumice.core.session.reasons import FitErrors, FitFailure
from pumice.core.session.search.node_search import ErrorCache
from pumice.core.session.trail.records import Ending

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.session.points.nodes import BoolArray
    from pumice.core.session.points.orders import JobQueue
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job


PROMISED: Final[int] = TaskStatus.PIPELINED.value


def is_idle(session: Session) -> bool:
    """Return whether no job has a task that it may place."""
    columns = session.snapshot.jobs
    # Two looks at one line of numbers each answer in most cycles.
    if not np.count_nonzero(columns.best_effort) and not np.count_nonzero(columns.counts[PROMISED]):
        return True
    return not session.jobs.holds_for_any(_candidates(session))


def execute(session: Session) -> None:
    """Place best-effort tasks one by one; a failure does not stop the others."""
    cache_errors = caches_errors(session, "backfill")
    if is_idle(session):
        return
    for task in pick_up(session):
        # Each task has an error cache of its own, as in backfill.go.
        _backfill(session, task, ErrorCache(cache_errors))


def _backfill(session: Session, task: Task, cache: ErrorCache) -> None:
    job = session.job_of(task)
    assert job is not None
    try:
        # No question of room: the task asks for none.
        search = session.search_for(task, room=False)
    except FitFailure as failure:
        session.fit.record(job, None, task, session.fit.everywhere(failure.reason))
        session.trail.task_ended(task, Ending.NO_NODE)
        return
    search.refresh(cache)
    node, codes = search.choose()
    if node < 0:
        if codes.all():  # else nodes would do, but they could not be scored
            session.fit.record(job, None, task, FitErrors(session.reasons, codes.copy()))
        session.trail.task_ended(task, Ending.NO_NODE)
        return
    if session.allocate_now(task, node):
        session.trail.task_ended(task, Ending.PLACED)
    else:
        session.trail.task_ended(task, Ending.PLACEMENT_REFUSED, session.objection, node)


def pick_up(session: Session) -> list[Task]:
    """Return pending best-effort tasks and pipelined ones (un-pipelined first), in queue, job and task order, each
    drained.
    """
    queues: PriorityQueue[Queue] = PriorityQueue(session.points.queue_order.before)
    jobs: dict[str, JobQueue] = {}
    tasks: dict[int, PriorityQueue[Task]] = {}
    for job in session.jobs.where(_candidates(session)):
        if not session.job_is_valid(job):
            continue
        found = _best_effort_tasks(session, job)
        if not found:
            continue
        tasks[job.row] = PriorityQueue(session.points.task_order.before, found)
        queue = session.queue_of(job)
        if queue.name not in jobs:
            queues.push(queue)
            jobs[queue.name] = session.points.job_order.queue()
        jobs[queue.name].push(job)
    picked: list[Task] = []
    while queues:
        # Not pushed back: queues do not take turns here, and shares are not compared again (backfill.go).
        of_queue = jobs[queues.pop().name]
        while of_queue:
            job = of_queue.pop()
            session.trail.job_turn(job, of_queue)
            of_job = tasks[job.row]
            while of_job:
                picked.append(of_job.pop())
    return picked


def _candidates(session: Session) -> BoolArray:
    columns = session.snapshot.jobs
    has_candidates = (columns.best_effort > 0) | (columns.counts[PROMISED] > 0)
    found: BoolArray = has_candidates & (columns.phase > OUTSIDE)
    return found


def _best_effort_tasks(session: Session, job: Job) -> list[Task]:
    pending = [t for t in session.jobs.tasks_in(job, TaskStatus.PENDING) if t.template.best_effort and not t.gated]
    promised = [t for t in session.jobs.tasks_in(job, TaskStatus.PIPELINED) if t.template.best_effort]
    for task in promised:
        # An earlier action promised it room; backfill.go takes the promise back and tries again.
        session.statement().unpipeline(task)
    return [*pending, *promised]
