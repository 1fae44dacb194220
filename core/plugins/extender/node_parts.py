"""What a `NodeInfo` holds beside amounts and tasks, as Volcano's structs encode: devices, NUMA cells, images, load.

CPU sets encode as nothing: Go's have no field that can be seen.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from pumice.core.devices.family import Around
from pumice.core.messages.questions import AskedPod
from pumice.core.objects.metadata import format_time, section
from pumice.core.objects.node_usage import KIND, usage_of
from pumice.core.objects.typed import typed_node
from pumice.core.outside import WholePod

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session

Body = dict[str, Any]
NEVER: Final = "0001-01-01T00:00:00Z"
TOPOLOGY: Final = "Numatopology"


class NodeParts:
    """Of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._nodes: dict[int, Body] = {}

    def whole(self, row: int) -> Body:
        """The node as the api has it."""
        if row not in self._nodes:
            self._nodes[row] = typed_node(self._session.nodes.specs[row].node)
        return self._nodes[row]

    def devices(self, row: int, idle: Callable[[int], dict[str, float]]) -> Body:
        """`Others`: by kind of device, where deviceshare shares them. Models of HAMi's NPUs that a node does not have
        are not named there; of other kinds it is said that there are none.
        """
        session = self._session
        name = session.nodes.names[row]
        tasks: dict[str, Task] = {task.uid: task for task in session.nodes.tasks_on(row)} if session.devices else {}

        def whole(uid: str) -> WholePod | None:
            task = tasks.get(uid)
            return None if task is None else WholePod(AskedPod(task.namespace, task.name, uid, name))

        around = Around(whole, idle)
        named = [family for family in session.devices if family.always_named or family.present[row]]
        return {family.name: family.encoded(row, around) for family in named}

    def usage(self, row: int) -> Body:
        """`NodeUsage`."""
        session = self._session
        handed_in, metrics = session.options.node_usage or {}, session.objects.get(KIND, {})
        found = usage_of(session.nodes.specs[row], handed_in, metrics, session.clock.now)
        if found is None:
            return {"MetricsTime": NEVER, "CPUUsageAvg": {}, "MEMUsageAvg": {}}
        moment = format_time(found.measured_at) if found.measured_at else NEVER
        return {"MetricsTime": moment, "CPUUsageAvg": dict(found.cpu), "MEMUsageAvg": dict(found.memory)}

    def images(self, row: int) -> Body:
        """`ImageStateSummary` by name of an image."""
        listed = self._session.nodes.specs[row].images
        names = dict.fromkeys(str(name) for image in listed for name in image.get("names") or ())
        found: Body = {}
        for name in names:
            size, nodes = self._lie_on[name]
            found[name] = {"Size": size, "NumNodes": nodes, "Nodes": None}
        return found

    @cached_property
    def _lie_on(self) -> dict[str, tuple[int, int]]:
        """Name -> bytes, as the first node has it, and how many nodes have it."""
        found: dict[str, tuple[int, int]] = {}
        for spec in self._session.nodes.specs:
            sizes = {
                str(name): int(each.get("sizeBytes") or 0)
                for each in reversed(spec.images)
                for name in each.get("names") or ()
            }
            for name, size in sizes.items():
                first, nodes = found.get(name, (size, 0))
                found[name] = first, nodes + 1
        return found

    def cells(self, row: int) -> Body | None:
        """`NumatopoInfo`."""
        name = self._session.nodes.names[row]
        topology = self._session.objects.get(TOPOLOGY, {}).get(name)
        if topology is None:
            return None
        spec = section(topology, "spec")
        resources, details = section(spec, "numares"), section(spec, "cpuDetail")
        return {
            "Namespace": section(topology, "metadata").get("namespace", ""),
            "Name": name,
            "Policies": section(spec, "policies"),
            "NumaResMap": {of: _cell_resource(said) for of, said in resources.items()},
            "CPUDetail": {cpu: _place(said) for cpu, said in details.items()},
            "ResReserved": section(spec, "resReserved"),
        }


def _cell_resource(said: Body) -> Body:
    capacity = int(said.get("capacity") or 0)
    return {"Allocatable": {}, "Capacity": capacity, "AllocatablePerNuma": {}, "UsedPerNuma": {}}


def _place(said: Body) -> Body:
    cell, socket, core = (int(said.get(name) or 0) for name in ("numa", "socket", "core"))
    return {"NUMANodeID": cell, "SocketID": socket, "CoreID": core, "UncoreCacheID": 0}
