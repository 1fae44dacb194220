# SPDX-License-Identifier: Apache-2.0
"""Resources over time: requested, held and available, by queue and for the whole cluster."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pumice.core.resources.amounts import CPU, MEMORY, PODS
from pumice.questions.measures.lives import Listener
from pumice.questions.measures.over_time import Steps

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.questions.measures.amounts import Amount
    from pumice.questions.measures.lives import PodLife
    from pumice.questions.measures.over_time import Grid

WAITING: Final = "waiting"
HELD: Final = "held"


@dataclass(slots=True)
class NodeUse:
    """Allocatable resources of a node, and the held part."""

    allocatable: Amount
    held: dict[str, float]


class ResourceUse(Listener):
    """Amounts by resource (cores, bytes, pieces), each a series.

    `waiting`: of pods without a node; `held`: of pods with one, until they have ended. Both are by (queue, resource);
    the resource "pods" counts pods. `capacity` is by resource. `torn`: what is free on nodes where some of it is held
    already; of what is free, that part is the fragmentation: a gang of whole nodes cannot have it.
    """

    def __init__(self, grid: Grid) -> None:
        self.waiting: defaultdict[tuple[str, str], Steps] = defaultdict(lambda: Steps(grid))
        self.held: defaultdict[tuple[str, str], Steps] = defaultdict(lambda: Steps(grid))
        self.capacity: defaultdict[str, Steps] = defaultdict(lambda: Steps(grid))
        self.torn: defaultdict[str, Steps] = defaultdict(lambda: Steps(grid))
        self._nodes: dict[str, NodeUse] = {}

    def resources(self) -> list[str]:
        """Return all resources that a node ever had or a pod requested; cpu and memory first."""
        names = {name for _, name in (*self.waiting, *self.held)} | set(self.capacity)
        return sorted(names, key=lambda name: (name != CPU, name != MEMORY, name == PODS, name))

    def queues(self) -> list[str]:
        """Return those that had pods."""
        return sorted({queue for queue, _ in (*self.waiting, *self.held)})

    # --- pods

    def pod_created(self, pod: PodLife) -> None:
        """Note a waiting pod."""
        self._change(self.waiting, pod.queue, pod, 1, pod.created)

    def pod_moved(self, pod: PodLife, job: str, queue: str) -> None:
        """Note that a pod has waited in that queue from the beginning."""
        if queue != pod.queue and pod.bound is None and pod.ended is None:
            self._change(self.waiting, queue, pod, -1, pod.created)
            self._change(self.waiting, pod.queue, pod, 1, pod.created)

    def pod_bound(self, pod: PodLife) -> None:
        """Note that a pod holds its request."""
        assert pod.bound is not None
        self._change(self.waiting, pod.queue, pod, -1, pod.bound)
        self._change(self.held, pod.queue, pod, 1, pod.bound)
        self._hold(pod, 1, pod.bound)

    def pod_ended(self, pod: PodLife) -> None:
        """Note that a pod holds nothing, or waits no more."""
        assert pod.ended is not None
        self._change(self.waiting if pod.bound is None else self.held, pod.queue, pod, -1, pod.ended)
        if pod.bound is not None:
            self._hold(pod, -1, pod.ended)

    def _change(self, of: defaultdict[tuple[str, str], Steps], queue: str, pod: PodLife, sign: int, at: float) -> None:
        of[queue, PODS].add(sign, at)
        for name, amount in pod.request.items():
            if name != PODS:
                of[queue, name].add(sign * amount, at)

    # --- nodes

    def node(self, name: str, allocatable: Amount, at: float) -> None:
        """Note a node that was added, changed or deleted."""
        use = self._nodes.get(name)
        if use is None:
            use = self._nodes[name] = NodeUse({}, {})
        if use.allocatable == allocatable:
            return
        names = {*use.allocatable, *allocatable}
        before = {one: _torn(use, one) for one in names}
        for one in names:
            self.capacity[one].add(allocatable.get(one, 0.0) - use.allocatable.get(one, 0.0), at)
        use.allocatable = allocatable
        self._tear(use, before, at)

    def _hold(self, pod: PodLife, sign: int, at: float) -> None:
        use = self._nodes.setdefault(pod.node, NodeUse({}, {}))
        before = {name: _torn(use, name) for name in pod.request}
        for name, amount in pod.request.items():
            use.held[name] = use.held.get(name, 0.0) + sign * amount
        self._tear(use, before, at)

    def _tear(self, use: NodeUse, before: dict[str, float], at: float) -> None:
        for name, was in before.items():
            if change := _torn(use, name) - was:
                self.torn[name].add(change, at)

    # --- figures

    def fragmentation(self, resource: str, until: float) -> list[float]:
        """Return for each span of time the fragmented part of the free amounts; 0 when nothing is free."""
        free = [
            whole - held
            for whole, held in zip(self.capacity[resource].means(until), self.all_held(resource, until), strict=True)
        ]
        torn = self.torn[resource].means(until)
        return [part / whole if whole > 0 else 0.0 for part, whole in zip(torn, free, strict=True)]

    def all_held(self, resource: str, until: float) -> list[float]:
        """Return the amount that all queues hold, in each interval."""
        return _sums((self.held[key].means(until) for key in sorted(self.held) if key[1] == resource), self, until)


def _torn(use: NodeUse, resource: str) -> float:
    whole, held = use.allocatable.get(resource, 0.0), use.held.get(resource, 0.0)
    return max(0.0, whole - held) if held > 0 else 0.0


def _sums(series: Iterable[list[float]], usage: ResourceUse, until: float) -> list[float]:
    total = [0.0] * len(usage.capacity[CPU].means(until))
    for values in series:
        total = [one + other for one, other in zip(total, values, strict=True)]
    return total
