"""Hierarchical drf: shares of queues in a tree of weights. Source: Volcano drf (`hierarchicalNode`,
`updateHierarchicalShare`).

A queue's place is its annotation volcano.sh/hierarchy ("root/a/b"), the weights along it volcano.sh/hierarchy-weights
("1/2/3"). Jobs are leaves below their queue's last segment. Everything inside is a function of the leaves and of what
is free in the cluster, so only the branches that changed are worked out again, and only when somebody asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.core.resources import MIN_RESOURCE

if TYPE_CHECKING:
    from pumice.core.objects.queue import Queue
    from pumice.core.plugins.drf.shares import Shares
    from pumice.core.state.jobs import Job

HIERARCHY: Final = "volcano.sh/hierarchy"
WEIGHTS: Final = "volcano.sh/hierarchy-weights"


class HierarchicalNode:
    """A node of the tree: `children` by segment or job key, None for a job. `saturated`: it cannot use more.

    `allocated` by dimension; `request` (jobs only) is all the job asks for, placed or not.
    """

    __slots__ = ("allocated", "children", "order", "parent", "request", "saturated", "share", "stale", "weight")

    def __init__(
        self, parent: HierarchicalNode | None, weight: float, allocated: list[float], request: list[float] | None = None
    ) -> None:
        self.parent = parent
        self.weight = weight
        self.request = request
        self.children: dict[str, HierarchicalNode] = {}
        self.order: list[HierarchicalNode] | None = None
        self.allocated = allocated
        self.share = 0.0
        self.saturated = False
        self.stale = True

    def touch(self) -> None:
        """What this node says, and what its ancestors say, must be worked out again."""
        node: HierarchicalNode | None = self
        while node is not None and not node.stale:
            node.stale = True
            node = node.parent

    def in_order(self) -> list[HierarchicalNode]:
        """The children by key."""
        if self.order is None:
            self.order = [self.children[key] for key in sorted(self.children)]
        return self.order


class HierarchicalShares:
    """The tree of one session. `total_allocated` by dimension."""

    def __init__(self, shares: Shares, height: int) -> None:
        self._shares = shares
        self._height = height
        self._root = HierarchicalNode(None, 1.0, [0.0] * height)
        self._queues: dict[str, HierarchicalNode] = {}
        self._jobs: dict[int, HierarchicalNode] = {}
        self.total_allocated = [0.0] * height
        self._demanding: frozenset[int] = frozenset()

    def add(self, job: Job, queue: Queue, request: list[float], allocated: list[float]) -> None:
        """Hang a job under its queue; the first job of a path decides about its weights."""
        parent = self._queues.get(queue.name)
        if parent is None:
            parent = self._queues[queue.name] = self._place(queue)
        leaf = parent.children[job.key] = self._jobs[job.row] = HierarchicalNode(parent, 1.0, allocated, request)
        parent.order = None
        leaf.share = self._shares.of[job.row]
        total = self.total_allocated
        for dimension, amount in enumerate(allocated):
            total[dimension] += amount

    def _place(self, queue: Queue) -> HierarchicalNode:
        """The node of the queue's last segment, made with all above it where they are new."""
        node, weights = self._root, queue.annotations.get(WEIGHTS, "").split("/")
        for depth, segment in enumerate(_path(queue)[1:], start=1):
            child = node.children.get(segment)
            if child is None:
                child = node.children[segment] = HierarchicalNode(node, _weight(weights, depth), [0.0] * self._height)
                node.order = None
            node = child
        return node

    def set(self, row: int, allocated: list[float]) -> None:
        """A job has other amounts than before; the cluster's sum follows."""
        leaf = self._jobs[row]
        before = leaf.allocated
        moved = zip(self.total_allocated, allocated, before, strict=True)
        self.total_allocated = [total + (new - old) for total, new, old in moved]
        leaf.allocated, leaf.share = allocated, self._shares.share(allocated)
        leaf.touch()

    def compare(self, left: Queue, right: Queue) -> float:
        """Below 0: left goes first. From the root down: who is not saturated, then the smaller share by weight."""
        self._update()
        a: HierarchicalNode | None = self._root
        b: HierarchicalNode | None = self._root
        paths = _path(left), _path(right)
        depth = min(len(paths[0]), len(paths[1]))
        for level in range(1, depth + 1):
            if a is None or b is None:
                return 0.0  # a queue without jobs is not in the tree
            if a.saturated != b.saturated:
                return 1.0 if a.saturated else -1.0
            ours, theirs = a.share / a.weight, b.share / b.weight
            if ours != theirs:
                return ours - theirs
            if level < depth:
                a, b = a.children.get(paths[0][level]), b.children.get(paths[1][level])
        return 0.0

    # --- working out
    # ------------------------------------------------------------------------------------------------------------

    def _update(self) -> None:
        demanding = frozenset(d for d, total in self._shares.totals if self.total_allocated[d] < total)
        if demanding != self._demanding:
            self._demanding = demanding
            for leaf in self._jobs.values():
                leaf.touch()
        stale = [self._root] if self._root.stale else []
        for node in stale:
            node.stale = False
            stale += [child for child in node.children.values() if child.stale]
        for node in reversed(stale):  # children before their parents
            self._settle(node)

    def _settle(self, node: HierarchicalNode) -> None:
        if node.request is not None:
            node.saturated = self._is_saturated(node.allocated, node.request)
            return
        children = node.in_order()
        least = 1.0
        for child in children:
            if child.share != 0 and not child.saturated and child.share < least:
                least = child.share
        node.allocated = self._sum(children, least)
        node.share = self._shares.share(node.allocated)
        node.saturated = all(child.saturated for child in children)

    def _sum(self, children: list[HierarchicalNode], least: float) -> list[float]:
        """Saturated children as they are, the others cut to the least dominant share among them."""
        total = [0.0] * self._height
        for child in children:
            if child.share == 0:
                continue
            if child.saturated:
                total = [a + b for a, b in zip(total, child.allocated, strict=True)]
            else:
                ratio = least / child.share
                total = [a + b * ratio for a, b in zip(total, child.allocated, strict=True)]
        return total

    def _is_saturated(self, allocated: list[float], request: list[float]) -> bool:
        """In some dimension that the job has, it has all it asks for, or the cluster has no more."""
        for dimension, amount in enumerate(allocated):
            wanted = request[dimension]
            if amount >= MIN_RESOURCE and wanted != 0 and (amount >= wanted or dimension not in self._demanding):
                return True
        return False


def _path(queue: Queue) -> list[str]:
    return queue.annotations.get(HIERARCHY, "").split("/")


def _weight(weights: list[str], depth: int) -> float:
    """The weight at that depth; below 1, absent, or no number: 1."""
    try:
        return max(float(weights[depth]), 1.0)
    except (IndexError, ValueError):
        return 1.0
