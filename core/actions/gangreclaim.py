# SPDX-License-Identifier: Apache-2.0
"""gangreclaim: make room for a whole gang within a domain by evicting tasks of other queues.

Source: Volcano `actions/gangreclaim` (reference section 1.8).
"""

from __future__ import annotations

from functools import cmp_to_key
from typing import TYPE_CHECKING

from pumice.core.actions.gangs.gang_eviction import GangEviction
from pumice.core.actions.victims.starving import starving_jobs
from pumice.core.life.task import TaskStatus
from pumice.core.session.trail.records import Ending
from pumice.core.session.victim_order import victim_queue_before

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.actions.gangs.bundles import Amounts, Bundle
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job

NAME = "gangreclaim"


def execute(session: Session) -> None:
    """Try every starving job once, queue by queue; overused queues have no turn."""
    eviction = GangEviction(session, NAME, _accepts(session), _order(session))
    starving = starving_jobs(session, every_queue=True)
    while len(starving.queues):
        queue = starving.queues.pop()
        jobs = starving.jobs.get(queue.name)
        if session.points.overused(queue):
            session.trail.queue_ended(queue.name, Ending.QUEUE_OVERUSED)
            jobs = None
        while jobs:
            job = jobs.pop()
            pending = eviction.pending(job)
            # About all pending tasks together (gangreclaim.go); reclaim asks task by task.
            if not pending or session.points.preemptive(queue, pending):
                eviction.run(job, pending)
            else:
                session.trail.job_ended(job, Ending.MAY_NOT_TAKE)


def _accepts(session: Session) -> Callable[[Job, Task, Job], bool]:
    """Return whether the task runs in another queue that allows reclaim."""
    status = session.jobs.status

    def accepts(job: Job, task: Task, other: Job) -> bool:
        if status[task.row] != TaskStatus.RUNNING or other.pod_group.queue == job.pod_group.queue:
            return False
        return session.queue_of(other).reclaimable

    return accepts


def _order(session: Session) -> Callable[[Job, list[Bundle], Amounts], list[Bundle]]:
    """Sort bundles: safe ones before whole jobs; of one cost by VictimQueueOrder, then by gain."""

    def order(job: Job, bundles: list[Bundle], need: Amounts) -> list[Bundle]:
        gain, own = {id(bundle): bundle.gain(need) for bundle in bundles}, session.queue_of(job)

        def compare(left: Bundle, right: Bundle) -> int:
            if left.cost != right.cost:
                return left.cost - right.cost
            a, b = session.queue_of(left.job), session.queue_of(right.job)
            if a.name != b.name:
                # Asked both ways: queues that both come first, or neither, count as equal, else the sort had no order.
                first = victim_queue_before(session, a, b, own)
                if first != victim_queue_before(session, b, a, own):
                    return -1 if first else 1
            mine, other = (-gain[id(left)], left.identity()), (-gain[id(right)], right.identity())
            return (mine > other) - (mine < other)

        return sorted(bundles, key=cmp_to_key(compare))

    return order
