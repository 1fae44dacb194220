# SPDX-License-Identifier: Apache-2.0
"""The starving jobs, which may evict others, queue by queue, with the pending tasks that they would place. Shared by
the actions that evict. Source: Volcano `actions/preempt`, `actions/reclaim`, `actions/gang*` (the first loop of
Execute).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pumice.core.life.pod_group import OUTSIDE
from pumice.core.life.task import TaskStatus
from pumice.core.session.heap import PriorityQueue
from pumice.core.session.trail.records import Ending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


def is_idle(session: Session) -> bool:
    """Return whether no task waits, for which an action might evict others."""
    return not session.jobs.have_pending()


def starving_jobs(session: Session, *, every_queue: bool, accepts: Callable[[Job], bool] | None = None) -> Starving:
    """Return the admitted, valid, starving jobs. `every_queue`: queues with any valid job take part, starving
    or not.
    """
    starving = Starving(PriorityQueue(session.points.queue_order.before))
    if not session.trail.listens and is_idle(session):
        return starving  # a starving job has nothing to place
    seen: set[str] = set()
    for job, voted in _voted(session, seen if every_queue else None):
        queue, starves = session.queue_of(job), voted
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


def _voted(session: Session, seen: set[str] | None) -> Iterator[tuple[Job, bool]]:
    """Yield admitted jobs in job order, each with whether it starves. Where the answers are columns and no trail
    listens, jobs that do not starve are left out; unless `seen` is a set, which the caller fills: then they come as
    long as their queue is not in it.
    """
    starves = None if session.trail.listens else session.points.job_starving.in_columns()
    if starves is None:
        for job in session.jobs.in_order:
            if not session.jobs.is_pending(job):
                yield job, session.points.job_starving(job)
        return
    columns = session.snapshot.jobs
    rows = session.jobs.rows_where(columns.phase > OUTSIDE)
    starves = starves.take(rows)
    count = -1
    while len(rows):
        worth = starves
        if seen is not None:
            known = [queue.name in seen for queue in session.snapshot.queues]
            worth, count = starves | ~np.array(known).take(columns.queue.take(rows)), len(seen)
        for place in np.nonzero(worth)[0].tolist():
            yield session.jobs.handle(int(rows[place])), bool(starves[place])
            if seen is not None and len(seen) > count:  # fewer of the next jobs are worth a look now
                rows, starves = rows[place + 1 :], starves[place + 1 :]
                break
        else:
            return


def pending_tasks(session: Session, job: Job) -> PopSource[Task]:
    """Return the job's pending tasks without gates, in TaskOrder, best-effort ones included."""
    return session.points.task_order.queue([t for t in session.jobs.tasks_in(job, TaskStatus.PENDING) if not t.gated])
