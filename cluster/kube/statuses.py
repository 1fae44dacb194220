"""Statuses as the scheduler reports them: pure functions from an object and what was decided to the object after it.

They change nothing they are given, and share with it what stays. None: nothing to write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from pumice.cluster.kube.conditions import merge_condition, says
from pumice.core.messages.decisions import PodCondition, PodGroupStatus, QueueStatus
from pumice.core.objects.metadata import Object, section

if TYPE_CHECKING:
    from pumice.core.messages.decisions import PodGroupCondition


def reported(stored: Object, wanted: PodCondition | PodGroupStatus | QueueStatus, at: str, cycle: int) -> Object | None:
    """The object after the report. `at`: the time (timestamp) and `cycle` the id of conditions that change."""
    match wanted:
        case PodCondition():
            return _pod(stored, wanted, at)
        case PodGroupStatus():
            return _pod_group(stored, wanted, at, str(cycle))
        case QueueStatus():
            return _queue(stored, wanted)
        case _:
            assert_never(wanted)


def _pod(pod: Object, wanted: PodCondition, at: str) -> Object | None:
    """PodScheduled=False and the nomination. None when the pod is another one, is on a node, or has it all already."""
    if pod["metadata"]["uid"] != wanted.uid or pod["spec"].get("nodeName"):
        return None
    status = section(pod, "status")
    changed: Object = {}
    if wanted.nominated is None and "nominatedNodeName" in status:
        changed["nominatedNodeName"] = ""
    elif wanted.nominated and status.get("nominatedNodeName") != wanted.nominated:
        changed["nominatedNodeName"] = wanted.nominated
    if wanted.reason or wanted.message:
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": wanted.reason,
            "message": wanted.message,
        }
        merged = merge_condition(status.get("conditions") or (), condition, at)
        if merged is not None:
            changed["conditions"] = merged
    return {**pod, "status": {**status, **changed}} if changed else None


def _pod_group(stored: Object, wanted: PodGroupStatus, at: str, transition: str) -> Object:
    """Phase, the whole list of conditions, the counts, and annotations where there are some."""
    status = section(stored, "status")
    old: dict[str, Object] = {each.get("type", ""): each for each in status.get("conditions") or ()}
    after = {
        **status,
        "phase": wanted.phase,
        "conditions": [_group_condition(old.get(each.type, {}), each, at, transition) for each in wanted.conditions],
        "running": wanted.running,
        "succeeded": wanted.succeeded,
        "failed": wanted.failed,
    }
    if not wanted.annotations:
        return {**stored, "status": after}
    meta = stored["metadata"]
    annotations = {**section(meta, "annotations"), **wanted.annotations}
    return {**stored, "metadata": {**meta, "annotations": annotations}, "status": after}


def _group_condition(old: Object, wanted: PodGroupCondition, at: str, transition: str) -> Object:
    """A condition that says what it said keeps its time and id."""
    texts = {"type": wanted.type, "status": wanted.status, "reason": wanted.reason, "message": wanted.message}
    if says(old, texts):
        return old
    return {**texts, "transitionID": transition, "lastTransitionTime": at}


def _queue(stored: Object, wanted: QueueStatus) -> Object | None:
    """The allocated amounts; a resource that is gone is removed."""
    status = section(stored, "status")
    if section(status, "allocated") == wanted.allocated:
        return None
    return {**stored, "status": {**status, "allocated": wanted.allocated}}
