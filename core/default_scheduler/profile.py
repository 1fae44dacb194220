# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' default profile, as a configuration. Source: kube-scheduler `apis/config/v1/default_plugins.go`.

What the view depends on (which volumes count) stays as the configuration in force has it, so that both schedulers look
at one view; nothing else of that configuration counts here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pumice.config.schema import PluginOption, SchedulerConfig, Tier

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task

NAME: Final = "default-scheduler"
"""What a pod's spec.schedulerName says; the api writes it where a pod says nothing."""
FIXES: Final = (
    "promises-reserve",
    "reserve-without-filters",
    "scores-count-pod-level",
    "unevict-restores-bound",
    "unevict-restores-pods",
)
"""Where Volcano's use of Kubernetes' filters and scores goes astray, it is as Kubernetes has it."""
STAY: Final = "kube-nominations-stay"
"""A former rule, under which old journals are replayed (`pumice.config.rules`)."""
_OPTIONS: Final = (
    PluginOption("predicates", {"Predicate": True}),
    PluginOption("nodeorder", {"NodeOrder": True}),
)


def profile(in_force: SchedulerConfig) -> SchedulerConfig:
    """Return the profile beside the configuration in force: filters, scores of usual weight, and a look at every
    node.
    """
    former = (STAY,) if STAY in in_force.pumice.fix else ()
    pumice = replace(in_force.pumice, percentage_of_nodes_to_find=100, fix=(*FIXES, *former))
    return SchedulerConfig(actions=(), tiers=(Tier(_OPTIONS),), pumice=pumice)


def is_served(task: Task) -> bool:
    """Return whether the pod is this scheduler's: a pod with a PodGroup is left to the scheduler of groups."""
    return task.scheduler == NAME and not task.job
