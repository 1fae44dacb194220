# SPDX-License-Identifier: Apache-2.0
"""Exports of other schedulers: one JSON document with a list for each kind, whose items do not say their kinds.

- kube-scheduler-simulator's export (`/api/v1/export`): Kubernetes' objects (its simulator/snapshot/snapshot.go).
- KAI's `snapshot.json`: Kubernetes' objects too, and its own queues and PodGroups, which become Volcano's: a quota is
  `deserved`, a limit `capability` (-1: none), the parent is kept; pods of KAI's scheduler become Volcano's (its
  pkg/scheduler/plugins/snapshot/snapshot.go and pkg/apis/scheduling).

What has no counterpart is counted with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pumice.core.objects.metadata import Object, annotations_of, is_list, is_mapping, rows, section
from pumice.core.objects.pod import GROUP_NAME
from pumice.load.traces.expressions import plain
from pumice.load.traces.jobs import GPU, Left

CORE: Final[Mapping[str, tuple[str, str]]] = {
    "pods": ("v1", "Pod"),
    "nodes": ("v1", "Node"),
    "namespaces": ("v1", "Namespace"),
    "configMaps": ("v1", "ConfigMap"),
    "pvs": ("v1", "PersistentVolume"),
    "pvcs": ("v1", "PersistentVolumeClaim"),
    "persistentVolumes": ("v1", "PersistentVolume"),
    "persistentVolumeClaims": ("v1", "PersistentVolumeClaim"),
    "storageClasses": ("storage.k8s.io/v1", "StorageClass"),
    "csiStorageCapacities": ("storage.k8s.io/v1", "CSIStorageCapacity"),
    "csiDrivers": ("storage.k8s.io/v1", "CSIDriver"),
    "priorityClasses": ("scheduling.k8s.io/v1", "PriorityClass"),
    "resourceClaims": ("resource.k8s.io/v1", "ResourceClaim"),
    "resourceSlices": ("resource.k8s.io/v1", "ResourceSlice"),
    "deviceClasses": ("resource.k8s.io/v1", "DeviceClass"),
}
"""By the name of the list: the type of its items."""
SIMULATOR: Final = {"pods", "nodes", "schedulerConfig"}
RAW: Final = "rawObjects"
VOLCANO: Final = "scheduling.volcano.sh/v1beta1"
KAI: Final = "kai-scheduler"
KAI_GROUP: Final = "pod-group-name"
KAI_PARTS: Final = ("gpu-fraction", "gpu-memory")
ROOT: Final = "root"
AMOUNTS: Final = (("cpu", "cpu", "m"), ("memory", "memory", "M"), ("gpu", GPU, ""))
"""Of KAI's queues: the resource there, here, and the unit of its numbers (millicores, megabytes, cards)."""


def exported(document: object, left: Left) -> Iterator[Object] | None:
    """Return the objects of an export; None where the document is not one."""
    if not is_mapping(document) or "kind" in document:
        return None
    if is_mapping(document.get(RAW)):
        return _of_kai(document, left)
    return _of_simulator(document, left) if document.keys() >= SIMULATOR else None


def _of_simulator(export: Object, left: Left) -> Iterator[Object]:
    for name, items in export.items():
        if name in CORE:
            yield from _typed(name, items)
        else:
            _leave(name, items, left)


def _typed(name: str, items: object) -> Iterator[Object]:
    version, kind = CORE[name]
    for item in filter(is_mapping, items if is_list(items) else ()):
        yield {"apiVersion": version, "kind": kind, **item}


def _leave(name: str, items: object, left: Left) -> None:
    """Count what stands under a name, and has no counterpart here."""
    for _ in items if is_list(items) else (items,) if items else ():
        left.note(f"{name} has no counterpart here")


# --- KAI


def _of_kai(snapshot: Object, left: Left) -> Iterator[Object]:
    for name in snapshot.keys() - {RAW}:
        _leave(name, snapshot[name], left)
    scheduler = str(section(snapshot, "schedulerParams").get("schedulerName") or KAI)
    for name, items in section(snapshot, RAW).items():
        listed: list[Any] = items if is_list(items) else []
        if name == "pods":
            yield from (_pod(each, scheduler, left) for each in _typed(name, listed))
        elif name == "queues":
            yield from map(_queue, filter(is_mapping, listed))
        elif name == "podGroups":
            yield from (_group(each, left) for each in filter(is_mapping, listed))
        elif name in CORE:
            yield from _typed(name, listed)
        else:
            _leave(name, listed, left)


def _pod(pod: Object, scheduler: str, left: Left) -> Object:
    """Return a pod as Volcano's, unless another scheduler than KAI is asked for."""
    spec, notes = section(pod, "spec"), annotations_of(pod)
    if spec.get("schedulerName") != scheduler:
        return pod
    for part in KAI_PARTS:
        if part in notes:
            left.note(f"{part} of a pod: it is read as asking for no GPU")
    grouped = {**notes, **({GROUP_NAME: notes[KAI_GROUP]} if KAI_GROUP in notes else {})}
    metadata = {**section(pod, "metadata"), "annotations": grouped}
    return {**pod, "metadata": metadata, "spec": {**spec, "schedulerName": "volcano"}}


def _queue(queue: Object) -> Object:
    """Return KAI's queue as Volcano's. The weight of what is over quota is that of cards, 1 at least."""
    spec = section(queue, "spec")
    resources = section(spec, "resources")
    found: Object = {
        "parent": spec.get("parentQueue") or ROOT,
        "weight": max(1, round(_number(section(resources, "gpu").get("overQuotaWeight")) or 0.0)),
        "reclaimable": True,
    }
    if spec.get("priority") is not None:
        found["priority"] = spec["priority"]
    for ours, theirs in (("deserved", "quota"), ("capability", "limit")):
        amounts = {
            name: f"{plain(value)}{unit}"
            for kind, name, unit in AMOUNTS
            if (value := _number(section(resources, kind).get(theirs))) is not None and value >= 0
        }
        if amounts:
            found[ours] = amounts
    return {"apiVersion": VOLCANO, "kind": "Queue", "metadata": section(queue, "metadata"), "spec": found}


def _group(group: Object, left: Left) -> Object:
    """Return KAI's PodGroup as Volcano's, admitted: KAI has no admission before scheduling."""
    spec, parts = section(group, "spec"), rows(section(group, "spec"), "subGroups")
    least = spec.get("minMember")
    if parts:
        left.note("subGroups of a PodGroup: the whole group is one gang")
    if least is None:
        least = sum(int(_number(each.get("minMember")) or 0) for each in parts) or 1
    found: Object = {"minMember": least, "queue": spec.get("queue") or "default"}
    if spec.get("priorityClassName"):
        found["priorityClassName"] = spec["priorityClassName"]
    return {
        "apiVersion": VOLCANO,
        "kind": "PodGroup",
        "metadata": section(group, "metadata"),
        "spec": found,
        "status": {"phase": "Inqueue"},
    }


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
