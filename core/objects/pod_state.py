"""What of a pod changes while it lives: where it is, how far it has come, and what has been said of it.

Source: Volcano `getTaskStatus` (`api/helpers.go`).
"""

from __future__ import annotations

from typing import Any

from pumice.core.life.task import TaskStatus, status_of
from pumice.core.objects.metadata import Object, once, parse_time

PodState = tuple[
    TaskStatus, str, bool, float, str, tuple[str, str] | None, float, bool, tuple[tuple[str, str | None], ...]
]
"""The last fields of a :class:`pumice.core.objects.pod.Task`, in their order: from `status` to `claim_names`."""

_NEVER = None, 0.0  # nothing is said of its place


def pod_state(pod: Object) -> PodState:
    """What the pod's task ends with."""
    status: Object = pod.get("status") or {}  # at every change of every pod: no call for each section
    meta: Object = pod.get("metadata") or {}
    spec: Object = pod.get("spec") or {}
    deleting, node = bool(meta.get("deletionTimestamp")), spec.get("nodeName")
    conditions: list[dict[str, Any]] = status.get("conditions") or []
    condition, scheduled_at = _scheduled(conditions) if conditions else _NEVER
    started, claims = status.get("startTime"), status.get("resourceClaimStatuses")
    return (
        status_of(status.get("phase"), deleting, node),
        once(node) if node else "",
        deleting,
        parse_time(started) if started else 0.0,
        status.get("nominatedNodeName") or "",
        condition,
        scheduled_at,
        deleting and _preempted(conditions),
        _claim_names(claims) if claims else (),
    )


def _scheduled(conditions: list[dict[str, Any]]) -> tuple[tuple[str, str] | None, float]:
    """PodScheduled: why it is not, or since when it is."""
    for condition in conditions:
        if condition.get("type") == "PodScheduled":
            told = condition.get("status")
            if told == "True":
                return None, parse_time(condition.get("lastTransitionTime"))
            if told == "False":
                return (condition.get("reason") or "", condition.get("message") or ""), 0.0
            break
    return _NEVER


def _preempted(conditions: list[dict[str, Any]]) -> bool:
    for condition in conditions:
        if condition.get("type") == "DisruptionTarget":
            return (condition.get("status"), condition.get("reason")) == ("True", "PreemptionByScheduler")
    return False


def _claim_names(told: list[dict[str, Any]]) -> tuple[tuple[str, str | None], ...]:
    return tuple([(str(each.get("name")), each.get("resourceClaimName")) for each in told])
