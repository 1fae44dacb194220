# SPDX-License-Identifier: Apache-2.0
"""numa-aware: place pods of quality Guaranteed where the kubelet's topology manager admits them.

Source: Volcano `plugins/numaaware`, `api/node_info.go` (RefreshNumaSchedulerInfoByCrd).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from pumice.config.arguments import INTEGER, Argument, PluginArguments
from pumice.core.devices.numa.hints import asked_by, given_on, is_guaranteed, judged
from pumice.core.devices.numa.topology import CPU, NONE, Cpus, Topology, cpus_of, read_topology, text_of
from pumice.core.life.task import TaskStatus
from pumice.core.objects.metadata import section
from pumice.core.plugins.plugin import BuiltInPlugin
from pumice.core.session.points.nodes import Volatility
from pumice.core.session.points.per_node import PerNodeFilter, PerNodeScorer
from pumice.core.session.reasons import Code, Reason
from pumice.core.state.derived import memory
from pumice.core.state.sources import NODES
from pumice.core.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pumice.core.objects.metadata import Object
    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.session.points.nodes import FloatArray
    from pumice.core.session.points.per_node import NodeLook
    from pumice.core.session.session import Session
    from pumice.core.state.sources import NodeSpecs

# --- Free cells
# A scheduler takes off what it placed and goes on with that until the node's `Numatopology` changes: when that says
# that there is more, or as much, it counts alone; when there is less, it counts where it leaves less than was known.
# So a pod that the kubelet has not reached yet loses its CPUs to the next one when the object changes for another
# reason. With the fix `numa-waits-for-kubelet` each placed pod keeps its CPUs until the object names it
# (`UnassignedPods`).

KIND: Final = "Numatopology"
FIX: Final = "numa-waits-for-kubelet"
UNASSIGNED: Final = "unassigned"
HOLDS_NOTHING: Final = (TaskStatus.PENDING, TaskStatus.PIPELINED, TaskStatus.SUCCEEDED, TaskStatus.FAILED)
Free = dict[str, Cpus]
"""By resource."""


@memory(NODES)
def _read(_nodes: NodeSpecs) -> dict[str, tuple[Object, Topology]]:
    """Read by node the last object and its topology."""
    return {}


class Cells:
    """The cells of nodes. `topologies` by row of the node; `free`: the CPUs by row and resource. `carry`: kept by
    node.
    """

    def __init__(self, session: Session, carry: Object) -> None:
        self._names, self._carry = session.nodes.names, carry
        self._unassigned = UnassignedPods(session, carry) if FIX in session.config.pumice.fix else None
        self.topologies: dict[int, Topology] = {}
        self.free: dict[int, Free] = {}
        self._versions: dict[int, str] = {}
        known, rows = _read(session.nodes), session.nodes.row
        for name, obj in sorted(session.objects.get(KIND, {}).items()):
            row = rows.get(name)
            if row is not None:
                kept = known.get(name)
                # The same object says the same: only changed ones are read again.
                topology = kept[1] if kept is not None and kept[0] is obj else read_topology(obj)
                known[name] = obj, topology
                self.topologies[row] = topology
                self._versions[row] = str(section(obj, "metadata").get("resourceVersion") or "")
                self.free[row] = self._left(row, topology.allocatable)
        for name in [name for name in carry if name not in rows or rows[name] not in self.free]:
            del carry[name]

    def _left(self, row: int, said: Free) -> Free:
        if self._unassigned is not None:
            return self._unassigned.left(row, self.topologies[row])
        kept: Object | None = self._carry.get(self._names[row])
        if kept is None or UNASSIGNED in kept:  # the fix was on until now
            return dict(said)
        before, left = _as_sets(kept["said"]), _as_sets(kept["left"])
        # The object is the one of the last session: what was placed since is off already.
        if self._versions[row] == kept["version"] and before == said:
            return left
        # Some resource did not shrink: the object counts alone (RefreshNumaSchedulerInfoByCrd).
        if any(len(cpus) <= len(said.get(name, NONE)) for name, cpus in before.items()):
            return dict(said)
        # All shrank: a set of the object counts only where it is not larger than what is known to be left.
        less = {name: cpus for name, cpus in said.items() if name not in left or len(left[name]) >= len(cpus)}
        return {**left, **less}

    def keep(self, given: dict[int, tuple[int, Cpus]]) -> None:
        """Remember the placements (task row -> node row and CPUs): their CPUs are not free in the next session
        either.
        """
        if self._unassigned is not None:
            self._unassigned.keep(given)
            return
        rows: dict[int, Free] = {}
        for node, cpus in given.values():
            of_node = rows.setdefault(node, {})
            of_node[CPU] = of_node.get(CPU, NONE) | cpus
        for row, topology in self.topologies.items():
            if row not in rows and self._names[row] not in self._carry:
                continue
            free, taken = self.free_at_open(row), rows.get(row, {})
            left = {name: cpus - taken.get(name, NONE) for name, cpus in free.items()}
            said = {name: text_of(cpus) for name, cpus in topology.allocatable.items()}
            self._carry[self._names[row]] = {
                "version": self._versions[row],
                "said": said,
                "left": {name: text_of(cpus) for name, cpus in left.items()},
            }

    def free_at_open(self, row: int) -> Free:
        """Return the CPUs that were free when the session opened."""
        return self._left(row, self.topologies[row].allocatable)

    def told(self) -> dict[str, dict[str, str]]:
        """Return what the next session finds: node -> resource -> CPUs."""
        return {
            self._names[row]: {name: text_of(cpus) for name, cpus in self.free_at_open(row).items()}
            for row in sorted(self.topologies)
        }


class UnassignedPods:
    """The CPUs of pods that were placed on a node and that its `Numatopology` does not name yet, kept by pod.

    They are forgotten together, when the object names all of them: the kubelet may have given others than was thought.
    Source: Volcano after v1.15.1, `api/node_info.go` (RefreshNumaSchedulerInfoByCrd).
    """

    def __init__(self, session: Session, carry: Object) -> None:
        self._session, self._carry = session, carry
        tasks = session.snapshot.tasks.handles
        self._tasks = {task.uid: task for task in tasks if task is not None} if carry else {}
        self._topologies: dict[int, Topology] = {}

    def left(self, row: int, topology: Topology) -> Free:
        """Return what the object says, without the CPUs of pods that wait for theirs."""
        self._topologies[row] = topology
        taken = [cpus_of(pod["cpus"]) for pod in self._of(row, topology).values()]
        return {name: cpus.difference(*taken) if name == CPU else cpus for name, cpus in topology.allocatable.items()}

    def _of(self, row: int, topology: Topology) -> dict[str, dict[str, str]]:
        kept: dict[str, dict[str, str]] = self._carry.get(self._session.nodes.names[row], {}).get(UNASSIGNED, {})
        there = {uid: pod for uid, pod in kept.items() if self._holds(row, uid)}
        waits = any(topology.assigned.isdisjoint((uid, pod["key"])) for uid, pod in there.items())
        return there if waits else {}

    def _holds(self, row: int, uid: str) -> bool:
        task, jobs = self._tasks.get(uid), self._session.jobs
        return task is not None and jobs.node[task.row] == row and jobs.status[task.row] not in HOLDS_NOTHING

    def keep(self, given: dict[int, tuple[int, Cpus]]) -> None:
        """Add this session's pods (task row -> node row and CPUs) to those that wait."""
        names, tasks = self._session.nodes.names, self._session.snapshot.tasks.handles
        of_node = {row: self._of(row, topology) for row, topology in self._topologies.items()}
        for at, (row, cpus) in given.items():
            task = tasks[at]
            if task is not None:
                self._tasks[task.uid] = task
                of_node.setdefault(row, {})[task.uid] = {"key": task.key, "cpus": text_of(cpus)}
        self._carry.clear()
        self._carry.update({names[row]: {UNASSIGNED: pods} for row, pods in of_node.items() if pods})


def _as_sets(texts: dict[str, str]) -> Free:
    return {name: cpus_of(text) for name, text in texts.items()}


NAME: Final = "numa-aware"
WEIGHT: Final = Argument("weight", INTEGER, 1, "What its scores count.")
POLICY: Final = "volcano.sh/numa-topology-policy"
STATIC: Final = "static"
INDIFFERENT: Final = ("", "none")
FULL: Final = 100


class NumaOutcome(NamedTuple):
    """The result for a pod on a node: why it is refused; else the CPUs that it would get, None where NUMA does not
    apply.
    """

    refusal: Reason | None
    cpus: Cpus | None = None


UNCONCERNED: Final = NumaOutcome(None)


def policy_of(task: Task) -> str:
    """Return the policy that the pod requests of the node's topology manager, "" for none."""
    policy = task.annotations.get(POLICY, "")
    return "" if policy in INDIFFERENT else policy


class Placements:
    """The CPUs that pods would get, and hold."""

    def __init__(self, session: Session, cells: Cells) -> None:
        self._session, self.cells = session, cells
        self._guaranteed: dict[int, bool] = {}
        self._given: dict[int, tuple[int, Cpus]] = {}  # task row -> node row and CPUs

    def concerns(self, template: PodTemplate) -> bool:
        """Return whether NUMA plays a part for such pods."""
        found = self._guaranteed.get(template.number)
        if found is None:
            found = self._guaranteed[template.number] = is_guaranteed(template)
        return found

    def outcome(self, task: Task, row: int) -> NumaOutcome:
        """Return the outcome on one node as it is now."""
        topology, policy = self.cells.topologies.get(row), policy_of(task)
        problem = self._problem(topology, policy, row)
        if problem is not None or topology is None:
            return NumaOutcome(Reason(NAME, Code.ERROR, problem)) if policy and problem else UNCONCERNED
        return self._by_container(task, topology, self.cells.free[row].get(CPU))

    def refusal(self, task: Task, node: NodeLook) -> Reason | None:
        """Return why the node does not have the CPUs that the pod asks for, None when it has."""
        return self.outcome(task, node.row).refusal

    def spread(self, task: Task, node: NodeLook) -> float:
        """Return how many cells of the node the pod's CPUs would come from."""
        cpus, topology = self.outcome(task, node.row).cpus, self.cells.topologies.get(node.row)
        return float(len({topology.places[cpu].cell for cpu in cpus})) if cpus and topology is not None else 0.0

    def _problem(self, topology: Topology | None, policy: str, row: int) -> str | None:
        """Return why the node takes no part; a pod that requests a policy is refused for that."""
        if topology is None:
            return "numa info is empty"
        if topology.cpu_policy != STATIC:
            return "cpu manager policy isn't static"
        if not policy:
            return "not asked" if topology.policy in INDIFFERENT else None
        if policy != topology.policy:
            return f"task topology policy[{policy}] is different with node[{topology.policy}]"
        return None if self.cells.free[row].get(CPU) else "cpu allocatable map is empty"

    def _by_container(self, task: Task, topology: Topology, left: Cpus | None) -> NumaOutcome:
        total = NONE
        for name, wanted in asked_by(task.template):
            on, admitted = judged(topology, left, wanted)
            if not admitted:
                text = f"container {name} cannot be assigned by numa"
                return NumaOutcome(Reason(NAME, Code.UNRESOLVABLE, text))
            given = given_on(topology, on, left or NONE, wanted)
            # The next container of the pod gets none of these CPUs.
            total, left = total | given, (left or NONE) - given
        return NumaOutcome(None, total)

    def allocate(self, task: Task, node: int) -> str | None:
        """Take the CPUs of a pod that was put on a node. It never refuses."""
        if task.row in self._session.pre_filtered and self.concerns(task.template):
            cpus = self.outcome(task, node).cpus
            if cpus is not None:
                self._given[task.row] = node, cpus
                self._shift(node, cpus, taken=True)
        return None

    def deallocate(self, task: Task, node: int) -> str | None:
        """Free the CPUs of a pod that was taken off again."""
        given = self._given.pop(task.row, None)
        if given is not None:
            self._shift(node, given[1], taken=False)
        return None

    def _shift(self, node: int, cpus: Cpus, *, taken: bool) -> None:
        free = self.cells.free[node]
        if CPU in free:
            free[CPU] = free[CPU] - cpus if taken else free[CPU] | cpus

    def placed(self) -> dict[int, tuple[int, Cpus]]:
        """Return the CPUs of this session's pods: task row -> node row and CPUs."""
        return self._given


class NumaAware(BuiltInPlugin):
    """Gives pods whole CPUs. Only pods of quality Guaranteed take part."""

    name = NAME
    says = "keeps each pod within the NUMA cells of a node"
    listens = ("Predicate", "NodeOrder")
    arguments = (WEIGHT,)
    within_nodes = True
    vocabulary = Vocabulary(("volcano.sh/numa-topology-policy", "volcano.sh/topology-decision"))

    def __init__(self, arguments: PluginArguments) -> None:
        self._weight = WEIGHT.of(arguments)
        self._placements: Placements | None = None

    def on_session_open(self, session: Session) -> None:
        """Register filter, scorer and event handlers."""
        carry: Object = session.carry.plugins.setdefault(self.name, {})
        placements = self._placements = Placements(session, Cells(session, carry))
        node_filter = PerNodeFilter(
            self.name,
            placements.refusal,
            volatility=Volatility.ROW,
            kind=policy_of,
            concerns=lambda task: placements.concerns(task.template),
        )
        scorer = PerNodeScorer(
            self.name,
            placements.spread,
            volatility=Volatility.ROW,
            kind=policy_of,
            concerns=lambda task: bool(policy_of(task)) and placements.concerns(task.template),
            finish=self._finish,
        )
        session.points.predicate.add(self.name, [node_filter])
        session.points.batch_node_order.add(self.name, [scorer])
        session.points.handle(placements.allocate, placements.deallocate)
        session.tellers.numa.append(placements.cells.told)

    def _finish(self, raw: FloatArray) -> FloatArray:
        """Return NormalizeScore over the candidates' raw scores, times the weight: the fewer cells, the better."""
        most = float(raw.max()) if len(raw) else 0.0
        # No candidate takes CPUs of any cell: all are equally good.
        if most == 0.0:
            return np.full(len(raw), float(FULL * self._weight))
        return (FULL - np.floor(FULL * raw / most)) * self._weight

    def on_session_close(self, session: Session) -> None:
        """Take the placements' CPUs off those that are free in the next session."""
        if self._placements is not None:
            self._placements.cells.keep(self._placements.placed())
