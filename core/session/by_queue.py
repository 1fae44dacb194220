"""Which queue each job is in, and sums over the jobs of each queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pumice.core.state.columns import FloatArray
    from pumice.core.state.snapshot import Snapshot


class ByQueue:
    """`rows` [J]: the queue row of each job in job order; `count`: how many queues there are."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._order, self._of_job = snapshot.jobs.order, snapshot.jobs.queue
        self.rows: npt.NDArray[np.int32] = self._of_job.take(self._order)
        self.count = len(snapshot.queues)
        self._bins: npt.NDArray[np.int64] = np.empty((0, len(self.rows)), dtype=np.int64)

    def sums(self, *tables: FloatArray) -> FloatArray:
        """The sums of each line of tables [line, job row] over the jobs of each queue, added in job order: float64
        [lines of all tables, queue row].
        """
        every = np.concatenate(tables)
        height = len(every)
        if len(self._bins) < height:
            self._bins = self._places(height, self.rows)
        return self._added(every.take(self._order, axis=1), self._bins[:height])

    def among(self, some: npt.NDArray[np.intp], amounts: FloatArray) -> FloatArray:
        """Sums by queue of a table [line, job] in which only the jobs in rows `some` have anything."""
        return self._added(amounts, self._places(len(amounts), self._of_job.take(some)))

    def _places(self, height: int, rows: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """Every queue has a bin in every line, so that one pass adds up all tables."""
        return np.arange(height)[:, None] * self.count + rows

    def _added(self, amounts: FloatArray, bins: npt.NDArray[np.int64]) -> FloatArray:
        height = len(amounts)
        sums = np.bincount(bins.ravel(), weights=amounts.ravel(), minlength=height * self.count)
        return sums.astype(np.float64, copy=False).reshape(height, self.count)  # of nothing, whole numbers
