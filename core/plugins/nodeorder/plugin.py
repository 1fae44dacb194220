"""Plugin nodeorder: kube-scheduler's scorers with Volcano's weights.

Source: Volcano `plugins/nodeorder/nodeorder.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.config.arguments import Arguments
from pumice.core.kube.placed import placed_pods
from pumice.core.plugins.nodeorder.allocated import LEAST, MOST, Allocated
from pumice.core.plugins.nodeorder.balanced_allocation import BalancedAllocation
from pumice.core.plugins.nodeorder.image_locality import ImageLocality
from pumice.core.plugins.nodeorder.node_affinity import NodeAffinityScorer
from pumice.core.plugins.nodeorder.pod_affinity import PodAffinityScorer
from pumice.core.plugins.nodeorder.taint_toleration import TaintToleration
from pumice.core.plugins.nodeorder.topology_spread import TopologySpreadScorer

if TYPE_CHECKING:
    from pumice.core.session.points.nodes import NodeScorer
    from pumice.core.session.session import Session

WEIGHTS = {
    "leastrequested": 1,
    "mostrequested": 0,
    "nodeaffinity": 2,
    "podaffinity": 2,
    "balancedresource": 1,
    "tainttoleration": 3,
    "imagelocality": 1,
    "podtopologyspread": 2,
}


class NodeOrder:
    """Registers a scorer for each weight that is not 0: `<name>.weight`, whole numbers, defaults in WEIGHTS."""

    name = "nodeorder"

    def __init__(self, arguments: dict[str, Any]) -> None:
        read = Arguments(self.name, arguments)
        self._weights = {name: read.get_int(f"{name}.weight", default) for name, default in WEIGHTS.items()}

    def batch_scorers(self, session: Session) -> list[NodeScorer]:
        """The scorers over the candidates as a set; whole numbers all, so that the order of summing is free."""
        weights, placed = self._weights, placed_pods(session)
        found: list[NodeScorer | None] = [
            Allocated(session, LEAST, weights["leastrequested"]) if weights["leastrequested"] else None,
            Allocated(session, MOST, weights["mostrequested"]) if weights["mostrequested"] else None,
            BalancedAllocation(session, weights["balancedresource"]) if weights["balancedresource"] else None,
            NodeAffinityScorer(weights["nodeaffinity"]) if weights["nodeaffinity"] else None,
            PodAffinityScorer(placed, weights["podaffinity"]) if weights["podaffinity"] else None,
            TaintToleration(session, weights["tainttoleration"]) if weights["tainttoleration"] else None,
            TopologySpreadScorer(placed, weights["podtopologyspread"]) if weights["podtopologyspread"] else None,
        ]
        return [scorer for scorer in found if scorer is not None]

    def on_session_open(self, session: Session) -> None:
        """Register ImageLocality per node and the others over the candidates."""
        weight = self._weights["imagelocality"]
        session.points.node_order.add(self.name, [ImageLocality(weight)] if weight else [])
        session.points.batch_node_order.add(self.name, self.batch_scorers(session))

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""
