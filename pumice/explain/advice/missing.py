"""Objects that are named and not there: the claims of a pod, and the priority class of a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from core.objects.metadata import section
from pumice.explain.advice.changes import Change, ChangeFamily, Edit, Identity, Object, single

if TYPE_CHECKING:
    from core.objects.pod import Task

HIGHEST: Final = 1_000_000_000
"""The greatest value that a class may have whose name is not the system's."""


def about_claims(task: Task, objects: Mapping[Identity, Object]) -> Iterator[ChangeFamily]:
    """PersistentVolumeClaims that a pod's volumes name: each with a volume that is bound to it."""
    for volume in task.template.volumes:
        claim = section(volume, "persistentVolumeClaim").get("claimName")
        who = ("PersistentVolumeClaim", task.namespace, str(claim))
        if claim and who not in objects:
            made = f"made-for-{claim}"
            bound, held = _bound(made), _volume(task.namespace, str(claim))
            volume_who = ("PersistentVolume", "", made)
            words = f"create PersistentVolumeClaim {claim}, bound to a volume that all nodes reach"
            yield single(0, words, Edit(volume_who, held), Edit(who, bound))


def _bound(volume: str) -> Callable[[Object], None]:
    def change(claim: Object) -> None:
        claim["metadata"] |= {"uid": "made", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        claim["spec"] = {"volumeName": volume, "accessModes": ["ReadWriteMany"], "storageClassName": ""}
        claim["status"] = {"phase": "Bound"}

    return change


def _volume(namespace: str, claim: str) -> Callable[[Object], None]:
    def change(volume: Object) -> None:
        reference = {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": claim, "uid": "made"}
        volume["spec"] = {"claimRef": reference, "accessModes": ["ReadWriteMany"], "capacity": {"storage": "1Ti"}}
        volume["status"] = {"phase": "Bound"}

    return change


def about_priority_class(pod_group: Object, objects: Mapping[Identity, Object]) -> Iterator[ChangeFamily]:
    """The PriorityClass that a PodGroup names: worth nothing, or just more than others are. With it there, its pods can
    be made as well.
    """
    name = str(section(pod_group, "spec").get("priorityClassName") or "")
    who = ("PriorityClass", "", name)
    if not name or who in objects:
        return
    values = sorted({0} | {value + 1 for value in _values(objects) if 0 <= value + 1 <= HIGHEST})

    def of(size: int) -> Change:
        value = values[size - 1]

        def change(made: Object) -> None:
            made |= {"apiVersion": "scheduling.k8s.io/v1", "value": value}

        return Change(f"create PriorityClass {name} (value {value})", (Edit(who, change),), remade=True)

    yield ChangeFamily(0, len(values), of)


def _values(objects: Mapping[Identity, Object]) -> Iterator[int]:
    for who, obj in objects.items():
        if who[0] == "PriorityClass":
            yield int(obj.get("value") or 0)
        elif who[0] == "Pod":
            yield int(section(obj, "spec").get("priority") or 0)
