"""numa-aware: pods of quality Guaranteed go where the kubelet's topology manager lets them in.

Source: Volcano `plugins/numaaware`, `api/node_info.go` (RefreshNumaSchedulerInfoByCrd).
"""

from pumice.core.plugins.numaaware.plugin import NumaAware

__all__ = ["NumaAware"]
