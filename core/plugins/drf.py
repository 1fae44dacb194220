"""drf: the job with the smaller dominant share goes first. Source: Volcano `plugins/drf`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from core.session.points import Vote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.objects.pod import Task
    from core.session.session import Session
    from core.state.jobs import Job

SHARE_DELTA = 0.000001
MIN_RESOURCE = 0.1


class Drf:
    """No arguments. Shares are over dimensions of which the cluster has at least 0.1; pipelined tasks count within the session."""

    name = "drf"

    def __init__(self, arguments: dict[str, Any]) -> None:
        pass

    def on_session_open(self, session: Session) -> None:
        """Compute every job's share; register order, victims and handlers."""
        self._session = session
        names = session.total.scalars or {}
        totals = {0: session.total.milli_cpu, 1: session.total.memory, **{session.dims.index(n): v for n, v in names.items()}}
        self._totals = [(dimension, total) for dimension, total in sorted(totals.items()) if total >= MIN_RESOURCE]
        self._allocated = session.snapshot.jobs.allocated.copy()
        self._lines = [memoryview(line) for line in self._allocated]
        shares = np.zeros(self._allocated.shape[1])
        for dimension, total in self._totals:
            np.maximum(shares, self._allocated[dimension] / total, out=shares)
        self.shares = memoryview(shares)
        session.points.add("JobOrder", self.name, self.job_order)
        session.points.add("Preemptable", self.name, self.preemptable)
        session.points.handle(self._on_allocate, self._on_deallocate)

    def on_session_close(self, session: Session) -> None:
        """Nothing to write."""

    def job_order(self, left: Job, right: Job) -> int:
        """Smaller share first."""
        a, b = self.shares[left.row], self.shares[right.row]
        return (a > b) - (a < b)

    def _share(self, allocated: Sequence[float]) -> float:
        share = 0.0
        for dimension, total in self._totals:
            share = max(share, allocated[dimension] / total)
        return share

    def _on_allocate(self, task: Task, node: int) -> None:
        self._change(task, 1.0)

    def _on_deallocate(self, task: Task, node: int) -> None:
        self._change(task, -1.0)

    def _change(self, task: Task, sign: float) -> None:
        row = self._session.job_row(task)
        if row < 0:
            return
        lines = self._lines
        for dimension, value in task.template.items:
            lines[dimension][row] += sign * value
        share = 0.0
        for dimension, total in self._totals:
            share = max(share, lines[dimension][row] / total)
        self.shares[row] = share

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
        """Victims keep a share that is not smaller than the preemptor's will be. Every candidate of a job counts against it, taken or not."""
        own = self._session.job_row(preemptor)
        if own < 0:
            return [], Vote.PERMIT
        ours = self._share(_plus(self._allocated[:, own].tolist(), preemptor, 1.0))
        allocations: dict[int, list[float]] = {}
        victims: list[Task] = []
        for candidate in candidates:
            row = self._session.job_row(candidate)
            if row < 0:
                continue
            before = allocations.get(row) or self._allocated[:, row].tolist()
            allocations[row] = _plus(before, candidate, -1.0)
            theirs = self._share(allocations[row])
            if ours < theirs or abs(ours - theirs) <= SHARE_DELTA:
                victims.append(candidate)
        return victims, Vote.PERMIT


def _plus(amounts: list[float], task: Task, sign: float) -> list[float]:
    result = list(amounts)
    for dimension, value in task.template.items:
        result[dimension] += sign * value
    return result
