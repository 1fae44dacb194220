"""What of a pod changes while it lives: where it is, how far it has come, and what has been said of it.

Source: Volcano `getTaskStatus` (`api/helpers.go`).
"""

from __future__ import annotations

from typing import Any

from core.life.task import TaskStatus
from core.objects.metadata import Object, parse_time, section


def pod_state(pod: Object) -> dict[str, Any]:
    """These fields of the pod's :class:`core.objects.pod.Task`, by name."""
    meta, spec, status = section(pod, "metadata"), section(pod, "spec"), section(pod, "status")
    deleting, node = bool(meta.get("deletionTimestamp")), spec.get("nodeName") or ""
    conditions: list[dict[str, Any]] = status.get("conditions") or []
    return {
        "status": _status(status.get("phase"), deleting, node),
        "node_name": node,
        "deleting": deleting,
        "started": parse_time(status.get("startTime")),
        "nominated": status.get("nominatedNodeName") or "",
        "condition": _condition(conditions),
        "scheduled_at": _scheduled_at(conditions),
        "preempted": deleting and _preempted(conditions),
        "claim_names": _claim_names(status),
    }


def _status(phase: str | None, deleting: bool, node: str) -> TaskStatus:
    if phase == "Running":
        return TaskStatus.RELEASING if deleting else TaskStatus.RUNNING
    if phase == "Pending":
        if deleting:
            return TaskStatus.RELEASING
        return TaskStatus.BOUND if node else TaskStatus.PENDING
    if phase == "Succeeded":
        return TaskStatus.SUCCEEDED
    return TaskStatus.FAILED if phase == "Failed" else TaskStatus.UNKNOWN


def _condition(conditions: list[dict[str, Any]]) -> tuple[str, str] | None:
    for condition in conditions:
        if condition.get("type") == "PodScheduled":
            if condition.get("status") == "False":
                return condition.get("reason") or "", condition.get("message") or ""
            return None
    return None


def _scheduled_at(conditions: list[dict[str, Any]]) -> float:
    for condition in conditions:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "True":
            return parse_time(condition.get("lastTransitionTime"))
    return 0.0


def _preempted(conditions: list[dict[str, Any]]) -> bool:
    for condition in conditions:
        if condition.get("type") == "DisruptionTarget":
            return (condition.get("status"), condition.get("reason")) == ("True", "PreemptionByScheduler")
    return False


def _claim_names(status: dict[str, Any]) -> tuple[tuple[str, str | None], ...]:
    told: list[dict[str, Any]] | None = status.get("resourceClaimStatuses")
    return tuple((str(each.get("name")), each.get("resourceClaimName")) for each in told) if told else ()
