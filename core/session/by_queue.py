"""Which queue each job is in, and sums over the jobs of each queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from core.state.columns import FloatArray
    from core.state.snapshot import Snapshot


class ByQueue:
    """`rows` [J]: the queue row of each job in job order; `count`: how many queues there are."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._order = snapshot.jobs.order
        self.rows: npt.NDArray[np.int32] = snapshot.jobs.queue.take(self._order)
        self.count = len(snapshot.queues)
        self._bins: npt.NDArray[np.int64] = np.empty((0, len(self.rows)), dtype=np.int64)

    def sums(self, *tables: FloatArray) -> FloatArray:
        """The sums of each line of tables [line, job row] over the jobs of each queue, added in job order: float64
        [lines of all tables, queue row].
        """
        amounts = np.concatenate(tables).take(self._order, axis=1)
        height = len(amounts)
        if len(self._bins) < height:  # every queue has a bin in every line, so that one pass adds up all tables
            self._bins = np.arange(height)[:, None] * self.count + self.rows
        bins = self._bins[:height].ravel()
        sums = np.bincount(bins, weights=amounts.ravel(), minlength=height * self.count)
        return sums.astype(np.float64, copy=False).reshape(height, self.count)  # of nothing, whole numbers
