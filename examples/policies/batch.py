"""Policies of batch systems as plugins: first come, first served; shortest job first; EASY backfill.

    pumice run -f csv:jobs.csv -f nodes.yaml --time virtual --plugins-dir policies --config policies/easy.conf

Jobs of a queue start in one order, and no job passes one that waits: by arrival (`fcfs`), or by run time (`sjf`). Under
`easy` a job may pass if the first that waits starts no later for it: jobs ahead of it in the order end when they say
(`pumice.dev/duration`; `default`, without), the earliest moment at which the first one fits is its reservation, and a
job may start that ends before, or that needs only what the reservation leaves. Sources: Lifka, "The ANL/IBM SP
Scheduling System" (1995); Mu'alem and Feitelson (2001). Nodes are looked at one by one, not as one pool.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pumice.config.durations import duration_s
from pumice.plugins import (
    Code,
    ColumnRule,
    FitFailure,
    FloatArray,
    JobColumn,
    PluginBuilder,
    Reads,
    Reason,
    Rows,
    Session,
    Task,
    Volatility,
)

DURATION = "pumice.dev/duration"
FAR = 2.0**62


def job_of(task: Task) -> str:
    """Return the job of a task."""
    return task.job


class InOrder:
    """Jobs of a queue start in their order: the first that waits keeps the others out."""

    name = "fcfs"
    reads = Reads(kind=job_of)

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._default_s = duration_s(str(arguments.get("default", "1h"))) or 0.0
        self._waiting: dict[str, list[Any]] | None = None

    def on_session_open(self, session: Session) -> None:
        """Register the filter. The order of jobs is that of the other plugins, then by arrival."""
        self._session = session
        session.points.predicate.add(self.name, [self])

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""

    def prepare(self, session: Session, task: Task) -> ColumnRule[np.int32] | None:
        """Refuse all nodes while an earlier job of the queue waits: asked before each of its tasks."""
        self._demand_first(task)
        fine = np.zeros(session.nodes.count, dtype=np.int32)
        return ColumnRule(lambda rows: fine[rows], Volatility.GLOBAL, pre_filter=lambda: self._demand_first(task))

    def _demand_first(self, task: Task) -> None:
        if self._first_before(task) is not None:
            raise FitFailure(Reason(self.name, Code.UNSCHEDULABLE, "an earlier job of the queue waits"))

    def _first_before(self, task: Task) -> Any:
        """Return the first job of the queue that waits, None where that is the task's own, or a later one."""
        job = self._session.job_of(task)
        if job is None:
            return None
        waiting = self._in_order().get(job.pod_group.queue, [])
        while waiting and self._session.job_ready(waiting[0]):
            waiting.pop(0)
        if not waiting or waiting[0].row == job.row or all(each.row != job.row for each in waiting):
            return None
        return waiting[0]

    def _in_order(self) -> dict[str, list[Any]]:
        """Return the jobs with pods that wait, by queue, in job order. Found when the first task is asked about: by
        then every plugin has said how it orders jobs.
        """
        if self._waiting is None:
            self._waiting = {}
            jobs = self._session.jobs
            queue = self._session.points.job_order.queue()
            for job in jobs.in_order:
                if jobs.has_pending(job) and not self._session.job_ready(job):
                    queue.push(job)
            while queue:
                job = queue.pop()
                self._waiting.setdefault(job.pod_group.queue, []).append(job)
        return self._waiting

    def duration_s(self, task: Task) -> float:
        """Return how long a task says that it runs."""
        return duration_s(str(task.annotations.get(DURATION, ""))) or self._default_s


class ShortestFirst(InOrder):
    """Jobs in the order of their run times."""

    name = "sjf"

    def on_session_open(self, session: Session) -> None:
        """Register the order, and the filter."""
        super().on_session_open(session)
        session.points.job_order.add(self.name, JobColumn(self._durations))

    def _durations(self) -> FloatArray:
        jobs = self._session.jobs
        found = np.full(len(jobs.readiness), FAR)
        for job in jobs.in_order:
            found[job.row] = max((self.duration_s(task) for task in job.tasks.values()), default=FAR)
        return found


class Reservation(NamedTuple):
    """Latest start of the first job, and what nodes have left beside it then [D, N]."""

    at: float
    extra: FloatArray


class Easy(InOrder):
    """Jobs in order; one may pass if the first that waits starts no later for it."""

    name = "easy"

    def prepare(self, session: Session, task: Task) -> ColumnRule[np.int32] | None:
        """Refuse nodes where the task would hold what is reserved."""
        number = session.reasons.intern(Reason(self.name, Code.UNSCHEDULABLE, "reserved for an earlier job"))

        def refuse(rows: Rows) -> Any:
            reservation = self._reservation(task)
            count = np.arange(session.nodes.count)[rows].size
            if reservation is None or session.clock.now + self.duration_s(task) <= reservation.at:
                return np.zeros(count, dtype=np.int32)
            fits = np.ones(count, dtype=np.bool_)
            for dimension, amount in task.template.items:
                fits &= reservation.extra[dimension][rows] >= amount
            return np.where(fits, 0, number).astype(np.int32)

        return ColumnRule(refuse, Volatility.GLOBAL, follow=lambda: len(session.nodes.touched))

    def _reservation(self, task: Task) -> Reservation | None:
        """Return the reservation of the first job that waits before the task's own; None without one."""
        first = self._first_before(task)
        if first is None:
            return None
        session, free = self._session, self._session.nodes.idle.copy()
        missing = first.pod_group.min_member - session.jobs.ready_count(first)
        wanted = [each for each in first.in_uid_order() if session.jobs.status[each.row] == PENDING][:missing]
        rows = list(range(session.nodes.count))  # nodes that are free the latest come first: others may use the rest
        ends = self._ends()
        moments = dict.fromkeys([session.clock.now, *(at for at, _, _ in ends)])
        for at in moments:  # what ends at one moment is free together
            for row, asked in [(row, asked) for when, row, asked in ends if when == at]:
                for dimension, amount in asked:
                    free[dimension, row] += amount
                rows.remove(row)
                rows.insert(0, row)
            if (extra := _left_by(wanted, free, rows)) is not None:
                return Reservation(at, extra)
        return None  # it fits never: nothing is kept for it

    def _ends(self) -> list[tuple[float, int, tuple[tuple[int, float], ...]]]:
        """Return when tasks end, on which node, and what they give back; the soonest first."""
        now, nodes = self._session.clock.now, self._session.nodes
        return sorted(
            (max(now, (task.started or now) + self.duration_s(task)), row, task.template.items)
            for row in range(nodes.count)
            for task in nodes.tasks_on(row)
        )


PENDING = 0
"""Of a task that waits, as the column of statuses has it."""


def _left_by(wanted: list[Task], free: FloatArray, rows: list[int]) -> FloatArray | None:
    """Return what is left once each task is on the first of the rows that has room; None where one has none."""
    left = free[:, rows]
    for task in wanted:
        fits = np.ones(left.shape[1], dtype=np.bool_)
        for dimension, amount in task.template.items:
            fits &= left[dimension] >= amount
        place = int(np.argmax(fits))
        if not fits[place]:
            return None
        for dimension, amount in task.template.items:
            left[dimension, place] -= amount
    extra = np.empty_like(left)
    extra[:, rows] = left
    return extra


PLUGINS: dict[str, PluginBuilder] = {each.name: each for each in (InOrder, ShortestFirst, Easy)}
