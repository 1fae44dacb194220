# SPDX-License-Identifier: Apache-2.0
"""One extension point: the rules of the plugins that the configuration consults there, in its order."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from pumice.core.cached import cached

if TYPE_CHECKING:
    from pumice.config.schema import PluginOption, SchedulerConfig
    from pumice.core.state.derived import Like

# --- Plugins by point

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
    """Point -> the plugins whose flag is on, tier by tier, whether they register or not."""

    def __init__(self, config: SchedulerConfig) -> None:
        super().__init__()
        for point in FLAGS:
            self[point] = tuple(tuple(o.name for o in t.plugins if _is_consulted(point, o)) for t in config.tiers)


@lru_cache(maxsize=16)
def listed_plugins(config: Like[SchedulerConfig]) -> Listed:
    """Return the plugins by point, computed once a configuration: all its sessions register alike."""
    return Listed(config.subject)


R = TypeVar("R")


class Point(Generic[R]):
    """Rules of the type R by plugin. A subclass merges them in one method.

    A plugin has at most one rule; it is consulted once for each place where the configuration lists the plugin with the
    point's flag on.
    """

    __slots__ = ("__dict__", "_listed", "_registered", "name")

    def __init__(self, name: str, listed: Listed) -> None:
        self.name = name
        self._listed = listed[name]
        self._registered: dict[str, R] = {}

    def add(self, plugin: str, rule: R) -> None:
        """Register a plugin's rule; a second one replaces the first."""
        self._registered[plugin] = rule
        if self.__dict__:
            self.forget()

    def forget(self) -> None:
        """Forget what was derived from the rules."""
        self.__dict__.clear()  # nothing else stands there

    @cached
    def named(self) -> tuple[tuple[str, R], ...]:
        """Return plugins and their rules as one list of pairs, in the order in which they are asked."""
        rules = self._registered
        return tuple([(name, rules[name]) for tier in self._listed for name in tier if name in rules])

    @cached
    def rules(self) -> tuple[R, ...]:
        """Return their rules."""
        rules = self._registered
        return tuple([rules[name] for tier in self._listed for name in tier if name in rules])

    @property
    def names(self) -> tuple[str, ...]:
        """Return the consulted plugins."""
        return tuple([name for name, _ in self.named])

    @cached
    def tiers(self) -> tuple[tuple[tuple[str, R], ...], ...]:
        """Return the consulted plugins with their rules, tier by tier; tiers without one are left out."""
        rules = dict(self.named)
        tiers = [tuple([(name, rules[name]) for name in tier if name in rules]) for tier in self._listed]
        return tuple([tier for tier in tiers if tier])

    @cached
    def tier_numbers(self) -> tuple[int, ...]:
        """Return the number of each of these tiers in the configuration, from 1."""
        rules, tiers = dict(self.named), enumerate(self._listed, 1)
        return tuple([number for number, tier in tiers if any(name in rules for name in tier)])
