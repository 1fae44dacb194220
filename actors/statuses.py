"""Statuses as the status writer writes them: pure functions from what is stored and what is decided to a merge patch.

A patch is a JSON merge patch under `status`; None: nothing to write.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.messages.decisions import PodCondition, PodGroupCondition, PodGroupStatus, QueueStatus

Object = dict[str, Any]


def timestamp(now: float) -> str:
    """RFC 3339 in UTC, whole seconds, as Kubernetes writes times."""
    return _written(int(now))


@lru_cache(maxsize=256)
def _written(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def pod_patch(pod: Mapping[str, Any], condition: PodCondition, now: float) -> Object | None:
    """PodScheduled=False and the nomination. None when the pod is another one, is on a node, or has it all already."""
    if pod["metadata"].get("uid") != condition.uid or pod.get("spec", {}).get("nodeName"):
        return None
    status: Mapping[str, Any] = pod.get("status") or {}
    patch: Object = {}
    if condition.nominated and status.get("nominatedNodeName", "") != condition.nominated:
        patch["nominatedNodeName"] = condition.nominated
    if condition.reason or condition.message:
        wanted = {
            "type": "PodScheduled",
            "status": "False",
            "reason": condition.reason,
            "message": condition.message,
        }
        conditions: Sequence[Object] = status.get("conditions") or []
        merged = merge_condition(conditions, wanted, now)
        if merged is not None:
            patch["conditions"] = merged
    return patch or None


def merge_condition(conditions: Sequence[Object], wanted: Object, now: float) -> list[Object] | None:
    """The list with `wanted` in it; None when it says so already. The time changes only with the status."""
    for index, old in enumerate(conditions):
        if old.get("type") != wanted["type"]:
            continue
        if all(old.get(key, "") == value for key, value in wanted.items()):
            return None
        same = old.get("status") == wanted["status"] and "lastTransitionTime" in old
        at = old["lastTransitionTime"] if same else timestamp(now)
        return [*conditions[:index], {**wanted, "lastTransitionTime": at}, *conditions[index + 1 :]]
    return [*conditions, {**wanted, "lastTransitionTime": timestamp(now)}]


def pod_group_patch(stored: Mapping[str, Any], wanted: PodGroupStatus, now: float, cycle: int) -> Object:
    """Phase, the whole list of conditions, and the counts."""
    status: Mapping[str, Any] = stored.get("status") or {}
    existing: Sequence[Object] = status.get("conditions") or []
    old = {condition.get("type", ""): condition for condition in existing}
    conditions = [_group_condition(old.get(each.type, {}), each, now, cycle) for each in wanted.conditions]
    counts = {"running": wanted.running, "succeeded": wanted.succeeded, "failed": wanted.failed}
    return {"phase": wanted.phase, "conditions": conditions, **counts}


def _group_condition(old: Mapping[str, Any], wanted: PodGroupCondition, now: float, cycle: int) -> Object:
    """A condition that says what it said keeps its time and id."""
    texts = {"type": wanted.type, "status": wanted.status, "reason": wanted.reason, "message": wanted.message}
    if all(old.get(key, "") == value for key, value in texts.items()):
        return dict(old)
    return {**texts, "transitionID": str(cycle), "lastTransitionTime": timestamp(now)}


def queue_patch(stored: Mapping[str, Any], wanted: QueueStatus) -> Object | None:
    """The allocated amounts; a resource that is gone is removed."""
    status: Mapping[str, Any] = stored.get("status") or {}
    old: Mapping[str, Any] = status.get("allocated") or {}
    if dict(old) == dict(wanted.allocated):
        return None
    return {"allocated": {**dict.fromkeys(old, None), **wanted.allocated}}
