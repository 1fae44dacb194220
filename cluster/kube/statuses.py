# SPDX-License-Identifier: Apache-2.0
"""Statuses: lists of conditions, times as Kubernetes writes them, and an object after a decision about it.

They change nothing they are given, and share with it what stays. None: nothing to write.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, assert_never

from pumice.core.messages.decisions import PodCondition, PodGroupStatus, QueueStatus
from pumice.core.objects.metadata import Object, format_time, section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.messages.decisions import PodGroupCondition

# --- Lists of conditions

# --- Times


def timestamp(now: float) -> str:
    """Return a time as RFC 3339 in UTC, whole seconds, as Kubernetes writes times."""
    return written_second(int(now))


# all that is written in one moment has the same second
@lru_cache(maxsize=256)
def written_second(seconds: int) -> str:
    """Return whole seconds since the epoch as RFC 3339 in UTC."""
    return format_time(seconds)


def micro_timestamp(now: float) -> str:
    """Return a time as RFC 3339 in UTC to the microsecond, as Kubernetes writes the times of a Lease."""
    seconds, micros = divmod(round(now * 1e6), 1_000_000)
    return f"{written_second(seconds)[:-1]}.{micros:06d}Z"


# --- Users

USER: Final = "pumice:admin"
GROUPS: Final = ("system:masters", "system:authenticated")


def merge_condition(conditions: Sequence[Object], wanted: Object, at: str) -> list[Object] | None:
    """Return the list with `wanted` in it; None without a difference. The time changes only with the status."""
    for index, old in enumerate(conditions):
        if old.get("type") != wanted["type"]:
            continue
        if says(old, wanted):
            return None
        # Kubernetes moves the time with the status alone, so a new message keeps it.
        since = old.get("lastTransitionTime", at) if old.get("status") == wanted["status"] else at
        return [*conditions[:index], {**wanted, "lastTransitionTime": since}, *conditions[index + 1 :]]
    return [*conditions, {**wanted, "lastTransitionTime": at}]


def says(old: Object, wanted: Object) -> bool:
    """Return whether the old condition equals the wanted one; other fields do not count."""
    for key, value in wanted.items():  # noqa: SIM110 - asked of every condition, and a generator costs as much again
        if old.get(key, "") != value:
            return False
    return True


def reported(stored: Object, wanted: PodCondition | PodGroupStatus | QueueStatus, at: str, cycle: int) -> Object | None:
    """Return the object after the report. `at`: the time (timestamp) and `cycle` the id of conditions that change."""
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
    """Return the pod with PodScheduled=False and the nomination. None when the pod is another one, is on a node, or has
    both already.
    """
    # A namesake that came since, or a pod that was bound meanwhile: the report is about a state that is gone.
    if pod["metadata"]["uid"] != wanted.uid or pod["spec"].get("nodeName"):
        return None
    status = section(pod, "status")
    changed: Object = {}
    # None clears a nomination that stands; an absent one needs no write.
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
    """Return the PodGroup with phase, the whole list of conditions, the counts, and given annotations."""
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
    """Return a condition; an equal one keeps its time and id."""
    texts = {"type": wanted.type, "status": wanted.status, "reason": wanted.reason, "message": wanted.message}
    if says(old, texts):
        return old
    return {**texts, "transitionID": transition, "lastTransitionTime": at}


def _queue(stored: Object, wanted: QueueStatus) -> Object | None:
    """Return the queue with the allocated amounts; a resource that is gone is removed."""
    status = section(stored, "status")
    if section(status, "allocated") == wanted.allocated:
        return None
    return {**stored, "status": {**status, "allocated": wanted.allocated}}
