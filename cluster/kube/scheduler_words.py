"""What schedulers say of pods and PodGroups in Events (source: Volcano's `pkg/scheduler/cache/cache.go`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from pumice.core.objects.metadata import Object, section

SCHEDULER: Final = "volcano"
EVICTED: Final = "Pod is evicted, because of "
FAILED: Final = "SchedulerError"
"""The reason in a pod's PodScheduled condition when a node was found and binding failed."""
_NOT_BOUND: Final = "failed to bind to node "


class Said(Struct, frozen=True, gc=False):
    """One thing to be said of an object by the component `source`."""

    reason: str
    message: str
    source: str = SCHEDULER
    warning: bool = False


def of_placed(namespace: str, name: str, node: str, source: str = SCHEDULER) -> Said:
    """A pod is on a node."""
    return Said("Scheduled", f"Successfully assigned {namespace}/{name} to {node}", source)


def of_waiting(message: str, source: str = SCHEDULER) -> Said:
    """A pod found no node."""
    return Said("FailedScheduling", message, source, warning=True)


def not_bound(node: str, why: str) -> str:
    """The message of a pod's condition when the api refused its bind."""
    return f"{_NOT_BOUND}{node}: {why}"


def not_prepared(pod: str, why: str) -> str:
    """The message of the condition of a pod ("namespace/name") when what its bind needs first failed."""
    return f"execute preBind for pod {pod} failed: {why}, resync the task"


def refused_bind(message: str) -> tuple[str, str]:
    """The node and the refusal in a message of `not_bound`; the node is "" in any other message."""
    node, told, why = message.removeprefix(_NOT_BOUND).partition(": ")
    return (node, why) if told and message.startswith(_NOT_BOUND) else ("", message)


def of_evicted(message: str) -> Said:
    """A pod has to go; the message is that of its condition."""
    return Said("Evict", message, warning=True)


def of_group_evicted(why: str) -> Said:
    """A pod of this PodGroup has to go."""
    return Said("Evict", why)


def of_group(group: Object) -> Iterator[Said]:
    """All that a PodGroup as it is gives reason to say."""
    conditions = conditions_of(group)
    if (condition := conditions.get("Unschedulable", {})).get("status") == "True" and condition.get("message"):
        yield Said("Unschedulable", condition["message"], warning=True)
    if conditions.get("Scheduled", {}).get("status") == "True" and section(group, "status").get("phase") == "Running":
        yield Said("Scheduled", "pod group is ready")


def conditions_of(obj: Object) -> dict[str, Object]:
    """By their types."""
    return {each["type"]: each for each in section(obj, "status").get("conditions") or () if "type" in each}
