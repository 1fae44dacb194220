# SPDX-License-Identifier: Apache-2.0
"""The plugin task-topology: the roles of a job that prefer to share a node, and those that avoid it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from pumice.config.arguments import INTEGER, Argument, PluginArguments
from pumice.core.objects.pod import TASK_SPEC
from pumice.core.plugins.plugin import BuiltInPlugin
from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.points.nodes import Reads, Volatility
from pumice.core.session.points.rules import ColumnRule
from pumice.core.state.derived import derived
from pumice.core.state.sources import ALLOCATABLE

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import FloatArray, Rows
    from pumice.core.session.points.rules import Score
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job
    from pumice.core.state.sources import Allocatable

# --- Arguments
# Source: Volcano `plugins/task-topology` (`readTopologyFromPgAnnotations`, `ApplyTaskTopology`,
# `checkTaskSetAffinity`).

AFFINITY: Final = "volcano.sh/task-topology-affinity"
ANTI_AFFINITY: Final = "volcano.sh/task-topology-anti-affinity"
TASK_ORDER: Final = "volcano.sh/task-topology-task-order"
# How early a role is dealt out, by the strongest relation it is in.
ALONE_APART, TOGETHER, ALONE_TOGETHER, APART = 4, 3, 2, 1


class Relations:
    """Relations of roles. `order`: role -> how early the user wants it, 0 for not at all; `strength`: role -> how early
    its relations want it, for the roles that have any.
    """

    def __init__(self, together: list[list[str]], apart: list[list[str]], order: list[str]) -> None:
        self.strength: dict[str, int] = {}
        self._together: set[tuple[str, str]] = set()
        self._apart: set[tuple[str, str]] = set()
        self._read(together, self._together, ALONE_TOGETHER, TOGETHER)
        self._read(apart, self._apart, ALONE_APART, APART)
        self.order = {role: len(order) - index for index, role in enumerate(order)}

    def _read(self, groups: list[list[str]], pairs: set[tuple[str, str]], alone: int, several: int) -> None:
        for group in groups:
            strength = alone if len(group) == 1 else several
            for role in group:
                self.strength[role] = max(self.strength.get(role, 0), strength)
            if len(group) == 1:
                pairs.add((group[0], group[0]))
            else:
                pairs.update((a, b) for i, a in enumerate(group) for j, b in enumerate(group) if i != j)

    def attraction(self, role: str, others: Mapping[str, int]) -> int:
        """Return the number of tasks among the others (role -> number) that the role prefers to be with, minus those
        that it avoids.
        """
        return sum(n for other, n in others.items() if (role, other) in self._together) - self.repulsion(role, others)

    def repulsion(self, role: str, others: Mapping[str, int]) -> int:
        """Return the number of tasks among the others that the role avoids."""
        return sum(n for other, n in others.items() if (role, other) in self._apart)


def relations_of(job: Job) -> Relations | None:
    """Return what the PodGroup's annotations say: groups with ";" between, roles with "," between.

    None when they say nothing, or name a role twice in a group or one that no task has.
    """
    annotations = job.pod_group.annotations
    if not any(key in annotations for key in (AFFINITY, ANTI_AFFINITY, TASK_ORDER)):
        return None
    together, apart = _groups(annotations.get(AFFINITY)), _groups(annotations.get(ANTI_AFFINITY))
    order = annotations[TASK_ORDER].split(",") if TASK_ORDER in annotations else []
    roles = {task.role for task in job.tasks.values()}
    if not all(_is_sound(group, roles) for group in (*together, *apart, order)):
        return None
    return Relations(together, apart, order)


def _groups(text: str | None) -> list[list[str]]:
    return [] if text is None else [group.split(",") for group in text.split(";")]


def _is_sound(group: list[str], roles: set[str]) -> bool:
    named = [role for role in group if role]
    return len(set(named)) == len(named) and roles.issuperset(named)


# --- Buckets
# Source: Volcano `plugins/task-topology` (`bucket.go`, `manager.go`). What an undone placement has changed here stays
# changed until the cycle ends, as there.

MEMORY: Final = 1
MEBI: Final = 1024


def role_of(task: Task) -> str:
    """Return the role as this plugin reads it: from the annotation alone."""
    return task.annotations.get(TASK_SPEC, "")


def size_of(task: Task) -> float:
    """Return a pod's size for balancing buckets: a milli-core, a mebibyte and a unit of anything else weigh the
    same.
    """
    # Template items begin with cpu and memory, whether or not the pod asks for them.
    (_, cpu), (_, memory), *scalars = task.template.items
    size = cpu + memory / MEBI / MEBI
    for _, amount in scalars:
        size += amount
    return size


class Bucket:
    """A bucket of tasks. `tasks` by uid: those without a node, whose requests are in `request` (by dimension) and
    `size`; `on_node`: the number of the others on each node.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        self.tasks: dict[str, Task] = {}
        self.roles: Counter[str] = Counter()
        self.size = 0.0
        self.request: dict[int, float] = {0: 0.0, MEMORY: 0.0}
        self.on_node: Counter[str] = Counter()
        self.bound = 0

    def add(self, task: Task, node: str) -> None:
        """Add a task to the bucket, `node` being its node already, or ""."""
        self.roles[role_of(task)] += 1
        if node:
            self.on_node[node] += 1
            self.bound += 1
            return
        self.tasks[task.uid] = task
        self._weigh(task, 1.0)

    def place(self, task: Task, node: str) -> None:
        """Count a task of the bucket that got a node."""
        self.on_node[node] += 1
        self.bound += 1
        self.tasks.pop(task.uid, None)
        self._weigh(task, -1.0)

    def _weigh(self, task: Task, sign: float) -> None:
        self.size += sign * size_of(task)
        for dimension, amount in task.template.items:
            self.request[dimension] = self.request.get(dimension, 0.0) + sign * amount

    @property
    def is_uniform(self) -> bool:
        """Return whether the bucket's tasks without a node all ask for the same."""
        return len({task.template.number for task in self.tasks.values()}) <= 1


class JobBuckets:
    """The buckets of one job. `largest`: tasks in the largest bucket; `placed`: node -> role -> tasks that have got
    that node in this session.
    """

    def __init__(self, relations: Relations) -> None:
        self.relations = relations
        self.buckets: list[Bucket] = []
        self.largest = 0
        self.placed: dict[str, Counter[str]] = {}
        self._bucket_of: dict[str, Bucket] = {}
        self._uniform: set[int] = set()

    def deal(self, tasks: Iterable[tuple[Task, str]]) -> None:
        """Deal out (task, its node or ""): those with a node by node, then the others by role and name, each to the
        bucket that it prefers, of equals to the one with least to place.
        """
        known = [(task, node) for task, node in tasks if role_of(task) and role_of(task) in self.relations.strength]
        of_node: dict[str, Bucket] = {}
        for task, node in sorted(known, key=lambda pair: self._rank(*pair)):
            bucket = of_node.get(node) if node else self._favourite(role_of(task))
            if bucket is None:
                bucket = Bucket(len(self.buckets))
                self.buckets.append(bucket)
                if node:
                    of_node[node] = bucket
            bucket.add(task, node)
            self._bucket_of[task.uid] = bucket
            self.largest = max(self.largest, len(bucket.tasks) + bucket.bound)
        self._uniform = {bucket.index for bucket in self.buckets if bucket.is_uniform}

    def _rank(self, task: Task, node: str) -> tuple[bool, str, tuple[int, int], str]:
        return (not node, node, (0, 0) if node else self.urgency(task), "" if node else task.name)

    def _favourite(self, role: str) -> Bucket | None:
        """Return the bucket that a role prefers; None without one."""
        best: Bucket | None = None
        most = 0
        for bucket in self.buckets:
            attraction = self.relations.attraction(role, bucket.roles)
            # A bucket that repels the role is never its favourite; a new bucket is better.
            if attraction < 0 or (best is not None and attraction < most):
                continue
            if best is None or attraction > most or bucket.size < best.size:
                best, most = bucket, attraction
        return best

    def urgency(self, task: Task) -> tuple[int, int]:
        """Return the sort key of urgency, lower first: the user's order of roles, then the strength of their
        relations.
        """
        role = role_of(task)
        return -self.relations.order.get(role, 0), -self.relations.strength.get(role, 0)

    def place(self, task: Task, node: str) -> None:
        """Count a task of the job that got a node, perhaps only for now."""
        role = role_of(task)
        if role:
            self.placed.setdefault(node, Counter())[role] += 1
        bucket = self.bucket_of(task)
        if bucket is not None:
            bucket.place(task, node)

    def bucket_of(self, task: Task) -> Bucket | None:
        """Return the task's bucket; None when its role is in no relation."""
        return self._bucket_of.get(task.uid)

    def is_uniform(self, bucket: Bucket) -> bool:
        """Return whether all tasks dealt to the bucket without a node have equal requests."""
        return bucket.index in self._uniform


# --- Scores
# Source: Volcano `plugins/task-topology` (`calcBucketScore`, `NodeOrderFn`).

BoolArray = npt.NDArray[np.bool_]
FULL, SCALARS = 100.0, 2


@derived(ALLOCATABLE)
def names_scalar(nodes: Allocatable, name: str) -> BoolArray:
    """Return where a scalar resource is named, also with 0. [N]."""
    return np.array([name in (resource.scalars or ()) for resource in nodes.each], dtype=np.bool_)


class BucketScores:
    """The score weight * 100 * points / largest bucket. Points are the bucket's tasks on the node, minus the job's
    tasks there that repel this one, plus the bucket's tasks that would still fit on it. 0 where the task itself does
    not fit.
    """

    def __init__(self, session: Session, task: Task, job: JobBuckets, bucket: Bucket, weight: int) -> None:
        self._nodes, self._names = session.nodes, session.dims.names
        self._task, self._job, self._bucket, self._weight = task, job, bucket, weight

    def __call__(self, rows: Rows, /) -> FloatArray:
        """Return the scores, float64 [len(rows)]."""
        room = self._nodes.idle[:, rows] + self._nodes.releasing[:, rows]
        points = self._ties()[rows] + len(self._bucket.tasks) - self._left_out(room)
        points[self._is_too_small(room, rows)] = 0
        scores = (points * self._weight).astype(np.float64)
        return scores * FULL / float(self._job.largest) if self._job.largest else scores

    def _ties(self) -> npt.NDArray[np.int64]:
        """Return the number of the bucket's tasks on each node, minus those that were placed there and repel the task.
        [N].
        """
        ties = np.zeros(self._nodes.count, dtype=np.int64)
        rows, role = self._nodes.row, role_of(self._task)
        for node, number in self._bucket.on_node.items():
            if node in rows:
                ties[rows[node]] += number
        for node, roles in self._job.placed.items():
            ties[rows[node]] -= self._job.relations.repulsion(role, roles)
        return ties

    def _is_too_small(self, room: FloatArray, rows: Rows) -> BoolArray:
        """Return where the task lacks something, or a dimension is overcommitted (LessPartly, absent scalars are 0)."""
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
        """Return how many of the bucket's other tasks, by uid, must go elsewhere until the rest fits. [len(rows)]."""
        left_out = np.zeros(room.shape[1], dtype=np.int64)
        remains = dict(self._bucket.request)
        short = np.flatnonzero(~_fits(remains, room))
        # By uid; Volcano walks a map, so which tasks it leaves out is random.
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
        """Return the inputs of the answers. Not an attribute: it would refer to itself, and so wait for the garbage
        collector.
        """
        return Reads(kind=self.kind)

    def kind(self, task: Task) -> Hashable:
        """Return the bucket and the role, where its tasks are equal; else the task itself."""
        job = self._jobs.get(task.job)
        bucket = None if job is None else job.bucket_of(task)
        if job is None or bucket is None:
            return None
        return task.job, bucket.index, role_of(task) if job.is_uniform(bucket) else task.uid

    def prepare(self, session: Session, task: Task) -> Score | None:
        """Return the scores; None for a task outside of any bucket, which scores 0 everywhere."""
        job = self._jobs.get(task.job)
        bucket = None if job is None else job.bucket_of(task)
        if job is None or bucket is None:
            return None
        # Every placement of the bucket changes it everywhere.
        return ColumnRule(BucketScores(session, task, job, bucket, self._weight), Volatility.GLOBAL)


# --- Orders
# Source: Volcano `plugins/task-topology` (`TaskOrderFn`).


class BucketOrder:
    """Compares two tasks of jobs with buckets: in a bucket before outside, the bucket with more to place first, then
    the older one, then by role. It changes while tasks are placed.
    """

    def __init__(self, jobs: Mapping[str, JobBuckets]) -> None:
        self._jobs = jobs

    def __call__(self, left: Task, right: Task) -> int:
        """Return a negative number when left goes first."""
        mine, theirs = self._jobs.get(left.job), self._jobs.get(right.job)
        if mine is None or theirs is None:
            return 0
        a, b = mine.bucket_of(left), theirs.bucket_of(right)
        if (a is None) != (b is None):
            return 1 if a is None else -1
        if a is None or b is None or left.job != right.job:
            return 0
        # This changes with every placement, so it can only be compared, not kept as a key.
        if len(a.tasks) != len(b.tasks):
            return len(b.tasks) - len(a.tasks)
        if a is not b:
            return a.index - b.index
        first, second = mine.urgency(left), mine.urgency(right)
        return (first > second) - (first < second)


WEIGHT: Final = Argument("task-topology.weight", INTEGER, 1, "What its scores count.")


class TaskTopology(BuiltInPlugin):
    """Reads the annotations of jobs about roles that prefer or avoid each other."""

    name = "task-topology"
    says = "keeps tasks of a job together, or apart, by role"
    listens = ("TaskOrder", "NodeOrder")
    arguments = (WEIGHT,)

    def __init__(self, arguments: PluginArguments) -> None:
        self._weight = WEIGHT.of(arguments)
        self.jobs: dict[str, JobBuckets] = {}

    def on_session_open(self, session: Session) -> None:
        """Deal out the tasks of jobs with something to place; register nothing when no such job exists."""
        self._deal_all(session)
        # Without such a job the task order stays fixed, so sorted lists may take the place of heaps.
        if not self.jobs:
            return
        names = session.nodes.names

        def placed(task: Task, node: int) -> None:
            if task.job in self.jobs:
                self.jobs[task.job].place(task, names[node])

        session.points.task_order.add(self.name, BucketOrder(self.jobs))
        session.points.node_order.add(self.name, [BucketScorer(self.jobs, self._weight)])
        # No handler for what is taken off: in Volcano, too, an undone placement stays in the buckets.
        session.points.handle(allocate=placed)

    def can_go_on(self, session: Session) -> bool:
        """Return whether there are jobs with buckets, or none, as before: without them nothing is registered."""
        had = bool(self.jobs)
        self._deal_all(session)
        return bool(self.jobs) == had

    def _deal_all(self, session: Session) -> None:
        self.jobs.clear()
        for job in session.jobs.in_order:
            if session.jobs.has_pending(job):
                self._deal(session, job)

    def _deal(self, session: Session, job: Job) -> None:
        relations = relations_of(job)
        if relations is None:
            return
        node_of, names = session.jobs.node, session.nodes.names
        where = ((task, node_of[task.row]) for task in job.in_uid_order())
        buckets = self.jobs[job.key] = JobBuckets(relations)
        buckets.deal((task, names[node] if node >= 0 else task.node_name) for task, node in where)
