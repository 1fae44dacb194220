"""A pod as the monitor's books have it, and how it is read from an object of the api."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from core.objects.metadata import section
from core.quantity import parse_quantity

Object = dict[str, Any]
Amounts = dict[str, int]
ENDED: Final = ("Succeeded", "Failed")
GROUP: Final = "scheduling.k8s.io/group-name"


class PodBook(Struct):
    """A pod as the api has it. `job` is "namespace/group"; `requests` in thousandths, the pod itself among them.

    `ended`: it will never run again; `on_node`: it takes up room.
    """

    key: str
    uid: str
    job: str
    requests: Amounts
    ports: tuple[int, ...]
    node: str = ""
    phase: str = "Pending"
    deleting: bool = False
    ended: bool = False
    on_node: bool = False

    def counts_as(self, other: PodBook) -> bool:
        """Whether no sum tells them apart."""
        return (
            self.node == other.node
            and self.on_node == other.on_node
            and self.deleting == other.deleting
            and self.uid == other.uid
            and self.job == other.job
        )


def read_pod(key: str, obj: Object, before: PodBook | None) -> PodBook:
    """What the object says; what never changes of a pod is taken from `before` when that is the same pod.

    It is `before` itself when nothing has changed that matters here: conditions, say.
    """
    meta, spec = obj["metadata"], obj["spec"]
    annotations: Object = meta.get("annotations") or {}
    uid: str = meta["uid"]
    same = before if before is not None and before.uid == uid else None
    job = f"{meta['namespace']}/{annotations.get(GROUP, '')}"
    node: str = spec.get("nodeName") or ""
    status: Object = obj.get("status") or {}
    phase: str = status.get("phase") or "Pending"
    deleting = "deletionTimestamp" in meta
    if same is not None and same.phase == phase and same.node == node and same.deleting == deleting and same.job == job:
        return same
    ended = phase in ENDED
    return PodBook(
        key,
        uid,
        job,
        _requests(spec) if same is None else same.requests,
        _ports(spec) if same is None else same.ports,
        node,
        phase,
        deleting,
        ended,
        bool(node) and not ended,
    )


def unscheduled(pod: Object) -> str:
    """The reason why it is not scheduled; "" when nobody says one."""
    for each in section(pod, "status").get("conditions") or ():
        if each["type"] == "PodScheduled":
            return (each.get("reason") or "") if each["status"] == "False" else ""
    return ""


def _requests(spec: Object) -> Amounts:
    total: Amounts = {"pods": 1000}
    for container in spec["containers"]:
        asked: Object = section(container, "resources").get("requests") or {}
        for name, amount in asked.items():
            total[name] = total.get(name, 0) + milli(str(amount))
    return total


def _ports(spec: Object) -> tuple[int, ...]:
    return tuple(
        port["hostPort"] for each in spec["containers"] for port in each.get("ports") or () if port.get("hostPort")
    )


def amounts(quantities: Object) -> Amounts:
    """Quantities by name, in thousandths."""
    return {name: milli(str(amount)) for name, amount in quantities.items()}


@lru_cache(maxsize=4096)
def milli(text: str) -> int:
    """A quantity in thousandths. Raises QuantityError."""
    return parse_quantity(text).milli_value()
