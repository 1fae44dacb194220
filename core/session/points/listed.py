"""Which plugins a configuration lets speak at which extension point."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pumice.config.schema import PluginOption, SchedulerConfig
    from pumice.core.state.derived import Like

# Point -> the flag that switches it; None: no flag, always on.
FLAGS: Final[dict[str, str | None]] = {
    "JobOrder": "JobOrder",
    "QueueOrder": "QueueOrder",
    "VictimQueueOrder": None,
    "TaskOrder": "TaskOrder",
    "SubJobOrder": "SubJobOrder",
    "JobValid": None,
    "JobReady": "JobReady",
    "SubJobReady": "SubJobReady",
    "JobPipelined": "JobPipelined",
    "SubJobPipelined": "SubJobPipelined",
    "JobEnqueueable": "JobEnqueued",
    "JobEnqueued": "JobEnqueued",
    "JobStarving": "JobStarving",
    "Overused": "Overused",
    "Preemptive": "Preemptive",
    "Allocatable": "Allocatable",
    "SimulateAllocatable": "Allocatable",
    "Preemptable": "Preemptable",
    "Reclaimable": "Reclaimable",
    "UnifiedEvictable": None,
    "VictimTasks": "Victim",
    "PrePredicate": "Predicate",
    "Predicate": "Predicate",
    "SimulatePredicate": "Predicate",
    "SimulateAddTask": "Preemptable",  # or Allocatable: see _is_consulted
    "SimulateRemoveTask": "Preemptable",
    "SimulatesNothing": None,
    "NodeOrder": "NodeOrder",
    "BatchNodeOrder": "NodeOrder",
    "HyperNodeOrder": "HyperNodeOrder",
    "HyperNodeGradientForJob": "HyperNodeGradient",
    "HyperNodeGradientForSubJob": "HyperNodeGradient",
    "BindContext": None,
}

Tiers = tuple[tuple[str, ...], ...]


def _is_consulted(point: str, option: PluginOption) -> bool:
    flag = FLAGS[point]
    if flag is None:
        return True
    if point in ("SimulateAddTask", "SimulateRemoveTask"):
        return option.is_enabled("Preemptable") or option.is_enabled("Allocatable")
    return option.is_enabled(flag)


class Listed(dict[str, Tiers]):
    """Point -> the plugins whose flag is on, tier by tier, whether they will register or not."""

    def __init__(self, config: SchedulerConfig) -> None:
        super().__init__()
        for point in FLAGS:
            self[point] = tuple(tuple(o.name for o in t.plugins if _is_consulted(point, o)) for t in config.tiers)


@lru_cache(maxsize=16)
def listed_plugins(config: Like[SchedulerConfig]) -> Listed:
    """Made once a configuration: all sessions that have it register alike."""
    return Listed(config.subject)
