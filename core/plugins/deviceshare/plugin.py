"""Plugin deviceshare: what its arguments switch on is registered here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from config.arguments import Arguments
from core.devices.vgpu import read_rules
from core.plugins.deviceshare.assignments import Assignments
from core.plugins.deviceshare.families import Switches, families_of
from core.plugins.deviceshare.looking import NAME, DeviceFilter, DeviceScorer
from core.plugins.deviceshare.trials import DeviceTrials

if TYPE_CHECKING:
    from core.session.session import Session

CONFIG_MAP = "volcano-vgpu-device-config"
CONFIG_NAMESPACE = "kube-system"


class DeviceShare:
    """`deviceshare.GPUSharingEnable` (by memory), `GPUNumberEnable` (whole cards), `VGPUEnable`: which kinds count, all
    off unless said. `SchedulePolicy`: binpack or spread, else the last card first; `ScheduleWeight` (0): what the
    scores of nodes count. `KnownGeometriesCMName`, `KnownGeometriesCMNamespace`: the ConfigMap of devices.
    `GPUExclusiveRules`: lists of labels; pods that have all labels of one never share a card of virtual GPUs.
    """

    name = NAME

    def __init__(self, arguments: dict[str, Any]) -> None:
        read = Arguments(self.name, arguments)

        def switch(name: str) -> bool:
            return read.get_bool(f"{NAME}.{name}", False)

        space = read.get_string(f"{NAME}.KnownGeometriesCMNamespace", CONFIG_NAMESPACE)
        where = f"{space}/{read.get_string(f'{NAME}.KnownGeometriesCMName', CONFIG_MAP)}"
        policy = read.get_string(f"{NAME}.SchedulePolicy", "")
        kinds = switch("GPUSharingEnable"), switch("GPUNumberEnable"), switch("VGPUEnable")
        self._switches = Switches(*kinds, policy, where, read_rules(arguments.get(f"{NAME}.GPUExclusiveRules")))
        self._weight = read.get_int(f"{NAME}.ScheduleWeight", 0)

    def on_session_open(self, session: Session) -> None:
        """Register filter, scorer, event handlers and what binds carry, where there is anything to share."""
        families = families_of(session, self._switches)
        if not families:
            return
        assignments, trials, points = Assignments(session, families), DeviceTrials(session, families), session.points
        points.predicate.add(self.name, [DeviceFilter(families)])
        if self._weight > 0:
            points.node_order.add(self.name, [DeviceScorer(families, self._weight)])
        points.handle(assignments.allocate, assignments.deallocate)
        points.bind_context.add(self.name, assignments.bind_context)
        points.simulate_add_task.add(self.name, trials.add)
        points.simulate_remove_task.add(self.name, trials.remove)
        points.simulate_predicate.add(self.name, trials.predicate)
        points.simulates_nothing.add(self.name, trials.is_quiet)
        session.tellers.owned.append(assignments.owned)
        session.tellers.annotated.append(lambda: assignments.written)

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""
