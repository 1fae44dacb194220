"""lowNodeUtilization: from the busiest nodes down, the least important pods go, as long as idle nodes could take them.

Source: Volcano `plugins/rescheduling/{low_node_utilization,node_utilization_util}.go`; amounts are whole milli-cores
and bytes, as there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pumice.core.objects.metadata import section
from pumice.core.plugins.rescheduling.qos import Qos, qos_of
from pumice.core.quantity import quantity_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.objects.node import NodeSpec
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session


class Thresholds(NamedTuple):
    """Per cent of a node's capacity."""

    cpu: float
    memory: float


@dataclass(slots=True)
class Load:
    """A node's load in per cent; it falls as victims are chosen."""

    row: int
    spec: NodeSpec
    cpu: float
    memory: float

    def is_low(self, limits: Thresholds) -> bool:
        """Below the limits in every dimension, and open for pods."""
        return not self.spec.unschedulable and self.cpu < limits.cpu and self.memory < limits.memory

    def is_high(self, limits: Thresholds) -> bool:
        """Above a limit."""
        return self.cpu > limits.cpu or self.memory > limits.memory

    def reaches(self, limits: Thresholds) -> bool:
        """At a limit or above."""
        return self.cpu >= limits.cpu or self.memory >= limits.memory


@dataclass(slots=True)
class Spare:
    """What the idle nodes could take up to their targets: milli-cores and bytes."""

    cpu: int = 0
    memory: int = 0

    def is_used_up(self) -> bool:
        """Exactly nothing left of one of them; once it is below 0, eviction goes on."""
        return self.cpu == 0 or self.memory == 0


def victims(
    session: Session, loads: Sequence[Load], limits: Thresholds, targets: Thresholds, running: Sequence[Task]
) -> list[Task]:
    """Who is to go. Pods are matched with running tasks by name alone, the first of a name counts (as Volcano does)."""
    low = [load for load in loads if load.is_low(limits)]
    high = [load for load in loads if not load.is_low(limits) and load.is_high(targets)]
    if not low or not high:
        return []
    spare = _spare(low, targets)
    by_name: dict[str, Task] = {}
    for task in running:
        by_name.setdefault(task.name, task)
    chosen: list[Task] = []
    for load in sorted(high, key=lambda load: -(load.cpu + load.memory)):
        chosen += _from_node(session, load, spare, targets, by_name)
    return chosen


def _from_node(session: Session, load: Load, spare: Spare, targets: Thresholds, by_name: dict[str, Task]) -> list[Task]:
    chosen: list[Task] = []
    cpu, memory = _amounts(load.spec, "capacity")
    for pod in _least_important_first(session.nodes.tasks_on(load.row)):
        if not load.reaches(targets) or spare.is_used_up():
            break
        task = by_name.get(pod.name)
        if task is None:
            continue
        milli, size = int(task.template.request.milli_cpu), int(task.template.request.memory)
        spare.cpu -= milli
        spare.memory -= size
        load.cpu -= _per_cent(milli * 1e-3, cpu * 1e-3)
        load.memory -= _per_cent(float(size), float(memory))
        chosen.append(task)
    return chosen


def _per_cent(part: float, whole: float) -> float:
    return part * 100 / whole if whole else float("inf")


def _spare(low: Sequence[Load], targets: Thresholds) -> Spare:
    spare = Spare()
    for load in low:
        cpu, memory = _amounts(load.spec, "allocatable")
        spare.cpu += int(targets.cpu * float(cpu) * 0.01) - int(load.cpu * float(cpu) * 0.01)
        spare.memory += int(targets.memory * float(memory) * 0.01) - int(load.memory * float(memory) * 0.01)
    return spare


def _amounts(spec: NodeSpec, kind: str) -> tuple[int, int]:
    """Milli-cores and bytes of a node's capacity or, where it says so, allocatable."""
    status = section(spec.node, "status")
    amounts = section(status, kind) or section(status, "capacity")
    return quantity_of(amounts.get("cpu", "0")).milli_value(), quantity_of(amounts.get("memory", "0")).value()


def _least_important_first(pods: list[Task]) -> list[Task]:
    """By priority, then QoS class; Go's insertion sort with a comparison that calls two best-effort pods each less than
    the other, which turns their order round.
    """
    ordered = list(pods)
    for i in range(1, len(ordered)):
        j = i
        while j and _before(ordered[j], ordered[j - 1]):
            ordered[j], ordered[j - 1] = ordered[j - 1], ordered[j]
            j -= 1
    return ordered


def _before(left: Task, right: Task) -> bool:
    a, b = left.pod_priority, right.pod_priority
    if a == b:
        mine = qos_of(left.template)
        return mine is Qos.BEST_EFFORT or (mine is Qos.BURSTABLE and qos_of(right.template) is Qos.GUARANTEED)
    if a is None or b is None:
        return a is None
    return a < b
