"""enqueue: admit pending jobs, queue by queue in turn. Source: Volcano `actions/enqueue` (reference section 1.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.life.pod_group import OUTSIDE
from pumice.core.objects.metadata import section
from pumice.core.session.heap import PriorityQueue
from pumice.core.session.trail.records import Ending

if TYPE_CHECKING:
    from pumice.core.objects.queue import Queue
    from pumice.core.session.points.orders import JobQueue
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job


def is_idle(session: Session) -> bool:
    """Return whether no job is pending."""
    return not session.jobs.holds_for_any(session.snapshot.jobs.phase <= OUTSIDE)


def execute(session: Session) -> None:
    """Move jobs to Inqueue in the session's columns; it is written when the session closes."""
    pending = session.jobs.where(session.snapshot.jobs.phase <= OUTSIDE)
    if not pending:
        return
    queues: PriorityQueue[Queue] = PriorityQueue(session.points.queue_order.before)
    waiting: dict[str, JobQueue] = {}
    rows: list[int] = session.jobs.by_queue.rows.tolist()
    for row in dict.fromkeys(rows):  # the queues that have a job, as the jobs come
        queues.push(session.snapshot.queues[row])
    for job in pending:
        name = job.pod_group.queue
        if name not in waiting:
            waiting[name] = session.points.job_order.queue()
        waiting[name].push(job)
    while queues:
        queue = queues.pop()
        jobs = waiting.get(queue.name)
        if not jobs:
            continue
        job = jobs.pop()
        session.trail.job_turn(job, jobs)
        # Pushed back after a rejection, too: enqueue.go tries the next job of the queue.
        if _admit(session, job) or not is_strict(session, queue):
            queues.push(queue)
    for name, jobs in waiting.items():
        if jobs:
            session.trail.queue_ended(name, Ending.NO_TURN, jobs)


def is_strict(session: Session, queue: Queue) -> bool:
    """Return whether no job may overtake the queue's first job: dequeueStrategy fifo, read under the fix
    dequeue-strategy.
    """
    if "dequeue-strategy" not in session.config.pumice.fix:
        return False
    return section(queue.queue, "spec").get("dequeueStrategy") == "fifo"


def _admit(session: Session, job: Job) -> bool:
    # A job without minResources is admitted unasked, even into a closed queue.
    asks = job.pod_group.min_resources is not None
    rejecter = session.points.job_enqueueable.rejecter(job) if asks else None
    if rejecter is None:
        session.points.job_enqueued(job)
        session.jobs.admit(job)
        session.trail.job_ended(job, Ending.ADMITTED)
        return True
    session.fit.not_admitted[job.row] = rejecter
    session.trail.job_ended(job, Ending.NOT_ADMITTED, rejecter)
    return False
