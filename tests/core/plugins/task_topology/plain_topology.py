"""Volcano's task-topology step by step, one task and one node at a time: slow and obvious."""

from __future__ import annotations

from collections import Counter
from functools import cmp_to_key
from typing import TYPE_CHECKING

from pumice.core.resources import ZERO, Resource
from tests.core.plugins.nodeorder.plain_scores import amounts, left_out

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session

Groups = list[list[str]]


class PlainBucket:
    """Bucket."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}
        self.roles: Counter[str] = Counter()
        self.request = Resource()
        self.nodes: Counter[str] = Counter()

    @property
    def score(self) -> float:
        request = self.request
        return request.milli_cpu + request.memory / 1024 / 1024 + sum((request.scalars or {}).values())


class PlainJob:
    """JobManager over (task, node or "")."""

    def __init__(self, affinity: Groups, anti: Groups, order: list[str], tasks: list[tuple[Task, str]]) -> None:
        self.affinity, self.anti, self.order = affinity, anti, order
        self.buckets: list[PlainBucket] = []
        self.of: dict[str, PlainBucket] = {}
        self.placed: dict[str, Counter[str]] = {}
        self.largest = 0
        self.node = {task.uid: node for task, node in tasks}
        known = [task for task, _ in tasks if self.priority(task.role)]
        by_node: dict[str, PlainBucket] = {}
        for task in sorted(known, key=cmp_to_key(self.compare)):
            self.deal(task, by_node)

    def priority(self, role: str) -> int:
        """affinityPriority of the strongest relation."""
        found = [2 if len(group) == 1 else 3 for group in self.affinity if role in group]
        found += [4 if len(group) == 1 else 1 for group in self.anti if role in group]
        return max(found, default=0)

    def related(self, groups: Groups, a: str, b: str) -> bool:
        """Whether two roles are in one group; a role with itself only in a group of one."""
        if a == b:
            return [a] in groups
        return any(a in group and b in group for group in groups)

    def role_order(self, left: Task, right: Task) -> int:
        """taskAffinityOrder."""
        places = {role: len(self.order) - i for i, role in enumerate(self.order)}
        for a, b in (
            (places.get(left.role, 0), places.get(right.role, 0)),
            (self.priority(left.role), self.priority(right.role)),
        ):
            if a != b:
                return 1 if a > b else -1
        return 0

    def compare(self, left: Task, right: Task) -> int:
        """TaskOrder.Less, reversed."""
        a, b = self.node[left.uid], self.node[right.uid]
        if a or b:
            if bool(a) != bool(b):
                return -1 if a else 1
            return (a > b) - (a < b)
        order = self.role_order(left, right)
        return -order if order else (left.name > right.name) - (left.name < right.name)

    def affinity_to(self, role: str, others: Counter[str], *, only_anti: bool) -> int:
        """checkTaskSetAffinity."""
        total = 0
        for other, count in others.items():
            if not only_anti and self.related(self.affinity, role, other):
                total += count
            if self.related(self.anti, role, other):
                total -= count
        return total

    def deal(self, task: Task, by_node: dict[str, PlainBucket]) -> None:
        """One round of buildBucket."""
        node = self.node[task.uid]
        best: PlainBucket | None = None
        most = -1000
        if node:
            most, best = 0, by_node.get(node)
        else:
            for bucket in self.buckets:
                liking = self.affinity_to(task.role, bucket.roles, only_anti=False)
                if liking > most or (liking == most and best is not None and bucket.score < best.score):
                    most, best = liking, bucket
        if most < 0 or best is None:
            best = PlainBucket()
            self.buckets.append(best)
            if node:
                by_node[node] = best
        best.roles[task.role] += 1
        if node:
            best.nodes[node] += 1
        else:
            best.tasks[task.uid] = task
            best.request.add(task.template.request)
        self.of[task.uid] = best
        self.largest = max(self.largest, len(best.tasks) + sum(best.nodes.values()))

    def place(self, task: Task, node: str) -> None:
        """TaskBound."""
        self.placed.setdefault(node, Counter())[task.role] += 1
        bucket = self.of.get(task.uid)
        if bucket is not None:
            bucket.nodes[node] += 1
            bucket.tasks.pop(task.uid, None)
            bucket.request.sub_without_assert(task.template.request)

    def score(self, session: Session, task: Task, row: int, weight: int) -> float:
        """NodeOrderFn."""
        names = set(session.nodes.specs[row].allocatable.scalars or {})
        room = amounts(session, "idle", row).add(amounts(session, "releasing", row))
        room.scalars = {name: (room.scalars or {}).get(name, 0.0) for name in {*names, *(room.scalars or {})}}
        bucket = self.of.get(task.uid)
        if room.less_partly(task.template.request, ZERO) or bucket is None:
            return 0.0
        node = session.nodes.names[row]
        points = bucket.nodes[node]
        points += min(0, self.affinity_to(task.role, self.placed.get(node, Counter()), only_anti=True))
        others = [bucket.tasks[uid] for uid in sorted(bucket.tasks) if uid != task.uid]
        points += len(bucket.tasks) - left_out(bucket.request, others, room)
        score = float(points * weight)
        return score * 100.0 / self.largest if self.largest else score

    def task_order(self, left: Task, right: Task) -> int:
        """TaskOrderFn for two tasks of the job."""
        a, b = self.of.get(left.uid), self.of.get(right.uid)
        if a is None or b is None:
            return (a is None) - (b is None)
        if len(a.tasks) != len(b.tasks):
            return -1 if len(a.tasks) > len(b.tasks) else 1
        if a is b:
            return -self.role_order(left, right)
        return -1 if self.buckets.index(a) < self.buckets.index(b) else 1
