"""A job's tasks dealt out to buckets: those of one bucket want to be on one node. Source: Volcano
`plugins/task-topology` (`bucket.go`, `manager.go`).

What an undone placement has changed here stays changed until the cycle ends, as there.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from pumice.core.objects.pod import TASK_SPEC

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.core.objects.pod import Task
    from pumice.core.plugins.task_topology.relations import Relations

MEMORY: Final = 1
MEBI: Final = 1024


def role_of(task: Task) -> str:
    """The role as this plugin reads it: from the annotation alone."""
    return task.annotations.get(TASK_SPEC, "")


def size_of(task: Task) -> float:
    """A pod's size when buckets are balanced: a milli-core, a mebibyte and a unit of anything else weigh the same."""
    (_, cpu), (_, memory), *scalars = task.template.items
    size = cpu + memory / MEBI / MEBI
    for _, amount in scalars:
        size += amount
    return size


class Bucket:
    """`tasks` by uid: those without a node, whose requests are in `request` (by dimension) and `size`; `on_node`:
    how many of the others are on which node.
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
        """Deal a task out, `node` being where it is already, or ""."""
        self.roles[role_of(task)] += 1
        if node:
            self.on_node[node] += 1
            self.bound += 1
            return
        self.tasks[task.uid] = task
        self._weigh(task, 1.0)

    def place(self, task: Task, node: str) -> None:
        """A task of the bucket has got a node."""
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
        """Whether its tasks without a node all ask for the same."""
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
        bucket it likes best, of equals to the one with least to place.
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
        """The bucket a role likes best; None when it likes none of them."""
        best: Bucket | None = None
        most = 0
        for bucket in self.buckets:
            attraction = self.relations.attraction(role, bucket.roles)
            if attraction < 0 or (best is not None and attraction < most):
                continue
            if best is None or attraction > most or bucket.size < best.size:
                best, most = bucket, attraction
        return best

    def urgency(self, task: Task) -> tuple[int, int]:
        """Lower goes first: the user's order of roles, then the strength of their relations."""
        role = role_of(task)
        return -self.relations.order.get(role, 0), -self.relations.strength.get(role, 0)

    def place(self, task: Task, node: str) -> None:
        """A task of the job has got a node, perhaps only for now."""
        role = role_of(task)
        if role:
            self.placed.setdefault(node, Counter())[role] += 1
        bucket = self.bucket_of(task)
        if bucket is not None:
            bucket.place(task, node)

    def bucket_of(self, task: Task) -> Bucket | None:
        """The task's bucket; None when its role is in no relation."""
        return self._bucket_of.get(task.uid)

    def is_uniform(self, bucket: Bucket) -> bool:
        """Whether all that was dealt to it without a node asks for the same."""
        return bucket.index in self._uniform
