"""Dominant shares of jobs as columns, kept up with what the session places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.core.messages.job_shares import JobShares
from pumice.core.resources import MIN_RESOURCE
from pumice.core.state.scalars import floats, lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.session.points.batches import FloatArray, RowArray
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job


class Shares:
    """`of[row]`: the largest allocated / total of a job, over dimensions of which the cluster has at least 0.1.

    Bound, binding, running and allocated tasks count; pipelined ones too, from the moment the session promises them
    room.
    """

    def __init__(self, session: Session) -> None:
        scalars = session.total.scalars or {}
        named = {session.dims.index(name): amount for name, amount in scalars.items()}
        totals = {0: session.total.milli_cpu, 1: session.total.memory, **named}
        self.totals = [(dimension, total) for dimension, total in sorted(totals.items()) if total >= MIN_RESOURCE]
        self._of_task, self._known = session.jobs.of_task, session.jobs.known
        self._allocated = session.snapshot.jobs.allocated.copy()
        self._lines = lines(self._allocated)
        shares = np.zeros(self._allocated.shape[1])
        for dimension, total in self.totals:
            np.maximum(shares, self._allocated[dimension] / total, out=shares)
        self.column = shares
        self.of = floats(shares)

    def share(self, amounts: Sequence[float]) -> float:
        """The dominant share of these amounts, float by dimension."""
        share = 0.0
        for dimension, total in self.totals:
            share = max(share, amounts[dimension] / total)
        return share

    def allocated(self, row: int) -> list[float]:
        """What a job has, by dimension."""
        return [line[row] for line in self._lines]

    def allocated_of(self, rows: RowArray) -> FloatArray:
        """What these jobs have, [dimension, job]."""
        return self._allocated[:, rows]

    def all_allocated(self) -> list[list[float]]:
        """What every job has, by row, then dimension."""
        found: list[list[float]] = self._allocated.T.tolist()
        return found

    def told(self, order: RowArray, handles: Sequence[Job | None]) -> JobShares:
        """Of the jobs of these rows, and of their namespaces together."""
        rows: list[int] = order.tolist()
        keys = [job.key for row in rows if (job := handles[row]) is not None]
        names, of = np.unique([key.partition("/")[0] for key in keys], return_inverse=True)
        shares = np.zeros(len(names))
        for dimension, total in self.totals:
            np.maximum(shares, np.bincount(of, self._allocated[dimension, rows], len(names)) / total, out=shares)
        return JobShares(keys, self.column[rows].tobytes(), names.tolist(), shares.tobytes())

    def follow(self, sign: float, task: Task, node: int) -> None:
        """A task was placed (1) or taken off (-1)."""
        row, lines = self._of_task[task.row], self._lines
        if row < 0 or not self._known[row]:
            return
        for dimension, value in task.template.items:
            lines[dimension][row] += sign * value
        share = 0.0
        for dimension, total in self.totals:
            part = lines[dimension][row] / total
            if part > share:
                share = part
        self.of[row] = share


def changed(amounts: list[float], task: Task, sign: float) -> list[float]:
    """The amounts with the task's request added (1) or taken off (-1)."""
    result = list(amounts)
    for dimension, value in task.template.items:
        result[dimension] += sign * value
    return result
