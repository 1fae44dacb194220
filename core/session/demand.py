"""What admitted jobs have not taken yet, what they may give back, and sums by queue: shared by the plugins that admit
jobs.

Sources: Volcano `plugins/util` (GetInqueueResource), `api/job_info.go` (GetElasticResources, DeductSchGatedResources).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from core.life.pod_group import Phase
from core.life.task import ALLOCATED_STATUSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.resources import Resource
    from core.session.session import Session
    from core.state.columns import FloatArray

BoolArray = npt.NDArray[np.bool_]
OF_ALLOCATED = np.array([*ALLOCATED_STATUSES], dtype=np.intp)


def anybody_asks(session: Session) -> bool:
    """Whether some job waits for admission with minResources: of no other the plugins are asked."""
    columns = session.snapshot.jobs
    asks = (columns.phase <= Phase.PENDING.value) & columns.has_min_resources
    return bool(asks[columns.order].any())


def admitted(session: Session) -> tuple[BoolArray, BoolArray]:
    """Over job rows:

    Inqueue with minResources; Running with minResources and at least minMember tasks of allocated class.
    """
    columns = session.snapshot.jobs
    tasks = np.add.reduce(columns.counts.take(OF_ALLOCATED, axis=0))
    inqueue = (columns.phase == Phase.INQUEUE.value) & columns.has_min_resources
    running = (columns.phase == Phase.RUNNING.value) & columns.has_min_resources & (tasks >= columns.min_member)
    return inqueue, running


def outstanding(session: Session, rows: BoolArray) -> FloatArray:
    """max(minResources - allocated, 0) of those jobs less what their gated tasks ask for, 0 for the others;
    [dimension, job].
    """
    columns = session.snapshot.jobs
    missing = np.maximum(columns.minimum - columns.allocated, 0.0) * rows
    return without_gated(session, missing, rows)


def without_gated(session: Session, amounts: FloatArray, rows: BoolArray) -> FloatArray:
    """Take off what gated tasks of those jobs ask for, never below 0."""
    columns = session.snapshot.jobs
    for row in (rows & (columns.gated > 0)).nonzero()[0].tolist():
        job = columns.handles[row]
        gated = session.jobs.gated_resources(job) if job is not None else None
        if gated is not None:
            for dimension, value in session.dims.items(gated):
                amounts[dimension, row] = max(amounts[dimension, row] - value, 0.0)
    return amounts


def elastic(session: Session) -> FloatArray:
    """max(allocated - minResources, 0) of every job, [dimension, job] (GetElasticResources)."""
    columns = session.snapshot.jobs
    return np.maximum(columns.allocated - columns.minimum, 0.0)


@dataclass(slots=True, eq=False)
class QueueDemand:
    """Sums over the jobs of each queue, float64 [dimension, queue row] (rows in name order).

    `request`: what allocated-class and pending tasks ask for; `inqueue`: what admitted jobs have not taken yet;
    `present` bool: has a job.
    """

    allocated: FloatArray
    request: FloatArray
    inqueue: FloatArray
    elastic: FloatArray
    present: BoolArray


def queue_demand(session: Session) -> QueueDemand:
    """The demand of every queue; sums are added in job order."""
    columns = session.snapshot.jobs
    inqueue, running = admitted(session)
    height = len(session.dims)  # queues may have named scalars that no job has
    wanted = columns.allocated + columns.pending
    owed, spare = outstanding(session, inqueue | running), elastic(session)
    allocated, request, promised, elastic_ = sums_by_queue(session, (columns.allocated, wanted, owed, spare), height)
    present = np.bincount(columns.queue[columns.order], minlength=len(session.snapshot.queues)) > 0
    return QueueDemand(allocated, request, promised, elastic_, present)


def sums_by_queue(session: Session, tables: Sequence[FloatArray], height: int) -> list[FloatArray]:
    """For each table of amounts [line, job] its sums over the jobs of each queue, added in job order: float64
    [height, queue row].
    """
    columns, count = session.snapshot.jobs, len(session.snapshot.queues)
    order, lines = columns.order, len(tables[0])
    # Every queue has a bin in every line, so that one pass adds up a whole table.
    bins = (np.arange(lines)[:, None] * count + columns.queue[order]).ravel()
    size = height * count
    in_order = (table.take(order, axis=1).ravel() for table in tables)
    sums = (np.bincount(bins, weights=amounts, minlength=size) for amounts in in_order)
    return [line.astype(np.float64, copy=False).reshape(height, count) for line in sums]  # of nothing, whole numbers


def over_all(session: Session, amounts: FloatArray) -> Resource:
    """Sum over all jobs of the session, in job order."""
    order = session.snapshot.jobs.order
    if not len(order):
        return session.dims.resource([0.0] * amounts.shape[0])
    return session.dims.resource(np.add.accumulate(amounts.take(order, axis=1), axis=1)[:, -1].tolist())
