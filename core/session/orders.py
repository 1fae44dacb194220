"""Who goes first: plugins' orders with Volcano's defaults behind them. Source: `framework/session_plugins.go`,
`helpers.CompareTask`.
"""

from __future__ import annotations

from operator import attrgetter
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
        self._keys: dict[str, tuple[object, list[Callable[[Any], Any]] | None]] = {}

    def job_before(self, left: Job, right: Job) -> bool:
        """JobOrder, then creation, then "namespace/name"."""
        order = self._points.first_nonzero("JobOrder", left, right)
        if order:
            return order < 0
        a, b = left.pod_group, right.pod_group
        return (a.created, a.key) < (b.created, b.key)

    def job_queue(self) -> JobQueue:
        """An empty queue in JobOrder, for actions in which a job's place changes only while it is out of the queue."""
        key = self._job_key()
        return PriorityQueue(self.job_before) if key is None else KeyedQueue(key)

    def _job_key(self) -> Callable[[Job], Any] | None:
        """A sort key that says the same as `job_before` for as long as nothing is placed, None where there is none."""
        keys = self._keys_of("JobOrder", self._points.job_keys)
        if keys is None:
            return None

        def key_of(job: Job) -> tuple[Any, ...]:
            spec = job.pod_group
            return (*[key(job) for key in keys], spec.created, spec.key)

        return key_of

    def _keys_of(self, point: str, known: dict[str, Callable[[Any], Any]]) -> list[Callable[[Any], Any]] | None:
        """The sort keys of the plugins that order at a point, None where one has none."""
        functions = self._points.flat(point)
        if point not in self._keys or self._keys[point][0] is not functions:
            keys = [known.get(name) for name in self._points.enabled_names(point)]
            present = [key for key in keys if key is not None]
            self._keys[point] = functions, (present if len(present) == len(keys) else None)
        return self._keys[point][1]

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
        keys, default = self._keys_of("TaskOrder", self._points.task_keys), _default_key(tasks)
        if keys is None or default is None:
            return PriorityQueue(self.task_before, tasks)
        in_order = sorted(tasks, key=default)
        for key in reversed(keys):  # sorting is stable: the last pass counts most
            in_order.sort(key=key)
        return SortedQueue(in_order)


def _default_key(tasks: list[Task]) -> Callable[[Task], Any] | None:
    """A sort key that says the same as `task_before` on these tasks, None where there is none."""
    indexes = {task.index for task in tasks}
    if indexes == {None}:
        return attrgetter("created", "uid")
    return attrgetter("index") if None not in indexes and len(indexes) == len(tasks) else None
