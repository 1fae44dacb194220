# SPDX-License-Identifier: Apache-2.0
"""The plugin rescheduling: it moves pods away from nodes with a high measured load. Source: Volcano
`plugins/rescheduling`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pumice.config.arguments import ANYTHING, DURATION, LIST, Argument, PluginArguments
from pumice.core.objects.metadata import Object, mapping, section
from pumice.core.objects.node_usage import KIND, usage_of
from pumice.core.plugins.plugin import BuiltInPlugin
from pumice.core.quantity import quantity_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.core.objects.node import NodeSpec
    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.quantity import Quantity
    from pumice.core.session.session import Session

# --- lowNodeUtilization
# From the busiest nodes down, the least important pods go, as long as idle nodes could take them. Source: Volcano
# `plugins/rescheduling/{low_node_utilization,node_utilization_util}.go`; amounts are whole milli-cores and bytes, as
# there.

# --- Quality of service
# Source: Kubernetes `helper/qos` (ComputePodQOS).

COMPUTE = ("cpu", "memory")


class Qos(Enum):
    """The order of eviction, from the top."""

    BEST_EFFORT = "BestEffort"
    BURSTABLE = "Burstable"
    GUARANTEED = "Guaranteed"


def qos_of(template: PodTemplate) -> Qos:
    """Return the QoS class: BestEffort without requests; Guaranteed with limits for cpu and memory everywhere, equal to
    the requests.
    """
    spec = template.spec
    whole = section(spec, "resources")
    parts: list[Object] = [whole] if whole else _containers(spec)
    requests, limits = _sum(parts, "requests"), _sum(parts, "limits")
    if not requests and not limits:
        return Qos.BEST_EFFORT
    limited = [part for part in parts if not whole or "limits" in part]
    bounded = all(len(_positive(section(part, "limits"))) == len(COMPUTE) for part in limited)
    equal = all(name in limits and limits[name].compare(request) == 0 for name, request in requests.items())
    return Qos.GUARANTEED if bounded and equal and len(requests) == len(limits) else Qos.BURSTABLE


def _containers(spec: Object) -> list[Object]:
    listed = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    return [section(container, "resources") for container in listed]


def _positive(amounts: Object) -> dict[str, Quantity]:
    found = {name: quantity_of(amounts[name]) for name in COMPUTE if name in amounts}
    return {name: quantity for name, quantity in found.items() if quantity.sign() > 0}


def _sum(parts: list[Object], kind: str) -> dict[str, Quantity]:
    total: dict[str, Quantity] = {}
    for part in parts:
        for name, quantity in _positive(section(part, kind)).items():
            total[name] = total[name].plus(quantity) if name in total else quantity
    return total


class Thresholds(NamedTuple):
    """Thresholds in per cent of a node's capacity."""

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
        """Return whether the load is below the limits in every dimension, and the node accepts pods."""
        return not self.spec.unschedulable and self.cpu < limits.cpu and self.memory < limits.memory

    def is_high(self, limits: Thresholds) -> bool:
        """Return whether the load is above a limit."""
        return self.cpu > limits.cpu or self.memory > limits.memory

    def reaches(self, limits: Thresholds) -> bool:
        """Return whether the load is at a limit or above."""
        return self.cpu >= limits.cpu or self.memory >= limits.memory


@dataclass(slots=True)
class Spare:
    """The room of the idle nodes up to their targets: milli-cores and bytes."""

    cpu: int = 0
    memory: int = 0

    def is_used_up(self) -> bool:
        """Return whether exactly nothing is left of one of them; once it is below 0, eviction goes on."""
        return self.cpu == 0 or self.memory == 0


def victims(
    session: Session, loads: Sequence[Load], limits: Thresholds, targets: Thresholds, running: Sequence[Task]
) -> list[Task]:
    """Return the tasks to evict. As in Volcano, pods match running tasks by name alone; the first of a name counts."""
    low = [load for load in loads if load.is_low(limits)]
    high = [load for load in loads if not load.is_low(limits) and load.is_high(targets)]
    if not low or not high:
        return []
    spare = _spare(low, targets)
    by_name: dict[str, Task] = {}
    for task in running:
        # By name without the namespace, as in low_node_utilization.go.
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
        # A pod that does not run is not among them.
        if task is None:
            continue
        # A pod counts with what it asks for, not with its measured load.
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
    """Return milli-cores and bytes of a node's capacity or, where it says so, allocatable."""
    status = section(spec.node, "status")
    amounts = section(status, kind) or section(status, "capacity")
    return quantity_of(amounts.get("cpu", "0")).milli_value(), quantity_of(amounts.get("memory", "0")).value()


def _least_important_first(pods: list[Task]) -> list[Task]:
    """Sort by priority, then QoS class. Go's insertion sort with a comparison that calls two best-effort pods each less
    than the other reverses their order.
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


NAME: Final = "rescheduling"
STRATEGY: Final = "lowNodeUtilization"
INTERVAL: Final = Argument("interval", DURATION, 300.0, "How often pods are moved.", "5m")
LOAD_PERIOD: Final = Argument("metricsPeriod", ANYTHING, None, "Which average of the load is read.", "5m")
STRATEGIES: Final = Argument(
    "strategies",
    LIST,
    [],
    f"`[{{name: {STRATEGY}, params: {{thresholds, targetThresholds: {{cpu, memory}}}}}}]`, in per cent: pods of nodes "
    "over the target are moved while there are nodes below the thresholds.",
    "one, 100 each",
)
DEFAULT_PERIOD: Final = "5m"
FILLED_PERIOD: Final = "10m"  # what collectors fill in
LAST: Final = "last"  # in the carry: seconds since the epoch
UPTIME_S: Final = 1.0  # how long a scheduler is held to have run before its first cycle


class Rescheduling(BuiltInPlugin):
    """Names pods to evict from nodes that are busier than others."""

    name = NAME
    says = "wants pods moved off overused nodes, every so often"
    listens = ("Victim",)
    needs_action = "shuffle"
    arguments = (INTERVAL, LOAD_PERIOD, STRATEGIES)

    def __init__(self, arguments: PluginArguments) -> None:
        self._interval_s = INTERVAL.of(arguments)
        self._given_period = str(LOAD_PERIOD.of(arguments) or "")
        self._strategies = _strategies(STRATEGIES.of(arguments))

    def on_session_open(self, session: Session) -> None:
        """Register for shuffle when the interval has passed since the last time."""
        self._session = session
        usual = FILLED_PERIOD if "rescheduling-default-period" in session.config.pumice.fix else DEFAULT_PERIOD
        self._period = self._given_period or usual
        state: dict[str, float] = session.carry.plugins.setdefault(self.name, {})
        now, last = session.clock.now, state.setdefault(LAST, session.clock.now - UPTIME_S)
        # Volcano keeps the time of the last run in a package variable; here it is in the carry.
        if last + self._interval_s >= now:
            session.wake(last + self._interval_s)
            return
        state[LAST] = now
        session.points.victim_tasks.add(self.name, [self._strategy(limits) for limits in self._strategies])

    def on_session_close(self, session: Session) -> None:
        """Write nothing."""

    def _strategy(self, limits: tuple[Thresholds, Thresholds]) -> Callable[[Sequence[Task]], list[Task]]:
        return lambda tasks: victims(self._session, self._loads(), *limits, tasks)

    def _loads(self) -> list[Load]:
        """Return every node's load, in name order; 0 for a load that was not measured."""
        session = self._session
        handed_in, metrics = session.options.node_usage or {}, session.objects.get(KIND, {})
        loads: list[Load] = []
        for row, spec in enumerate(session.nodes.specs):
            usage = usage_of(spec, handed_in, metrics, session.clock.now)
            if usage is None:
                loads.append(Load(row, spec, 0.0, 0.0))
            else:
                loads.append(Load(row, spec, usage.cpu.get(self._period, 0.0), usage.memory.get(self._period, 0.0)))
        return loads


def _strategies(given: list[Any]) -> list[tuple[Thresholds, Thresholds]]:
    """Return (thresholds, targetThresholds) of every lowNodeUtilization; the default one without a strategy."""
    if not given:
        return [(_thresholds(None), _thresholds(None))]
    known = [entry for entry in map(mapping, given) if entry.get("name") == STRATEGY]
    # The last of that name says the parameters for all of them, as Volcano's registry has it.
    params = section(known[-1], "params") if known else {}
    return [(_thresholds(params.get("thresholds")), _thresholds(params.get("targetThresholds")))] * len(known)


def _thresholds(given: object) -> Thresholds:
    numbers = mapping(given)
    return Thresholds(float(numbers.get("cpu", 100)), float(numbers.get("memory", 100)))
