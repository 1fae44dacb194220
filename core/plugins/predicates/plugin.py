"""Plugin predicates: kube-scheduler's filters in Volcano's order. Source.

Volcano `plugins/predicates/predicates.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from config.arguments import Arguments
from core.kube.placed import placed_pods
from core.plugins.predicates.node_affinity import RequiredAffinity
from core.plugins.predicates.pod_affinity import PodAffinity
from core.plugins.predicates.pod_count import PodCount
from core.plugins.predicates.ports import NodePorts
from core.plugins.predicates.static import StaticFilter
from core.plugins.predicates.taints import UntoleratedTaints
from core.plugins.predicates.topology_spread import TopologySpread
from core.plugins.predicates.unschedulable import Unschedulable

if TYPE_CHECKING:
    from core.kube.placed import Placed
    from core.objects.pod import Task
    from core.session.node_points import NodeFilter
    from core.session.session import Session


class Predicates:
    """Registers the filters that are switched on and keeps kube-scheduler's NodeInfo up to date.

    Arguments (all true): `predicate.NodeAffinityEnable`, `predicate.NodePortsEnable`,
    `predicate.TaintTolerationEnable`.
    """

    name = "predicates"

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._arguments = Arguments(self.name, arguments)

    def _enabled(self, switch: str) -> bool:
        return self._arguments.get_bool(f"predicate.{switch}", True)

    def filters(self, placed: Placed) -> list[NodeFilter]:
        """The filters in Volcano's order: the count of pods, then what a node's spec decides, then the rest."""
        found: list[NodeFilter] = [PodCount(), StaticFilter(Unschedulable())]
        if self._enabled("NodeAffinityEnable"):
            found.append(StaticFilter(RequiredAffinity()))
        if self._enabled("TaintTolerationEnable"):
            found.append(StaticFilter(UntoleratedTaints()))
        if self._enabled("NodePortsEnable"):
            found.append(NodePorts(placed))
        if self._enabled("PodAffinityEnable"):
            found.append(PodAffinity(placed))
        if self._enabled("PodTopologySpreadEnable"):
            found.append(TopologySpread(placed))
        return found

    def on_session_open(self, session: Session) -> None:
        """Register filters and event handlers. Only this plugin moves NodeInfo.

        Without it the scorers see the session's opening.
        """
        placed = placed_pods(session)
        session.add_predicate(self.name, self.filters(placed))
        kube = session.kube

        def allocate(task: Task, node: int) -> str | None:
            kube.add(task, node)
            placed.add(task, node)
            return None

        def deallocate(task: Task, node: int) -> str | None:
            kube.remove(task, node)
            placed.remove(task, node)
            return None

        session.points.handle(allocate, deallocate)

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""
