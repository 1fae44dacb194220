"""Plugin deviceshare: what its arguments switch on is registered here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.config.arguments import Arguments
from pumice.core.devices.ascend import MindClusterNpu
from pumice.core.devices.locks import NodeLocks
from pumice.core.devices.settings import config_map_of
from pumice.core.devices.vgpu import read_rules
from pumice.core.plugins.deviceshare.assignments import Assignments
from pumice.core.plugins.deviceshare.families import Switches, families_of
from pumice.core.plugins.deviceshare.looking import NAME, DeviceFilter, DeviceScorer
from pumice.core.plugins.deviceshare.npus import NpuScorer
from pumice.core.plugins.deviceshare.trials import DeviceTrials
from pumice.core.plugins.plugin import KnowsDevices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.core.session.session import Session

SWITCH_NAMES: Final = tuple(
    f"{NAME}.{kind}Enable" for kind in ("GPUSharing", "GPUNumber", "VGPU", "AscendMindClusterVNPU", "AscendHAMiVNPU")
)
"""Of which kinds cards count: by memory, whole ones, virtual ones, and both kinds of NPUs."""


class DeviceShare(KnowsDevices):
    """`deviceshare.GPUSharingEnable` (by memory), `GPUNumberEnable` (whole cards), `VGPUEnable`,
    `AscendMindClusterVNPUEnable`, `AscendHAMiVNPUEnable`: which kinds count, all off unless said. `SchedulePolicy`:
    binpack or spread, else the last card first; `ScheduleWeight` (0): what the scores of nodes count.
    `KnownGeometriesCMName`, `KnownGeometriesCMNamespace`: the ConfigMap of devices. `GPUExclusiveRules`: lists of
    labels; pods that have all labels of one never share a card of virtual GPUs. `NodeLockEnable`: who is given devices
    locks the node until it has them.
    """

    name = NAME

    def __init__(self, arguments: dict[str, Any]) -> None:
        read = Arguments(self.name, arguments)

        memory, number, vgpu, mindcluster, hami = [read.get_bool(name, False) for name in SWITCH_NAMES]
        self._switches = Switches(
            gpu_memory=memory,
            gpu_number=number,
            vgpu=vgpu,
            mindcluster=mindcluster,
            hami=hami,
            policy=read.get_string(f"{NAME}.SchedulePolicy", ""),
            config_map=config_map_of(read),
            rules=read_rules(arguments.get(f"{NAME}.GPUExclusiveRules")),
        )
        self._lock = read.get_bool(f"{NAME}.NodeLockEnable", False)
        self._weight = read.get_int(f"{NAME}.ScheduleWeight", 0)
        self._assignments: Assignments | None = None

    def find_devices(self, session: Session) -> None:
        """Give the session the devices that there are, with what pods have of them already."""
        families, locks = families_of(session, self._switches), self._locks(session)
        for family in families:
            family.locks = locks
        session.devices = families
        session.empty_devices = lambda: families_of(session, self._switches)
        self._assignments = Assignments(session, families, locks) if families else None

    def on_session_open(self, session: Session) -> None:
        """Register filter, scorer, event handlers and what binds carry, where there is anything to share."""
        families, assignments = session.devices, self._assignments
        if assignments is None:
            return
        trials = DeviceTrials(session, families)
        points = session.points
        points.predicate.add(self.name, [DeviceFilter(families)])
        if self._weight > 0:
            points.node_order.add(self.name, [DeviceScorer(families, self._weight)])
            npus = [family for family in families if isinstance(family, MindClusterNpu)]
            points.batch_node_order.add(self.name, [NpuScorer(family, self._weight) for family in npus])
        points.handle(assignments.allocate, assignments.deallocate)
        points.bind_context.add(self.name, assignments.bind_context)
        points.simulate_add_task.add(self.name, trials.add)
        points.simulate_remove_task.add(self.name, trials.remove)
        points.simulate_predicate.add(self.name, trials.predicate)
        points.simulates_nothing.add(self.name, trials.is_quiet)
        session.tellers.owned.append(assignments.owned)
        session.tellers.annotated.append(lambda: assignments.written)

    def _locks(self, session: Session) -> NodeLocks | None:
        """The nodes' own, and those of binds that are on their way."""
        if not self._lock:
            return None
        nodes, coming = session.nodes, dict[str, dict[str, str]]()
        for node, needs in session.snapshot.promised.values():
            coming.setdefault(node, {}).update(needs.locks)

        def locks_of(row: int) -> Mapping[str, str]:
            return {**nodes.specs[row].annotations, **coming.get(nodes.names[row], {})}

        return NodeLocks(nodes.names, locks_of, session.clock.now)

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""
