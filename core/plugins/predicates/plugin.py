"""Plugin predicates: kube-scheduler's filters in Volcano's order.

Source: Volcano `plugins/predicates/predicates.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.config.arguments import Arguments
from pumice.core.kube.placed import placed_pods
from pumice.core.messages.decisions import BindContext
from pumice.core.plugins.predicates.dynamic_resources import DynamicResources
from pumice.core.plugins.predicates.node_affinity import RequiredAffinity
from pumice.core.plugins.predicates.pod_affinity import PodAffinityFilter
from pumice.core.plugins.predicates.pod_affinity_trial import Trials
from pumice.core.plugins.predicates.pod_count import PodCount
from pumice.core.plugins.predicates.ports import NodePorts
from pumice.core.plugins.predicates.reservations import Reservations
from pumice.core.plugins.predicates.static import StaticFilter
from pumice.core.plugins.predicates.taints import UntoleratedTaints
from pumice.core.plugins.predicates.taken_back import TakenBack
from pumice.core.plugins.predicates.topology_spread import TopologySpreadFilter
from pumice.core.plugins.predicates.unschedulable import Unschedulable
from pumice.core.plugins.predicates.volume_binding import NOTHING, VolumeBinding
from pumice.core.plugins.predicates.volume_limits import VolumeLimits
from pumice.core.plugins.predicates.volume_zone import VolumeZone

if TYPE_CHECKING:
    from pumice.core.kube.placed import Placed
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import NodeFilter
    from pumice.core.session.session import Session


BIND_TIMEOUT_S = 600

AFFINITY: Final = StaticFilter(RequiredAffinity())
TAINTS: Final = StaticFilter(UntoleratedTaints())
CORDONED: Final = StaticFilter(Unschedulable())


class Predicates:
    """Registers the filters that are switched on, keeps kube-scheduler's NodeInfo up to date and reserves volumes.

    Arguments, all true by default: `predicate.NodeAffinityEnable`, `NodePortsEnable`, `TaintTolerationEnable`,
    `PodAffinityEnable`, `NodeVolumeLimitsEnable`, `VolumeZoneEnable`, `PodTopologySpreadEnable`, `VolumeBindingEnable`.
    `volumebinding.bindTimeoutSeconds` (600): how long a placed pod may wait for its volumes.
    `predicate.DynamicResourceAllocationEnable` is read only with the fix dra-switch: Volcano goes by Kubernetes'
    feature gate, which is on.
    `predicate.CacheEnable` changes nothing: answers that follow from a node's spec are always kept.
    """

    name = "predicates"

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._arguments = Arguments(self.name, arguments)
        self._bind_timeout_s = float(self._arguments.get_int("volumebinding.bindTimeoutSeconds", BIND_TIMEOUT_S))

    def _enabled(self, switch: str) -> bool:
        return self._arguments.get_bool(f"predicate.{switch}", True)

    def filters(self, placed: Placed, reserving: list[VolumeBinding | DynamicResources]) -> list[NodeFilter]:
        """The filters in Volcano's order: the count of pods, then what a node's spec decides, then the rest."""
        listed: list[tuple[str, NodeFilter]] = [
            ("NodeAffinityEnable", AFFINITY),
            ("TaintTolerationEnable", TAINTS),
            ("NodePortsEnable", NodePorts(placed)),
            ("PodAffinityEnable", PodAffinityFilter(placed)),
            ("NodeVolumeLimitsEnable", VolumeLimits(placed)),
            ("VolumeZoneEnable", VolumeZone()),
            ("PodTopologySpreadEnable", TopologySpreadFilter(placed)),
        ]
        chosen = [node_filter for switch, node_filter in listed if self._enabled(switch)]
        return [PodCount(), CORDONED, *chosen, *reserving]

    def on_session_open(self, session: Session) -> None:
        """Register filters and event handlers. Only this plugin moves NodeInfo.

        Without it the scorers see the opening.
        """
        placed, kube = placed_pods(session), session.kube
        reserving: list[VolumeBinding | DynamicResources] = []
        if self._enabled("VolumeBindingEnable"):
            reserving.append(VolumeBinding(session))
        resources = DynamicResources(session)
        if "dra-switch" not in session.config.pumice.fix or self._enabled("DynamicResourceAllocationEnable"):
            reserving.append(resources)
        session.points.predicate.add(self.name, self.filters(placed, reserving))

        taken_back, reservations = TakenBack(session), Reservations(session, reserving, self.name)

        def allocate(task: Task, node: int) -> str | None:
            if taken_back.loses(task):
                return None
            template = task.template
            if reservations.refuses or template.volumes or template.resource_claims:
                refused = reservations.make(task, node)
                if refused is not None:
                    return refused
            kube.add(task, node)
            placed.add(task, node)
            return None

        def deallocate(task: Task, node: int) -> str | None:
            if not reservations.drop(task) and not taken_back.has_lost(task):
                kube.remove(task, node)
                placed.remove(task, node)
            return None

        def bind_context(task: Task) -> BindContext | None:
            if not (task.template.volumes or task.template.resource_claims):
                return None
            node = session.nodes.names[session.jobs.node[task.row]]
            first = reserving[0] if reserving else None
            promise = first.promised(task) if isinstance(first, VolumeBinding) else NOTHING
            devices = resources.pre_bind(task, node)
            return BindContext(*promise, devices, self._bind_timeout_s) if devices or any(promise) else None

        session.points.handle(allocate, deallocate)
        session.points.bind_context.add(self.name, bind_context)
        if self._enabled("PodAffinityEnable"):
            trials = Trials(session, placed)
            session.points.simulate_add_task.add(self.name, trials.add)
            session.points.simulate_remove_task.add(self.name, trials.remove)
            session.points.simulate_predicate.add(self.name, trials.predicate)
            session.points.simulates_nothing.add(self.name, trials.is_quiet)

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""
