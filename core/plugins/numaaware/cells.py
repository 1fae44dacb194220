"""What is free in the nodes' cells, in a session and from one to the next.

A scheduler takes off what it placed and goes on with that until the node's `Numatopology` changes: when that says that
there is more, or as much, it counts alone; when there is less, it counts where it leaves less than was known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from core.devices.numa.topology import NONE, Cpus, Topology, cpus_of, read_topology, text_of
from core.objects.metadata import section
from core.state.derived import memory
from core.state.sources import NODES

if TYPE_CHECKING:
    from core.objects.metadata import Object
    from core.session.session import Session
    from core.state.sources import NodeSpecs

KIND: Final = "Numatopology"
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
        kept: dict[str, Any] | None = self._carry.get(self._names[row])
        if kept is None:
            return dict(said)
        before, left = _as_sets(kept["said"]), _as_sets(kept["left"])
        if self._versions[row] == kept["version"] and before == said:
            return left
        if any(len(cpus) <= len(said.get(name, NONE)) for name, cpus in before.items()):
            return dict(said)
        less = {name: cpus for name, cpus in said.items() if name not in left or len(left[name]) >= len(cpus)}
        return {**left, **less}

    def keep(self, rows: dict[int, Free]) -> None:
        """Remember what was placed: it is not free in the next session either."""
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


def _as_sets(texts: dict[str, str]) -> Free:
    return {name: cpus_of(text) for name, text in texts.items()}
