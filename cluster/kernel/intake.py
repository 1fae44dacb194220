# SPDX-License-Identifier: Apache-2.0
"""Handing objects in: their order, and the API's answer to each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.cluster.api.origin import LOAD, entering, is_recorded
from pumice.cluster.api.store import Store
from pumice.core.messages.commands import LoadObject
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object, section
from pumice.storage.codec import pack

FIRST: Final = (
    "Namespace",
    "PriorityClass",
    "StorageClass",
    "DeviceClass",
    "Queue",
    "Node",
    "HyperNode",
    "ResourceSlice",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "ResourceQuota",
    "PodDisruptionBudget",
    "PodGroup",
)
"""Kinds that others refer to, each after those it refers to itself."""


def in_order(objects: Sequence[Object]) -> list[Object]:
    """Return the objects with references first and queues after their parents.

    Pods that a cluster had come before their makers, or controllers that are at work already would make them anew; and
    before these those that are on nodes, or others would be given their room.
    """
    rank = {kind: number for number, kind in enumerate(FIRST)}
    depth = queue_depths(objects)
    return sorted(objects, key=lambda obj: (_rank(obj, rank), _depth_of(obj, depth)))


def _rank(obj: Object, rank: dict[str, int]) -> int:
    if obj["kind"] == "Pod" and is_recorded(obj):
        # Behind their PodGroups and claims, before Jobs and all other makers.
        return len(FIRST) if section(obj, "spec").get("nodeName") else len(FIRST) + 1
    return rank.get(obj["kind"], len(FIRST) + 2)


def queue_depths(objects: Sequence[Object]) -> dict[str, int]:
    """Return the number of given queues above each queue; a cycle ends where it began."""
    parents = {
        section(obj, "metadata").get("name") or "": section(obj, "spec").get("parent") or ""
        for obj in objects
        if obj["kind"] == "Queue"
    }
    return {name: _above(name, parents) for name in parents}


def _above(name: str, parents: dict[str, str]) -> int:
    seen = {name}
    parent = parents[name]
    # O(depth) for each queue: trees of queues are flat, so no depth is remembered.
    while parent in parents and parent not in seen:
        seen.add(parent)
        parent = parents[parent]
    return len(seen) - 1


def _depth_of(obj: Object, depth: dict[str, int]) -> int:
    return depth.get(section(obj, "metadata").get("name") or "", 0) if obj["kind"] == "Queue" else 0


def refusals_of(objects: Sequence[Object], beside: Sequence[Object] = ()) -> list[Refused | None]:
    """Return what an API says to each of the objects, None where it takes it, where `beside` is there already."""
    # A whole store, and not the rules alone: what an object refers to must have been taken before it.
    store = Store()
    for obj in beside:
        store.apply(LoadObject(pack(obj), user=LOAD), 0.0)
    found: dict[int, Refused] = {}
    for obj in in_order(objects):
        answer = store.apply(entering(obj), 0.0)
        if isinstance(answer, Refused):
            # by identity: of two equal objects only the second is refused
            found[id(obj)] = answer
    return [found.get(id(obj)) for obj in objects]
