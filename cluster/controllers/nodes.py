# SPDX-License-Identifier: Apache-2.0
"""Taints that keep pods off unhealthy or cordoned nodes, as a pure machine (source: Kubernetes' node lifecycle
controller, `doNoScheduleTaintingPass`).

A node without a Ready condition yet gets the taint of one that is not, as a kube-apiserver's
admission gives it to every new node; but not where node agents of this process are about to say so. A node that is
said to be not ready, or cannot be reached, gets its taint with the effect NoExecute as well, for which the node agents
evict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.cluster.kube.statuses import timestamp
from pumice.cluster.machine import Machine
from pumice.core.messages.commands import ApiRequest, Patch
from pumice.core.objects.metadata import Object, section, text_map
from pumice.storage.codec import pack

USER: Final = "node-lifecycle"
KWOK: Final = "kwok.x-k8s.io/node"
"""The annotation of nodes that kwok keeps."""
EFFECT: Final = "NoSchedule"
_PREFIX: Final = "node.kubernetes.io/"
NOT_READY: Final = f"{_PREFIX}not-ready"
UNSCHEDULABLE: Final = f"{_PREFIX}unschedulable"
BY_CONDITION: Final = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): f"{_PREFIX}unreachable",
    ("MemoryPressure", "True"): f"{_PREFIX}memory-pressure",
    ("DiskPressure", "True"): f"{_PREFIX}disk-pressure",
    ("NetworkUnavailable", "True"): f"{_PREFIX}network-unavailable",
    ("PIDPressure", "True"): f"{_PREFIX}pid-pressure",
}
EVICTS: Final = "NoExecute"
OWN: Final = frozenset(
    (
        *((key, EFFECT) for key in (*BY_CONDITION.values(), UNSCHEDULABLE)),
        (NOT_READY, EVICTS),
        (f"{_PREFIX}unreachable", EVICTS),
    )
)
"""The keys and effects that are looked after here."""


class NodeTaintsMachine(Machine):
    """Taints unhealthy and cordoned nodes. `agents`: node agents of this process manage all nodes except kwok's."""

    kinds = ("Node",)

    def __init__(self, *, agents: bool) -> None:
        self._agents = agents
        self._fresh: dict[str, Object] = {}

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Note an object that exists, or was deleted, as of `revision`."""
        name = obj["metadata"]["name"]
        if deleted:
            self._fresh.pop(name, None)
        else:
            self._fresh[name] = obj

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is due before the next change or timer."""
        # Each node once, however often it changed since the last step: only its newest state needs a look.
        fresh, self._fresh = self._fresh, {}
        return [request for node in fresh.values() if (request := self._change(node, now)) is not None]

    def _change(self, node: Object, now: float) -> Patch | None:
        """Return the patch that brings a node's taints up to date, or None. The api refuses a stale patch; the watch
        brings the newer node.
        """
        taints: list[Object] = section(node, "spec").get("taints") or []
        wanted = self._wanted(node)
        there = {which for each in taints if (which := (str(each.get("key")), str(each.get("effect")))) in OWN}
        if wanted == there:
            return None
        gone, new = there - wanted, sorted(wanted - there, key=lambda which: (which[1] == EVICTS, which))
        kept = [each for each in taints if (each.get("key"), each.get("effect")) not in gone]
        # With the time: tolerationSeconds count from it.
        kept += [{"key": key, "effect": effect, "timeAdded": timestamp(now)} for key, effect in new]
        meta = node["metadata"]
        # The whole list under its version: two writers of taints would otherwise undo each other.
        patch = {"metadata": {"resourceVersion": meta["resourceVersion"]}, "spec": {"taints": kept or None}}
        return Patch("Node", "", meta["name"], pack(patch), user=USER)

    def _wanted(self, node: Object) -> set[tuple[str, str]]:
        conditions: list[Object] = section(node, "status").get("conditions") or []
        found = {BY_CONDITION.get((str(each.get("type")), str(each.get("status"))), "") for each in conditions}
        if section(node, "spec").get("unschedulable"):
            found.add(UNSCHEDULABLE)
        # A node that no kubelet of this process keeps is not ready until its own reports it.
        elsewhere = not self._agents or KWOK in text_map(node["metadata"].get("annotations"))
        if elsewhere and not any(each.get("type") == "Ready" for each in conditions):
            found.add(NOT_READY)
        evicting = {BY_CONDITION["Ready", str(each.get("status"))] for each in conditions if _is_down(each)}
        return {(key, EFFECT) for key in found - {""}} | {(key, EVICTS) for key in evicting}


def _is_down(condition: Object) -> bool:
    return condition.get("type") == "Ready" and condition.get("status") in ("False", "Unknown")
