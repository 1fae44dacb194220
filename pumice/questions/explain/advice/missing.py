"""What is named and not there: the claims of a pod, the priority classes of a job, and the scheduler of its pods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pumice.cluster.api.admission.priority_classes import HIGHEST
from pumice.cluster.controllers.unserved.kinds import SCHEDULER
from pumice.core.objects.metadata import Object, section
from pumice.core.objects.pod import GROUP_NAME, is_strange
from pumice.questions.explain.advice.changes import Change, ChangeFamily, Edit, Identity, single

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task


def about_claims(task: Task, objects: Mapping[Identity, Object]) -> Iterator[ChangeFamily]:
    """PersistentVolumeClaims that a pod's volumes name and that are not there, or have no volume: each with a volume
    that is bound to it.
    """
    for volume in task.template.volumes:
        claim = section(volume, "persistentVolumeClaim").get("claimName")
        who = ("PersistentVolumeClaim", task.namespace, str(claim))
        there = objects.get(who, {})
        if claim and not section(there, "spec").get("volumeName"):
            words = f"bind PersistentVolumeClaim {claim}" if there else f"create PersistentVolumeClaim {claim}, bound"
            yield single(0, f"{words} to a volume that all nodes reach", *_bound(who, there))


def _bound(who: Identity, there: Object) -> tuple[Edit, Edit]:
    """The claim (which may be `there`) and a volume, bound to each other."""
    made, uid = f"made-for-{who[2]}", str(section(there, "metadata").get("uid") or "made")

    def change(claim: Object) -> None:
        notes = section(claim["metadata"], "annotations")
        claim["metadata"] |= {"uid": uid, "annotations": {**notes, "pv.kubernetes.io/bind-completed": "yes"}}
        plain = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        claim["spec"] = {**plain, **section(there, "spec"), "volumeName": made}
        claim["status"] = {"phase": "Bound"}

    return Edit(("PersistentVolume", "", made), _volume(who, uid)), Edit(who, change)


def _volume(claim: Identity, uid: str) -> Callable[[Object], None]:
    def change(volume: Object) -> None:
        reference = {"kind": claim[0], "namespace": claim[1], "name": claim[2], "uid": uid}
        volume["spec"] = {"claimRef": reference, "accessModes": ["ReadWriteMany"], "capacity": {"storage": "1Ti"}}
        volume["status"] = {"phase": "Bound"}

    return change


def about_schedulers(pod_group: Object, objects: Mapping[Identity, Object]) -> Iterator[ChangeFamily]:
    """Pods of the PodGroup that ask for a scheduler that nobody here is."""
    metadata = pod_group["metadata"]
    strangers: dict[str, list[Edit]] = {}
    pods = (who for who in objects if who[:2] == ("Pod", str(metadata.get("namespace") or "")))
    for who in pods:
        spec, annotations = section(objects[who], "spec"), section(section(objects[who], "metadata"), "annotations")
        if is_strange(spec) and annotations.get(GROUP_NAME) == metadata["name"]:
            strangers.setdefault(spec["schedulerName"], []).append(Edit(who, _of_volcano))
    for name, edits in sorted(strangers.items()):
        yield single(0, f"schedulerName {SCHEDULER} instead of {name}", *edits)


def _of_volcano(pod: Object) -> None:
    pod["spec"]["schedulerName"] = SCHEDULER


def about_priority_classes(pod_group: Object, objects: Mapping[Identity, Object]) -> Iterator[ChangeFamily]:
    """The PriorityClasses that a PodGroup and the pod templates of its Job name: worth nothing, or just more than
    others are. With them there, its pods can be made as well.
    """
    for name in dict.fromkeys(_classes_of(pod_group, objects)):
        if name and ("PriorityClass", "", name) not in objects:
            yield _class(name, sorted({0} | {value + 1 for value in _values(objects) if 0 <= value + 1 <= HIGHEST}))


def _classes_of(pod_group: Object, objects: Mapping[Identity, Object]) -> Iterator[str]:
    yield str(section(pod_group, "spec").get("priorityClassName") or "")
    metadata = section(pod_group, "metadata")
    for owner in metadata.get("ownerReferences") or ():
        job = objects.get((str(owner.get("kind")), str(metadata.get("namespace") or ""), str(owner.get("name"))), {})
        for task in section(job, "spec").get("tasks") or ():
            yield str(section(section(task, "template"), "spec").get("priorityClassName") or "")


def _class(name: str, values: Sequence[int]) -> ChangeFamily:
    def of(size: int) -> Change:
        value = values[size - 1]

        def change(made: Object) -> None:
            made |= {"apiVersion": "scheduling.k8s.io/v1", "value": value}

        return Change(
            f"create PriorityClass {name} (value {value})", (Edit(("PriorityClass", "", name), change),), remade=True
        )

    return ChangeFamily(0, len(values), of)


def _values(objects: Mapping[Identity, Object]) -> Iterator[int]:
    for who, obj in objects.items():
        if who[0] == "PriorityClass":
            yield int(obj.get("value") or 0)
        elif who[0] == "Pod":
            yield int(section(obj, "spec").get("priority") or 0)
