# SPDX-License-Identifier: Apache-2.0
"""The plugin predicates: the nodes that a task may go to. Source: Volcano `plugins/predicates`.

| file | filters |
|---|---|
| plugin.py | NodeUnschedulable, NodeAffinity, TaintToleration, PodCount; the order of all filters |
| ports.py | NodePorts |
| pod_affinity.py | InterPodAffinity |
| topology_spread.py | PodTopologySpread |
| volume_binding.py, volume_limits.py, volume_zone.py | VolumeBinding, NodeVolumeLimits, VolumeZone |
| dynamic_resources.py | DynamicResources |
| reservations.py | what placed pods promise of volumes and devices |
"""

from pumice.core.plugins.predicates.plugin import Predicates

__all__ = ["Predicates"]
