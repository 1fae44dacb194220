"""The plugin: gradients of domains, scores of domains and nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.core.plugins.network_topology_aware.gradients import Gradients
from pumice.core.plugins.network_topology_aware.occupancy import DomainOccupancy
from pumice.core.plugins.network_topology_aware.scores import Scores
from pumice.core.plugins.network_topology_aware.weights import read_weights

if TYPE_CHECKING:
    from pumice.core.session.session import Session


class NetworkTopologyAware:
    """Arguments: see weights.py."""

    name = "network-topology-aware"

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._weights = read_weights(self.name, arguments)

    def on_session_open(self, session: Session) -> None:
        """Sum up the domains; register gradients, scores and handlers."""
        occupancy = DomainOccupancy(session)
        gradients = Gradients(session, occupancy, self._weights.max_hyper_nodes)
        scores = Scores(session, occupancy, self._weights)
        session.points.hyper_node_order.add(self.name, scores.of_domains)
        session.points.batch_node_order.add(self.name, [scores])
        session.points.hyper_node_gradient_for_job.add(self.name, gradients.for_job)
        session.points.hyper_node_gradient_for_sub_job.add(self.name, gradients.for_sub_job)
        session.points.handle(occupancy.on_allocate, occupancy.on_deallocate)

    def on_session_close(self, session: Session) -> None:
        """Nothing to write."""
