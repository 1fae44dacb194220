"""What is free in the nodes' cells, in a session and from one to the next.

A scheduler takes off what it placed and goes on with that until the node's `Numatopology` changes: when that says that
there is more, or as much, it counts alone; when there is less, it counts where it leaves less than was known. So a
pod that the kubelet has not come to yet loses its CPUs to the next one when the object changes for another reason.
With the fix `numa-waits-for-kubelet` each placed pod keeps its CPUs until the object names it (`UnassignedPods`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.core.devices.numa.topology import CPU, NONE, Cpus, Topology, cpus_of, read_topology, text_of
from pumice.core.life.task import TaskStatus
from pumice.core.objects.metadata import section
from pumice.core.state.derived import memory
from pumice.core.state.sources import NODES

if TYPE_CHECKING:
    from pumice.core.objects.metadata import Object
    from pumice.core.session.session import Session
    from pumice.core.state.sources import NodeSpecs

KIND: Final = "Numatopology"
FIX: Final = "numa-waits-for-kubelet"
UNASSIGNED: Final = "unassigned"
HOLDS_NOTHING: Final = (TaskStatus.PENDING, TaskStatus.PIPELINED, TaskStatus.SUCCEEDED, TaskStatus.FAILED)
Free = dict[str, Cpus]
"""By resource."""


@memory(NODES)
def _read(nodes: NodeSpecs) -> dict[str, tuple[Object, Topology]]:
    """By node: the object that was read last, and what was made of it."""
    del nodes
    return {}


class Cells:
    """`topologies` by row of the node; `free`: the CPUs by row and resource. `carry`: what is kept by node."""

    def __init__(self, session: Session, carry: dict[str, Any]) -> None:
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
        kept: dict[str, Any] | None = self._carry.get(self._names[row])
        if kept is None or UNASSIGNED in kept:  # the fix was on until now
            return dict(said)
        before, left = _as_sets(kept["said"]), _as_sets(kept["left"])
        if self._versions[row] == kept["version"] and before == said:
            return left
        if any(len(cpus) <= len(said.get(name, NONE)) for name, cpus in before.items()):
            return dict(said)
        less = {name: cpus for name, cpus in said.items() if name not in left or len(left[name]) >= len(cpus)}
        return {**left, **less}

    def keep(self, given: dict[int, tuple[int, Cpus]]) -> None:
        """Remember what was placed (task row -> node row and CPUs): it is not free in the next session either."""
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
        """What was free when the session opened."""
        return self._left(row, self.topologies[row].allocatable)

    def told(self) -> dict[str, dict[str, str]]:
        """What the next session finds: node -> resource -> CPUs."""
        return {
            self._names[row]: {name: text_of(cpus) for name, cpus in self.free_at_open(row).items()}
            for row in sorted(self.topologies)
        }


class UnassignedPods:
    """The CPUs of pods that were placed on a node and that its `Numatopology` does not name yet, kept by pod.

    They are forgotten together, when the object names all of them: the kubelet may have given others than was thought.
    Source: Volcano after v1.15.1, `api/node_info.go` (RefreshNumaSchedulerInfoByCrd).
    """

    def __init__(self, session: Session, carry: dict[str, Any]) -> None:
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
