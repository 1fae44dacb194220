"""Who goes first: plugins' orders with Volcano's defaults behind them. Source: `framework/session_plugins.go`,
`helpers.CompareTask`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.session.heap import KeyedQueue, PriorityQueue, SortedQueue, Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.objects.pod import Task
    from core.objects.queue import Queue
    from core.session.points import Points
    from core.session.subjobs import SubJob
    from core.state.jobs import Job

    JobQueue = KeyedQueue[Job] | PriorityQueue[Job]


def task_before(left: Task, right: Task) -> bool:
    """By the trailing number of the names where both have one and they differ, else by creation, then uid
    (CompareTask).
    """
    if left.index is not None and right.index is not None and left.index != right.index:
        return left.index < right.index
    if left.created == right.created:
        return left.uid < right.uid
    return left.created < right.created


class Orders:
    """The four orders of a session, as `less` functions for the heaps."""

    def __init__(self, points: Points) -> None:
        self._points = points

    def job_before(self, left: Job, right: Job) -> bool:
        """JobOrder, then creation, then "namespace/name"."""
        order = self._points.first_nonzero("JobOrder", left, right)
        if order:
            return order < 0
        a, b = left.pod_group, right.pod_group
        return (a.created, a.key) < (b.created, b.key)

    def job_queue(self) -> JobQueue:
        """An empty queue in JobOrder, for actions in which a job's place changes only while it is out of the queue."""
        keys = [self._points.job_keys.get(name) for name in self._points.enabled_names("JobOrder")]
        known = [key for key in keys if key is not None]
        if len(known) < len(keys):
            return PriorityQueue(self.job_before)

        def key_of(job: Job) -> tuple[Any, ...]:
            spec = job.pod_group
            return (*[key(job) for key in known], spec.created, spec.key)

        return KeyedQueue(key_of)

    def queue_before(self, left: Queue, right: Queue) -> bool:
        """QueueOrder, then creation, then name."""
        order = self._points.first_nonzero("QueueOrder", left, right)
        return order < 0 if order else (left.created, left.name) < (right.created, right.name)

    def task_before(self, left: Task, right: Task) -> bool:
        """TaskOrder, then CompareTask."""
        order = self._points.first_nonzero("TaskOrder", left, right)
        return order < 0 if order else task_before(left, right)

    def sub_job_before(self, left: SubJob, right: SubJob) -> bool:
        """SubJobOrder, then match index, then id."""
        order = self._points.first_nonzero("SubJobOrder", left, right)
        return order < 0 if order else (left.match_index, left.uid) < (right.match_index, right.uid)

    def task_queue(self, tasks: list[Task]) -> Source[Task]:
        """The tasks in TaskOrder: a sorted list where the order is total and fixed, a live heap otherwise."""
        key = self._static_key(tasks)
        if key is None:
            return PriorityQueue(self.task_before, tasks)
        return SortedQueue(sorted(tasks, key=key))

    def _static_key(self, tasks: list[Task]) -> Callable[[Task], Any] | None:
        """A sort key that says the same as `task_before` on these tasks, None where there is none."""
        names = self._points.enabled_names("TaskOrder")
        keys = [self._points.task_keys.get(name) for name in names]
        if any(key is None for key in keys):
            return None
        known = [key for key in keys if key is not None]
        indexes = [task.index for task in tasks]
        if all(index is None for index in indexes):
            return lambda task: (*(key(task) for key in known), task.created, task.uid)
        if None not in indexes and len(set(indexes)) == len(indexes):
            return lambda task: (*(key(task) for key in known), task.index)
        return None
