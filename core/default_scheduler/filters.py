"""Kubernetes' filters in the order of its default profile. Source: kube-scheduler `default_plugins.go` (MultiPoint).

Kubernetes asks no further filter about a node that one has refused. Here later ones may add their reasons behind the
first; `pumice.core.default_scheduler.words` reads the first alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.core.default_scheduler.room import RoomFilter
from pumice.core.plugins.predicates.plugin import AFFINITY, CORDONED, TAINTS, Predicates
from pumice.core.plugins.predicates.pod_affinity import PodAffinityFilter
from pumice.core.plugins.predicates.ports import NodePorts
from pumice.core.plugins.predicates.topology_spread import TopologySpreadFilter
from pumice.core.plugins.predicates.volume_limits import VolumeLimits
from pumice.core.plugins.predicates.volume_zone import VolumeZone

if TYPE_CHECKING:
    from pumice.core.kube.placed import Placed
    from pumice.core.plugins.predicates.dynamic_resources import DynamicResources
    from pumice.core.plugins.predicates.volume_binding import VolumeBinding
    from pumice.core.session.points.nodes import NodeFilter


class KubeFilters(Predicates):
    """The plugin predicates with Kubernetes' order, and with room as a filter among the others."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__(arguments)
        self.room = RoomFilter()

    def filters(self, placed: Placed, reserving: list[VolumeBinding | DynamicResources]) -> list[NodeFilter]:
        """NodeUnschedulable, TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit, NodeVolumeLimits,
        VolumeBinding, VolumeZone, PodTopologySpread, InterPodAffinity, DynamicResources.
        """
        binding, resources = reserving
        return [
            CORDONED,
            TAINTS,
            AFFINITY,
            NodePorts(placed),
            self.room,
            VolumeLimits(placed),
            binding,
            VolumeZone(),
            TopologySpreadFilter(placed),
            PodAffinityFilter(placed),
            resources,
        ]
