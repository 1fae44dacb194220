"""In which order tasks are placed: bucket by bucket. Source: Volcano `plugins/task-topology` (`TaskOrderFn`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.core.objects.pod import Task
    from pumice.core.plugins.task_topology.buckets import JobBuckets


class BucketOrder:
    """Compares two tasks of jobs with buckets: in a bucket before outside, the bucket with more to place first, then
    the older one, then by role. It changes while tasks are placed.
    """

    def __init__(self, jobs: Mapping[str, JobBuckets]) -> None:
        self._jobs = jobs

    def __call__(self, left: Task, right: Task) -> int:
        """Negative: left first."""
        mine, theirs = self._jobs.get(left.job), self._jobs.get(right.job)
        if mine is None or theirs is None:
            return 0
        a, b = mine.bucket_of(left), theirs.bucket_of(right)
        if (a is None) != (b is None):
            return 1 if a is None else -1
        if a is None or b is None or left.job != right.job:
            return 0
        if len(a.tasks) != len(b.tasks):
            return len(b.tasks) - len(a.tasks)
        if a is not b:
            return a.index - b.index
        first, second = mine.urgency(left), mine.urgency(right)
        return (first > second) - (first < second)
