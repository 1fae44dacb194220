"""priority: who has the higher priority goes first, and may take from who has a lower one. Source: Volcano
`plugins/priority`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from core.session.points import Vote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.objects.pod import Task
    from core.session.batches import BoolArray, FloatArray, RowArray, TaskBatch
    from core.session.session import Session
    from core.session.subjobs import SubJob
    from core.state.jobs import Job


class Eviction(Protocol):
    """Who evicts: `kind` is "gangpreempt" or "gangreclaim", `job` the one that needs room (session/evictions.py)."""

    @property
    def kind(self) -> str: ...
    @property
    def job(self) -> Job: ...


class Priority:
    """No arguments."""

    name = "priority"

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._session: Session | None = None

    def on_session_open(self, session: Session) -> None:
        """Register orders, victims and starvation."""
        self._jobs = session.jobs
        self._job_of = session.job_of
        self._row_of = session.job_row
        add = session.points.add
        add("TaskOrder", self.name, self.task_order)
        session.points.task_keys[self.name] = self.task_key
        add("JobOrder", self.name, self.job_order)
        session.points.job_keys[self.name] = self.job_key
        self._priorities = session.snapshot.jobs.priority
        session.points.batches.job_keys[self.name] = self.job_keys
        session.points.batches.evictable.setdefault("Preemptable", {})[self.name] = self.preemptable_mask
        add("SubJobOrder", self.name, self.sub_job_order)
        add("Preemptable", self.name, self.preemptable)
        add("UnifiedEvictable", self.name, self.evictable)
        add("JobStarving", self.name, self.job_starving)

    def on_session_close(self, session: Session) -> None:
        """Nothing to write."""

    def task_order(self, left: Task, right: Task) -> int:
        """Higher task priority first."""
        return right.priority - left.priority

    def task_key(self, task: Task) -> int:
        """The same as a sort key."""
        return -task.priority

    def job_order(self, left: Job, right: Job) -> int:
        """Higher job priority first."""
        priority = self._jobs.priority
        return int(priority[right.row] - priority[left.row])

    def job_key(self, job: Job) -> int:
        """The same as a sort key."""
        return -self._jobs.priority[job.row]

    def sub_job_order(self, left: SubJob, right: SubJob) -> int:
        """The group with the more important task first."""
        return right.priority - left.priority

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
        """Strictly lower job priority; within one job strictly lower task priority."""
        own = self._job_of(preemptor)
        if own is None:
            return [], Vote.PERMIT
        victims: list[Task] = []
        for candidate in candidates:
            job = self._job_of(candidate)
            if job is None:
                continue
            if job.key == own.key:
                lower = candidate.priority < preemptor.priority
            else:
                lower = self._jobs.priority[job.row] < self._jobs.priority[own.row]
            if lower:
                victims.append(candidate)
        return victims, Vote.PERMIT

    def evictable(self, context: Eviction, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
        """For gangs: strictly lower job priority within the queue; across queues priority has no say."""
        if context.kind == "gangreclaim":
            return list(candidates), Vote.PERMIT
        priority, own = self._jobs.priority, self._jobs.priority[context.job.row]
        rows = ((candidate, self._row_of(candidate)) for candidate in candidates)
        return [candidate for candidate, row in rows if row >= 0 and priority[row] < own], Vote.PERMIT

    def job_keys(self, rows: RowArray) -> FloatArray:
        """Job order as sort keys, for many jobs."""
        return -self._priorities[rows].astype(np.float64)

    def preemptable_mask(self, preemptor: Task, batch: TaskBatch) -> BoolArray:
        """`preemptable` for a batch."""
        own = self._job_of(preemptor)
        if own is None:
            return np.zeros(len(batch.rows), dtype=np.bool_)
        lower: BoolArray = np.where(
            batch.job == own.row,
            batch.facts.priority[batch.rows] < preemptor.priority,
            self._priorities[batch.job] < self._priorities[own.row],
        )
        return lower

    def job_starving(self, job: Job) -> bool:
        """Not every task has a place; ended tasks that failed count as without one."""
        return self._jobs.ready_count(job) + self._jobs.waiting_count(job) < len(job.tasks)
