"""Hierarchical drf worked out anew each time, as Volcano does: what the one that keeps up must equal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pumice.core.session.session import Session

Amounts = list[float]


@dataclass
class PlainNode:
    """A node, or a job when it has a request."""

    weight: float = 1.0
    request: Amounts | None = None
    allocated: Amounts = field(default_factory=list[float])
    share: float = 0.0
    saturated: bool = False
    children: dict[str, PlainNode] = field(default_factory=dict[str, "PlainNode"])


class PlainTree:
    """The tree over the session's jobs as they stand now."""

    def __init__(self, session: Session) -> None:
        total = session.total
        named = {session.dims.index(name): amount for name, amount in (total.scalars or {}).items()}
        self.totals = {d: v for d, v in {0: total.milli_cpu, 1: total.memory, **named}.items() if v >= 0.1}
        self.root = PlainNode()
        used = [0.0] * len(session.dims)
        for job in session.jobs.in_order:
            allocated, request = [0.0] * len(session.dims), [0.0] * len(session.dims)
            for task in job.tasks.values():
                placed = session.jobs.node[task.row] >= 0
                for dimension, value in task.template.items:
                    request[dimension] += value
                    allocated[dimension] += value * placed
            used = [a + b for a, b in zip(used, allocated, strict=True)]
            self._hang(session, job.key, job.pod_group.queue, request, allocated)
        self.demanding = {d for d, v in self.totals.items() if used[d] < v}
        self._settle(self.root)

    def _hang(self, session: Session, key: str, queue: str, request: Amounts, allocated: Amounts) -> None:
        annotations = session.queues[queue].annotations
        path = annotations["volcano.sh/hierarchy"].split("/")
        weights = annotations["volcano.sh/hierarchy-weights"].split("/")
        node = self.root
        for segment, weight in zip(path[1:], weights[1:], strict=True):
            node = node.children.setdefault(segment, PlainNode(max(float(weight), 1.0)))
        node.children[key] = PlainNode(1.0, request, allocated, self.share(allocated))

    def share(self, allocated: Amounts) -> float:
        """The dominant share."""
        return max([0.0, *(allocated[d] / v for d, v in self.totals.items())])

    def _settle(self, node: PlainNode) -> None:
        if node.request is not None:
            node.saturated = any(
                amount >= 0.1 and wanted != 0 and (amount >= wanted or dimension not in self.demanding)
                for dimension, (amount, wanted) in enumerate(zip(node.allocated, node.request, strict=True))
            )
            return
        children = [node.children[key] for key in sorted(node.children)]
        for child in children:
            self._settle(child)
        least = min([1.0, *(child.share for child in children if child.share != 0 and not child.saturated)])
        height = max(self.totals) + 2
        node.allocated = [0.0] * height
        for child in children:
            if child.share != 0:
                ratio = 1.0 if child.saturated else least / child.share
                for dimension, amount in enumerate(child.allocated):
                    node.allocated[dimension] += amount * ratio
        node.share = self.share(node.allocated)
        node.saturated = all(child.saturated for child in children)

    def compare(self, left: str, right: str) -> float:
        """Queues by their paths."""
        a = b = self.root
        paths = left.split("/"), right.split("/")
        for level, (one, other) in enumerate(zip(*paths, strict=False)):
            if level:
                a, b = a.children[one], b.children[other]
            if a.saturated != b.saturated:
                return 1.0 if a.saturated else -1.0
            if a.share / a.weight != b.share / b.weight:
                return a.share / a.weight - b.share / b.weight
        return 0.0
