# SPDX-License-Identifier: Apache-2.0
"""The open amounts of admitted jobs, their elastic amounts, and sums by queue: shared by the plugins that admit jobs.

Sources: Volcano `plugins/util` (GetInqueueResource), `api/job_info.go` (GetElasticResources, DeductSchGatedResources).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pumice.core.cached import cached
from pumice.core.life.pod_group import OUTSIDE, PodGroupPhase
from pumice.core.life.task import ALLOCATED_STATUSES, total_of
from pumice.core.session.jobs import gated_request
from pumice.core.state.dimensions import PODS
from pumice.core.state.queue_sums import TASKS_LINE

if TYPE_CHECKING:
    from pumice.core.resources import Resource
    from pumice.core.session.jobs import ByQueue
    from pumice.core.session.session import Session
    from pumice.core.state.dimensions import Dimensions, FloatArray
    from pumice.core.state.snapshot import JobColumns, Snapshot

BoolArray = npt.NDArray[np.bool_]
JobRows = npt.NDArray[np.intp]
"""Of some jobs, in job order: what the others have is 0, which changes no sum."""
INQUEUE, RUNNING = PodGroupPhase.INQUEUE.value, PodGroupPhase.RUNNING.value


def anybody_asks(session: Session) -> bool:
    """Return whether a job with minResources waits for admission: plugins are asked about no other."""
    columns = session.snapshot.jobs
    return bool(np.count_nonzero(columns.known & (columns.phase <= OUTSIDE) & columns.has_min_resources))


def admitted(columns: JobColumns) -> tuple[BoolArray, BoolArray]:
    """Return columns over job rows, as the session opened:

    Inqueue with minResources; Running with minResources and at least minMember tasks of allocated class.
    """
    inqueue = (columns.phase == INQUEUE) & columns.has_min_resources
    running = (columns.phase == RUNNING) & columns.has_min_resources
    some = running.nonzero()[0]
    if len(columns.queue_sums):
        tasks = columns.shares[TASKS_LINE].take(some)
    else:
        tasks = total_of(columns.counts[:, some], ALLOCATED_STATUSES)
    running[some] = tasks >= columns.min_member[some]
    return inqueue, running


def in_job_order(columns: JobColumns, mask: BoolArray) -> JobRows:
    """Return the rows of the session's jobs for which a mask over job rows holds."""
    rows: JobRows = columns.order[mask.take(columns.order)]
    return rows


def outstanding(columns: JobColumns, dims: Dimensions, some: JobRows) -> FloatArray:
    """Return max(minResources - allocated, 0) of those jobs minus the requests of their gated tasks; [dimension, one of
    them].
    """
    left = columns.minimum.take(some, axis=1) - columns.allocated.take(some, axis=1)
    return without_gated(columns, dims, np.maximum(left, 0.0), some)


def without_gated(columns: JobColumns, dims: Dimensions, amounts: FloatArray, some: JobRows) -> FloatArray:
    """Subtract the requests of gated tasks of those jobs, never below 0; [dimension, one of them]."""
    rows: list[int] = some.tolist()
    for place in columns.gated.take(some).nonzero()[0].tolist():
        job = columns.handles[rows[place]]
        gated = gated_request(job) if job is not None else None
        if gated is not None:
            for dimension, value in dims.items(gated):
                amounts[dimension, place] = max(amounts[dimension, place] - value, 0.0)
    return amounts


class QueueDemand:
    """Sums over the jobs of each queue as the session opens, float64 [dimension, queue row] (rows in name order).

    `request`: what allocated-class and pending tasks ask for; `present` bool: has a job.
    """

    def __init__(self, snapshot: Snapshot, by_queue: ByQueue) -> None:
        columns, self._dims, self._by_queue = snapshot.jobs, snapshot.dimensions, by_queue
        self._height = len(self._dims)  # queues may name scalars that no job has
        sums, height = columns.queue_sums, len(columns.allocated)
        if len(sums):  # of the opening, as the shares are: what jobs have is not copied for late readers
            self._columns = columns.at_opening()
            self.allocated, self.request = self._padded(sums[:height].copy()), self._padded(sums[height:-2].copy())
            self.present: BoolArray = sums[-1] > 0
            return
        # Copied: inqueue and elastic are those of the opening, however late they are asked for.
        self._columns = columns.as_they_are("allocated", "counts", "phase")
        self.allocated, self.request = self._sums(columns.allocated, columns.allocated + columns.pending)
        self.present = np.bincount(self._by_queue.rows, minlength=self._by_queue.count) > 0

    @cached
    def inqueue(self) -> FloatArray:
        """Return the open amounts of admitted jobs. Computed at admissions, and for readers."""
        some = in_job_order(self._columns, np.logical_or(*admitted(self._columns)))
        return self._padded(self._by_queue.among(some, outstanding(self._columns, self._dims, some)))

    @cached
    def elastic(self) -> FloatArray:
        """Return max(allocated - minResources, 0) of the jobs (GetElasticResources). Computed as seldom."""
        columns = self._columns
        some = in_job_order(columns, np.logical_or.reduce(columns.allocated != 0.0))
        beyond = np.maximum(columns.allocated.take(some, axis=1) - columns.minimum.take(some, axis=1), 0.0)
        return self._padded(self._by_queue.among(some, beyond))

    def _sums(self, *tables: FloatArray) -> list[FloatArray]:
        sums = self._by_queue.sums(*tables).reshape(len(tables), len(tables[0]), -1)
        return [self._padded(each) for each in sums]

    def _padded(self, sums: FloatArray) -> FloatArray:
        if len(sums) == self._height:
            return sums
        padded = np.zeros((self._height, self._by_queue.count))
        padded[: len(sums)] = sums
        return padded


def over_all(session: Session, amounts: FloatArray) -> Resource:
    """Return the sum of amounts [dimension, job], job by job."""
    if not amounts.shape[1]:
        return session.dims.resource([0.0] * len(amounts))
    return session.dims.resource(np.add.accumulate(amounts, axis=1)[:, -1].tolist())


def column_of(resource: Resource, dims: Dimensions, height: int) -> FloatArray:
    """Return the first `height` dimensions of a resource, float64 [dimension]."""
    column = np.zeros(len(dims))
    for dimension, value in dims.items(resource):
        column[dimension] = value
    return column[:height]


def exceeds(wanted: FloatArray, most: FloatArray, asked: FloatArray) -> BoolArray:
    """Return which columns of `wanted` exceed `most` in a dimension where `asked` is above 0, pods left out
    (less_equal_with_dimension_and_resources_name, for many): all are float64 [dimension, job].
    """
    over = (asked > 0) & (wanted > most)
    over[PODS] = False
    found: BoolArray = np.logical_or.reduce(over)
    return found
