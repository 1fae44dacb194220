# SPDX-License-Identifier: Apache-2.0
"""gangpreempt: make room for a whole gang within a domain by evicting less important jobs of the same queue.

Source: Volcano `actions/gangpreempt` (reference section 1.8).
"""

from __future__ import annotations

from functools import cmp_to_key
from typing import TYPE_CHECKING

from pumice.core.actions.gangs.gang_eviction import GangEviction
from pumice.core.actions.victims.starving import starving_jobs
from pumice.core.life.task import TaskStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.actions.gangs.bundles import Amounts, Bundle
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job

NAME = "gangpreempt"


def execute(session: Session) -> None:
    """Try every starving job once, queue by queue."""
    eviction = GangEviction(session, NAME, _accepts(session), _order(session))
    # Jobs with a topology take part, unlike in preempt.
    starving = starving_jobs(session, every_queue=True)
    while len(starving.queues):
        jobs = starving.jobs.get(starving.queues.pop().name)
        while jobs:
            job = jobs.pop()
            eviction.run(job, eviction.pending(job))


def _accepts(session: Session) -> Callable[[Job, Task, Job], bool]:
    """Return whether the task is bound or running, of a less important job, and in the queue."""
    status, priority = session.jobs.status, session.jobs.priority

    def accepts(job: Job, task: Task, other: Job) -> bool:
        state = status[task.row]
        if state != TaskStatus.RUNNING and state != TaskStatus.BOUND:
            return False
        return other.pod_group.queue == job.pod_group.queue and priority[other.row] < priority[job.row]

    return accepts


def _order(session: Session) -> Callable[[Job, list[Bundle], Amounts], list[Bundle]]:
    """Sort bundles: safe ones before whole jobs; among equal costs (a job has one bundle of each) the job that is last
    in JobOrder first.
    """

    def compare(left: Bundle, right: Bundle) -> int:
        if left.cost != right.cost:
            return left.cost - right.cost
        return 1 if session.points.job_order.before(left.job, right.job) else -1

    def order(_job: Job, bundles: list[Bundle], _need: Amounts) -> list[Bundle]:
        return sorted(bundles, key=cmp_to_key(compare))

    return order
