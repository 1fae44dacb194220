# SPDX-License-Identifier: Apache-2.0
"""Obstacles in a cluster's objects that keep a configuration from scheduling anything: every command warns of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.core.objects.metadata import Object, section
from pumice.core.plugins.capacity.limits import ROOT, tree_problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.config.schema import SchedulerConfig

MADE: Final = {ROOT: "", "default": ROOT}
"""Volcano makes these queues, and who loads objects does."""
BATCH: Final = "batch.volcano.sh/"


def is_in_a_tree(config: SchedulerConfig) -> bool:
    """Return whether capacity makes a tree of the queues."""
    option = config.plugin("capacity")
    return option is not None and option.is_enabled("Hierarchy")


def obstacles(config: SchedulerConfig, objects: Iterable[Object]) -> list[str]:
    """Return a sentence for each thing that keeps the configuration from scheduling anything."""
    if not is_in_a_tree(config):
        return []
    objects = list(objects)
    queues = {
        _name(obj): str(section(obj, "spec").get("parent") or "") for obj in objects if obj.get("kind") == "Queue"
    }
    groups = [obj for obj in objects if obj.get("kind") == "PodGroup"]
    owned = {(_namespace(obj), each.get("name")) for obj in groups for each in _owners(obj)}
    jobs = [obj for obj in objects if _is_job(obj) and (_namespace(obj), _name(obj)) not in owned]
    placed = [(f"{_namespace(obj)}/{_name(obj)}", _queue(obj)) for obj in (*groups, *jobs)]
    problem = tree_problem({**MADE, **queues}, placed)
    return [problem] if problem else []


def _is_job(obj: Object) -> bool:
    return obj.get("kind") == "Job" and str(obj.get("apiVersion")).startswith(BATCH)


def _name(obj: Object) -> str:
    return str(section(obj, "metadata").get("name") or "")


def _namespace(obj: Object) -> str:
    return str(section(obj, "metadata").get("namespace") or "default")


def _owners(obj: Object) -> list[Object]:
    return [each for each in section(obj, "metadata").get("ownerReferences") or () if isinstance(each, dict)]


def _queue(obj: Object) -> str:
    return str(section(obj, "spec").get("queue") or "default")
