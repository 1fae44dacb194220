# SPDX-License-Identifier: Apache-2.0
"""Kubernetes Event objects, and the messages of schedulers in them."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Final

from msgspec import Struct

from pumice.cluster.kube.statuses import timestamp
from pumice.core.messages.commands import Create, Patch
from pumice.core.objects.metadata import Object, section
from pumice.storage.codec import pack

# --- Words of schedulers

SCHEDULER: Final = "volcano"
EVICTED: Final = "Pod is evicted, because of "
FAILED: Final = "SchedulerError"
"""The reason in a pod's PodScheduled condition when a node was found and binding failed."""
_NOT_BOUND: Final = "failed to bind to node "


class Said(Struct, frozen=True, gc=False):
    """One event about an object, from the component `source`."""

    reason: str
    message: str
    source: str = SCHEDULER
    warning: bool = False


def of_placed(namespace: str, name: str, node: str, source: str = SCHEDULER) -> Said:
    """Return the event of a pod that was put on a node."""
    return Said("Scheduled", f"Successfully assigned {namespace}/{name} to {node}", source)


def of_waiting(message: str, source: str = SCHEDULER) -> Said:
    """Return the event of a pod that found no node."""
    return Said("FailedScheduling", message, source, warning=True)


def not_bound(node: str, why: str) -> str:
    """Return the message of a pod's condition when the api refused its bind."""
    return f"{_NOT_BOUND}{node}: {why}"


def not_prepared(pod: str, why: str) -> str:
    """Return the message of the condition of a pod ("namespace/name") when the preparation of its bind failed."""
    return f"execute preBind for pod {pod} failed: {why}, resync the task"


def refused_bind(message: str) -> tuple[str, str]:
    """Return the node and the refusal in a message of `not_bound`; the node is "" in any other message."""
    node, told, why = message.removeprefix(_NOT_BOUND).partition(": ")
    return (node, why) if told and message.startswith(_NOT_BOUND) else ("", message)


def of_evicted(message: str) -> Said:
    """Return the event of a pod that is evicted, with the message of its condition."""
    return Said("Evict", message, warning=True)


def of_group_evicted(why: str) -> Said:
    """Return the event of a PodGroup one of whose pods is evicted."""
    return Said("Evict", why)


def of_group(group: Object) -> Iterator[Said]:
    """Yield all events for a PodGroup in its present state."""
    conditions = conditions_of(group)
    if (condition := conditions.get("Unschedulable", {})).get("status") == "True" and condition.get("message"):
        yield Said("Unschedulable", condition["message"], warning=True)
    if conditions.get("Scheduled", {}).get("status") == "True" and section(group, "status").get("phase") == "Running":
        yield Said("Scheduled", "pod group is ready")


def conditions_of(obj: Object) -> dict[str, Object]:
    """Return the conditions by their types."""
    return {each["type"]: each for each in section(obj, "status").get("conditions") or () if "type" in each}


KEPT: Final = 4096
"""Sayings that are remembered to be counted."""


class Sayings:
    """Reports events about objects: a repeated event is counted in the first Event (as client-go has it)."""

    def __init__(self, user: str) -> None:
        self._user = user
        self._counts: dict[tuple[str, str], int] = {}

    def say(
        self, about: Object, reason: str, message: str, now: float, *, source: str, warning: bool = False
    ) -> Create | Patch:
        """Return the request that records the event."""
        said = event(about, reason, message, now, source=source, warning=warning)
        mark = blake2b(f"{about['metadata']['uid']} {reason} {message}".encode(), digest_size=8).hexdigest()
        place = said["metadata"]["namespace"], f"{about['metadata']['name']}.{mark}"
        # taken out and put in again: the dictionary's first entry is the one that was not said for longest
        count = self._counts[place] = self._counts.pop(place, 0) + 1
        if len(self._counts) > KEPT:
            del self._counts[next(iter(self._counts))]
        if count == 1:
            said["metadata"] = {"namespace": place[0], "name": place[1]}
            return Create(pack(said), user=self._user)
        return Patch("Event", *place, pack({"count": count, "lastTimestamp": said["lastTimestamp"]}), user=self._user)


def event(about: Object, reason: str, message: str, now: float, *, source: str, warning: bool = False) -> Object:
    """Return an Event about an object, from the component `source`; its name is generated."""
    meta, at = about["metadata"], timestamp(now)
    reference = {
        "apiVersion": about["apiVersion"],
        "kind": about["kind"],
        "name": meta["name"],
        "namespace": meta.get("namespace", ""),
        "uid": meta["uid"],
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{meta['name']}.", "namespace": meta.get("namespace") or "default"},
        "involvedObject": reference,
        "reason": reason,
        "message": message,
        "type": "Warning" if warning else "Normal",
        "source": {"component": source},
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
