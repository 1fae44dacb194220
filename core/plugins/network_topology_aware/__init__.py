"""network-topology-aware: jobs into performance domains, near before far. Source: Volcano
`plugins/network-topology-aware`.
"""

from pumice.core.plugins.network_topology_aware.plugin import NetworkTopologyAware

__all__ = ["NetworkTopologyAware"]
