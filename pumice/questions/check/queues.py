"""Warnings about the queues that a configuration meets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.core.objects.metadata import Object, section
from pumice.core.plugins.capacity.misplaced import ROOT
from pumice.questions.oneshot.obstacles import is_in_a_tree, obstacles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.config.schema import SchedulerConfig

LISTED: Final = ("cpu", "memory")
"""Resources that every node has; others that queues count have a domain in their names."""


def of_queues(config: SchedulerConfig, objects: Sequence[Object]) -> list[str]:
    """Return a sentence for each."""
    return [*obstacles(config, objects), *_roots_capability(config, objects)]


def _roots_capability(config: SchedulerConfig, objects: Sequence[Object]) -> list[str]:
    """Warn of resources that root's capability leaves out: they count as zero (capacity.go, checkHierarchicalQueue)."""
    if not is_in_a_tree(config):
        return []
    roots = (obj for obj in objects if obj.get("kind") == "Queue" and section(obj, "metadata").get("name") == ROOT)
    capability = next((section(section(obj, "spec"), "capability") for obj in roots), Object())
    nodes = (section(section(obj, "status"), "allocatable") for obj in objects if obj.get("kind") == "Node")
    there = {*LISTED, *(name for allocatable in nodes for name in allocatable if "/" in name)}
    missing = sorted(there.difference(capability)) if capability else []
    if not missing:
        return []
    named = " and ".join(missing)
    why = (
        f"queue {ROOT} has a capability without {named}: its queues may have none of it, and no pod that asks for it is"
    )
    return [f"{why} placed; add {named} to spec.capability of queue {ROOT}, or drop the capability"]
