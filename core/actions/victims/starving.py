# SPDX-License-Identifier: Apache-2.0
"""The starving jobs, which may evict others, queue by queue, with the pending tasks that they would place. Shared by
the actions that evict. Source: Volcano `actions/preempt`, `actions/reclaim`, `actions/gang*` (the first loop of
Execute).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pumice.core.life.task import TaskStatus
from pumice.core.session.heap import PriorityQueue
from pumice.core.session.trail.records import Ending

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.session.heap import PopSource
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job


@dataclass(slots=True)
class Starving:
    """Starving jobs by queue. `queues` by QueueOrder; `jobs`: starving jobs by queue name, in JobOrder; `found`: the
    same jobs, in job order.
    """

    queues: PriorityQueue[Queue]
    jobs: dict[str, PriorityQueue[Job]] = field(default_factory=dict[str, "PriorityQueue[Job]"])
    found: dict[str, list[Job]] = field(default_factory=dict[str, "list[Job]"])


def starving_jobs(session: Session, *, every_queue: bool, accepts: Callable[[Job], bool] | None = None) -> Starving:
    """Return the admitted, valid, starving jobs. `every_queue`: queues with any valid job take part, starving
    or not.
    """
    starving = Starving(PriorityQueue(session.points.queue_order.before))
    seen: set[str] = set()
    for job in session.jobs.in_order:
        if session.jobs.is_pending(job):
            continue
        queue = session.queue_of(job)
        starves = session.points.job_starving(job)
        if not starves:
            session.trail.job_ended(job, Ending.NOT_STARVING)
        elif accepts is not None and not accepts(job):
            session.trail.job_ended(job, Ending.ASKS_FOR_TOPOLOGY)
            starves = False
        if not starves and (not every_queue or queue.name in seen):
            continue
        if not session.job_is_valid(job):
            continue
        if (every_queue or starves) and queue.name not in seen:
            seen.add(queue.name)
            if every_queue:
                starving.queues.push(queue)
        if starves:
            if queue.name not in starving.jobs:
                starving.jobs[queue.name] = PriorityQueue(session.points.job_order.before)
                starving.found[queue.name] = []
            starving.jobs[queue.name].push(job)
            starving.found[queue.name].append(job)
    if not every_queue:  # queues are pushed once all jobs are known, by name
        for name in sorted(seen):
            starving.queues.push(session.queues[name])
    return starving


def pending_tasks(session: Session, job: Job) -> PopSource[Task]:
    """Return the job's pending tasks without gates, in TaskOrder, best-effort ones included."""
    return session.points.task_order.queue([t for t in session.jobs.tasks_in(job, TaskStatus.PENDING) if not t.gated])
