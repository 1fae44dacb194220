"""What admitted jobs have not taken yet, what they may give back, and sums by queue: shared by the plugins that admit
jobs.

Sources: Volcano `plugins/util` (GetInqueueResource), `api/job_info.go` (GetElasticResources, DeductSchGatedResources).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from core.life.pod_group import PodGroupPhase
from core.life.task import ALLOCATED_STATUSES
from core.once import once
from core.session.jobs import gated_request

if TYPE_CHECKING:
    from core.resources import Resource
    from core.session.session import Session
    from core.state.columns import FloatArray
    from core.state.dimensions import Dimensions
    from core.state.snapshot import JobColumns

BoolArray = npt.NDArray[np.bool_]
OF_ALLOCATED = np.array([*ALLOCATED_STATUSES], dtype=np.intp)


def anybody_asks(session: Session) -> bool:
    """Whether some job waits for admission with minResources: of no other the plugins are asked."""
    columns = session.snapshot.jobs
    return session.jobs.holds_for_any((columns.phase <= PodGroupPhase.PENDING.value) & columns.has_min_resources)


def admitted(columns: JobColumns) -> tuple[BoolArray, BoolArray]:
    """Over job rows:

    Inqueue with minResources; Running with minResources and at least minMember tasks of allocated class.
    """
    tasks = np.add.reduce(columns.counts.take(OF_ALLOCATED, axis=0))
    inqueue = (columns.phase == PodGroupPhase.INQUEUE.value) & columns.has_min_resources
    running = (columns.phase == PodGroupPhase.RUNNING.value) & columns.has_min_resources & (tasks >= columns.min_member)
    return inqueue, running


def outstanding(columns: JobColumns, dims: Dimensions, rows: BoolArray) -> FloatArray:
    """max(minResources - allocated, 0) of those jobs less what their gated tasks ask for, 0 for the others;
    [dimension, job].
    """
    return without_gated(columns, dims, np.maximum(columns.minimum - columns.allocated, 0.0) * rows, rows)


def without_gated(columns: JobColumns, dims: Dimensions, amounts: FloatArray, rows: BoolArray) -> FloatArray:
    """Take off what gated tasks of those jobs ask for, never below 0."""
    for row in (rows & (columns.gated > 0)).nonzero()[0].tolist():
        job = columns.handles[row]
        gated = gated_request(job) if job is not None else None
        if gated is not None:
            for dimension, value in dims.items(gated):
                amounts[dimension, row] = max(amounts[dimension, row] - value, 0.0)
    return amounts


class QueueDemand:
    """Sums over the jobs of each queue as the session opens, float64 [dimension, queue row] (rows in name order).

    `request`: what allocated-class and pending tasks ask for; `present` bool: has a job.
    """

    def __init__(self, session: Session) -> None:
        columns = session.snapshot.jobs
        self._dims, self._columns = session.dims, columns.as_they_are()
        self._by_queue = by_queue = session.jobs.by_queue
        self._height = len(session.dims)  # queues may name scalars that no job has
        self.allocated, self.request = self._sums(columns.allocated, columns.allocated + columns.pending)
        self.present: BoolArray = np.bincount(by_queue.rows, minlength=by_queue.count) > 0

    @once
    def inqueue(self) -> FloatArray:
        """What admitted jobs have not taken yet. Asked for at admissions, and by readers."""
        rows = np.logical_or(*admitted(self._columns))
        return self._sums(outstanding(self._columns, self._dims, rows))[0]

    @once
    def elastic(self) -> FloatArray:
        """max(allocated - minResources, 0) of the jobs (GetElasticResources). Asked for as seldom."""
        return self._sums(np.maximum(self._columns.allocated - self._columns.minimum, 0.0))[0]

    def _sums(self, *tables: FloatArray) -> list[FloatArray]:
        sums = self._by_queue.sums(*tables).reshape(len(tables), len(tables[0]), -1)
        if sums.shape[1] == self._height:
            return list(sums)
        padded = np.zeros((len(tables), self._height, self._by_queue.count))
        padded[:, : sums.shape[1]] = sums
        return list(padded)


def over_all(session: Session, amounts: FloatArray) -> Resource:
    """Sum over all jobs of the session, in job order."""
    order = session.snapshot.jobs.order
    if not len(order):
        return session.dims.resource([0.0] * amounts.shape[0])
    return session.dims.resource(np.add.accumulate(amounts.take(order, axis=1), axis=1)[:, -1].tolist())
