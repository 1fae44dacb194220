"""Objects that are named and not there: the claims of a pod."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from core.objects.metadata import section
from pumice.explain.advice.changes import ChangeFamily, Edit, Identity, Object, single

if TYPE_CHECKING:
    from core.objects.pod import Task


def about_claims(task: Task, objects: Mapping[Identity, Object]) -> Iterator[ChangeFamily]:
    """PersistentVolumeClaims that a pod's volumes name: each with a volume that is bound to it."""
    for volume in task.template.volumes:
        claim = section(volume, "persistentVolumeClaim").get("claimName")
        who = ("PersistentVolumeClaim", task.namespace, str(claim))
        if claim and who not in objects:
            made = f"made-for-{claim}"
            bound, held = _bound(made), _volume(task.namespace, str(claim))
            volume_who = ("PersistentVolume", "", made)
            yield single(0, f"create PersistentVolumeClaim {claim}", Edit(volume_who, held), Edit(who, bound))


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
