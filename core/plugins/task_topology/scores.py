"""How well a node suits a task's bucket. Source: Volcano `plugins/task-topology` (`calcBucketScore`, `NodeOrderFn`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pumice.core.plugins.task_topology.buckets import role_of
from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.points.by_rows import RowsScore
from pumice.core.session.points.nodes import Reads, Volatility
from pumice.core.state.derived import derived
from pumice.core.state.sources import ALLOCATABLE

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from pumice.core.objects.pod import Task
    from pumice.core.plugins.task_topology.buckets import Bucket, JobBuckets
    from pumice.core.session.points.nodes import FloatArray, Rows
    from pumice.core.session.session import Session
    from pumice.core.state.sources import Allocatable

BoolArray = npt.NDArray[np.bool_]
FULL, SCALARS = 100.0, 2


@derived(ALLOCATABLE)
def names_scalar(nodes: Allocatable, name: str) -> BoolArray:
    """Where a scalar resource is named, be it with 0. [N]."""
    return np.array([name in (resource.scalars or ()) for resource in nodes.each], dtype=np.bool_)


class BucketScore(RowsScore):
    """weight * 100 * points / largest bucket, points being the bucket's tasks on the node, less the job's tasks there
    that repel this one, plus what of the bucket would still fit on it. 0 where the task itself does not fit.
    """

    volatility = Volatility.GLOBAL  # every placement of the bucket changes it everywhere

    def __init__(self, session: Session, task: Task, job: JobBuckets, bucket: Bucket, weight: int) -> None:
        self._nodes, self._names = session.nodes, session.dims.names
        self._task, self._job, self._bucket, self._weight = task, job, bucket, weight

    def score(self, rows: Rows, /) -> FloatArray:
        """float64 [len(rows)]."""
        room = self._nodes.idle[:, rows] + self._nodes.releasing[:, rows]
        points = self._ties()[rows] + len(self._bucket.tasks) - self._left_out(room)
        points[self._is_too_small(room, rows)] = 0
        scores = (points * self._weight).astype(np.float64)
        return scores * FULL / float(self._job.largest) if self._job.largest else scores

    def _ties(self) -> npt.NDArray[np.int64]:
        """Tasks of the bucket on each node, less those that were placed there and repel the task. [N]."""
        ties = np.zeros(self._nodes.count, dtype=np.int64)
        rows, role = self._nodes.row, role_of(self._task)
        for node, number in self._bucket.on_node.items():
            if node in rows:
                ties[rows[node]] += number
        for node, roles in self._job.placed.items():
            ties[rows[node]] -= self._job.relations.repulsion(role, roles)
        return ties

    def _is_too_small(self, room: FloatArray, rows: Rows) -> BoolArray:
        """Where the task lacks something, or something is overcommitted (LessPartly, an absent scalar being 0)."""
        template = self._task.template
        small = np.zeros(room.shape[1], dtype=np.bool_)
        named = dict(template.items)
        for dimension in range(len(room)):
            np.logical_or(small, room[dimension] < named.get(dimension, 0.0), out=small)
        for dimension, request in template.items[SCALARS:]:
            if request == 0.0:  # asked for by name: then the node must have it by name
                small |= ~names_scalar(self._nodes, self._names[dimension])[rows]
        return small

    def _left_out(self, room: FloatArray) -> npt.NDArray[np.int64]:
        """How many of the bucket's other tasks, by uid, must go elsewhere until the rest fits. [len(rows)]."""
        left_out = np.zeros(room.shape[1], dtype=np.int64)
        remains = dict(self._bucket.request)
        short = np.flatnonzero(~_fits(remains, room))
        for uid in sorted(self._bucket.tasks) if len(short) else ():
            if uid == self._task.uid:
                continue
            for dimension, amount in self._bucket.tasks[uid].template.items:
                remains[dimension] -= amount
            left_out[short] += 1
            short = short[~_fits(remains, room[:, short])]
            if not len(short):
                break
        return left_out


def _fits(request: Mapping[int, float], room: FloatArray) -> BoolArray:
    fits = np.ones(room.shape[1], dtype=np.bool_)
    for dimension, amount in request.items():
        np.logical_and(fits, amount - room[dimension] < MIN_RESOURCE, out=fits)
    return fits


class BucketScorer:
    """The scorer, for tasks that are in a bucket."""

    name = "task-topology"

    def __init__(self, jobs: Mapping[str, JobBuckets], weight: int) -> None:
        self._jobs, self._weight = jobs, weight

    @property
    def reads(self) -> Reads:
        """What its answers depend on; no attribute: it would hold on to itself until the collector comes."""
        return Reads(kind=self.kind)

    def kind(self, task: Task) -> Hashable:
        """The bucket and the role, where its tasks are alike; else the task itself."""
        job = self._jobs.get(task.job)
        bucket = None if job is None else job.bucket_of(task)
        if job is None or bucket is None:
            return None
        return task.job, bucket.index, role_of(task) if job.is_uniform(bucket) else task.uid

    def prepare(self, session: Session, task: Task) -> BucketScore | None:
        """None for a task outside of any bucket: 0 everywhere."""
        job = self._jobs.get(task.job)
        bucket = None if job is None else job.bucket_of(task)
        if job is None or bucket is None:
            return None
        return BucketScore(session, task, job, bucket, self._weight)
