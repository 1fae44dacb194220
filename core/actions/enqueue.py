# SPDX-License-Identifier: Apache-2.0
"""enqueue: admit pending jobs, queue by queue in turn. Source: Volcano `actions/enqueue` (reference section 1.1)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pumice.core.life.pod_group import OUTSIDE
from pumice.core.objects.metadata import section
from pumice.core.session.heap import PriorityQueue
from pumice.core.session.trail.records import Ending
from pumice.core.state.derived import memory
from pumice.core.state.sources import NOTHING as NO_PARTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from pumice.core.objects.queue import Queue
    from pumice.core.session.demand import JobRows
    from pumice.core.session.points.orders import JobQueue
    from pumice.core.session.points.votes import Refusals
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job


FIFO: Final = "dequeue-strategy"


def is_idle(session: Session) -> bool:
    """Return whether no job is pending."""
    return not session.jobs.holds_for_any(session.snapshot.jobs.phase <= OUTSIDE)


def execute(session: Session) -> None:
    """Move jobs to Inqueue in the session's columns; it is written when the session closes."""
    rows = session.jobs.rows_where(session.snapshot.jobs.phase <= OUTSIDE)
    if not len(rows):
        return
    refusals, turns = session.points.job_enqueueable.in_columns, _turns(session, rows)
    if refusals is None or turns is None:
        _one_by_one(session, rows)
        return
    refused = _refused(session, rows, refusals)
    if np.count_nonzero(refused) == len(rows):
        # Where none is admitted turns decide nothing: on a full cluster that is so in nearly every cycle.
        _refuse(session, rows)
        return
    if session.options.wordless:
        # The reason of a rejection is not read, and a rejection lasts: only the other jobs need their turns.
        rows = rows[~refused]
    _in_columns(session, turns(rows), refusals)


def _turns(session: Session, rows: JobRows) -> Callable[[JobRows], JobRows] | None:
    """Return what puts these jobs, or some of them, in the order of their turns when that order is known beforehand: it
    follows from keys and columns, and admissions change neither. None where a plugin may decide otherwise, where a
    queue waits for its first job, where in-queue sums may shrink, and for a trail, which records each turn.
    """
    points = session.points
    key, numbers = points.queue_order.key, points.job_order.columns
    if key is None or numbers is None or FIFO in session.config.pumice.fix or session.trail.listens:
        return None
    if np.minimum.reduce(session.snapshot.jobs.minimum.take(rows, axis=1), axis=None) < 0:
        return None
    return lambda some: _in_turn(session, some, key, numbers)


def _in_turn(
    session: Session, rows: JobRows, key: Callable[[Queue], Any], numbers: Sequence[npt.NDArray[Any]]
) -> JobRows:
    columns, queues = session.snapshot.jobs, session.snapshot.queues
    of = columns.queue.take(rows)
    present: list[int] = np.unique(of).tolist()
    rank = np.zeros(len(queues), dtype=np.intp)
    rank[sorted(present, key=lambda row: key(queues[row]))] = np.arange(len(present))
    # Rows come by "namespace/name", the last key of all, and lexsort is stable.
    less = columns.created.take(rows), *[column.take(rows) for column in reversed(numbers)]
    return rows[np.lexsort((*less, rank[of]))]


def _in_columns(session: Session, rows: JobRows, refusals: tuple[Refusals, ...]) -> None:
    """Ask about all jobs in one call, and one by one only about those that would be admitted: asking for each waiting
    job took 17 us in every cycle.
    """
    while len(rows):
        turn = 0
        for place in np.logical_not(_refused(session, rows, refusals)).nonzero()[0].tolist():
            _refuse(session, rows[turn:place])
            turn = place + 1
            # After a first rejection the columns say who else is rejected by now.
            if not _admit(session, session.jobs.handle(rows[place])):
                break
        else:
            _refuse(session, rows[turn:])
            return
        rows = rows[turn:]


def _refused(session: Session, rows: JobRows, refusals: tuple[Refusals, ...]) -> npt.NDArray[np.bool_]:
    """Return which of the jobs are rejected now."""
    refused = np.zeros(len(rows), dtype=np.bool_)
    # A job without minResources is admitted unasked.
    asking = session.snapshot.jobs.has_min_resources.take(rows)
    asked = np.count_nonzero(asking)
    for refuses in refusals:
        refused |= refuses.of(rows)
        refused &= asking
        # What the first plugin rejects needs no further one, which would gather its amounts for that alone.
        if np.count_nonzero(refused) == asked:
            break
    return refused


def _refuse(session: Session, rows: JobRows) -> None:
    """Reject jobs that have their turns while nothing changes: one job of each sort is asked for, and the others get
    its answer.
    """
    if session.options.wordless or not len(rows):
        return
    for same in _alike(session, rows):
        job = session.jobs.handle(int(same[0]))
        plugin = session.points.job_enqueueable.rejecter(job)
        if plugin is None:
            raise AssertionError(f"{job.key} is rejected in columns only")
        session.fit.admission.reject(same, plugin)


def _alike(session: Session, rows: JobRows) -> list[JobRows]:
    """Return these jobs by sort, of equal queue and minimum; each sort in the order of turns."""
    columns, last = session.snapshot.jobs, _last_sorts(session)
    marks = np.concatenate((columns.queue.take(rows)[None], columns.minimum.take(rows, axis=1)))
    made_of = rows.tobytes(), marks.tobytes()
    if last.made_of != made_of:
        order = np.lexsort(marks)  # stable: the first of each sort is the one whose turn comes first
        marks = marks.take(order, axis=1)
        begins: list[int] = (np.logical_or.reduce(marks[:, 1:] != marks[:, :-1]).nonzero()[0] + 1).tolist()
        in_order = rows.take(order)
        last.sorts = [in_order[begin:end] for begin, end in pairwise([0, *begins, len(rows)])]
        last.made_of = made_of
    return last.sorts


class LastSorts:
    """The sorts of the jobs that were last rejected: on a full cluster the same jobs wait in every cycle."""

    __slots__ = ("made_of", "sorts")

    def __init__(self) -> None:
        self.made_of: tuple[bytes, bytes] | None = None
        self.sorts: list[JobRows] = []


@memory(NO_PARTS)
def _last_sorts(_nothing: None) -> LastSorts:
    return LastSorts()


def _one_by_one(session: Session, rows: JobRows) -> None:
    queues: PriorityQueue[Queue] = PriorityQueue(session.points.queue_order.before)
    waiting: dict[str, JobQueue] = {}
    of_jobs: list[int] = session.jobs.by_queue.rows.tolist()
    for row in dict.fromkeys(of_jobs):  # the queues that have a job, as the jobs come
        queues.push(session.snapshot.queues[row])
    for job in session.snapshot.jobs.named(rows):
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
    if FIFO not in session.config.pumice.fix:
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
    session.fit.admission.reject(np.array([job.row], dtype=np.intp), rejecter)
    session.trail.job_ended(job, Ending.NOT_ADMITTED, rejecter)
    return False
