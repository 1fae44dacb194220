"""Volumes, claims, and what the storage drivers say of themselves."""

from __future__ import annotations

from typing import Any, Final

from pumice.actors.gateway.tables.ages import age
from pumice.actors.gateway.tables.column import AGE, NAME, NONE, UNSET, Printer, TableColumn, flag, number, text
from pumice.actors.gateway.tables.words import access_modes, deleted, name_of, quantity, spec_of, status_of
from pumice.cluster.api.fields import annotations_of, rows
from pumice.core.objects.metadata import Object, section

_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _class(obj: Object) -> str:
    return annotations_of(obj).get(_OLD_CLASS) or spec_of(obj).get("storageClassName") or ""


def _phase(obj: Object) -> str:
    return "Terminating" if deleted(obj) else status_of(obj).get("phase") or ""


def _or_unset(value: object) -> str:
    return UNSET if value is None else str(value)


def _volume(obj: Object, now: float) -> list[Any]:
    spec = spec_of(obj)
    claim = spec.get("claimRef")
    return [
        name_of(obj),
        quantity(section(spec, "capacity").get("storage")),
        access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy") or "",
        _phase(obj),
        f"{claim.get('namespace') or ''}/{claim.get('name') or ''}" if claim else "",
        _class(obj),
        _or_unset(spec.get("volumeAttributesClassName")),
        status_of(obj).get("reason") or "",
        age(obj, now),
        _or_unset(spec.get("volumeMode")),
    ]


def _claim(obj: Object, now: float) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    bound = spec.get("volumeName") or ""
    return [
        name_of(obj),
        _phase(obj),
        bound,
        quantity(section(status, "capacity").get("storage")) if bound else "",
        access_modes(status.get("accessModes")) if bound else "",
        _class(obj),
        _or_unset(spec.get("volumeAttributesClassName")),
        age(obj, now),
        _or_unset(spec.get("volumeMode")),
    ]


def _storage_class(obj: Object, now: float) -> list[Any]:
    default = any(annotations_of(obj).get(key) == "true" for key in _DEFAULT_CLASS)
    return [
        f"{name_of(obj)} (default)" if default else name_of(obj),
        obj.get("provisioner") or "",
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "Immediate",
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


def _attachment(obj: Object, now: float) -> list[Any]:
    spec = spec_of(obj)
    volume = section(spec, "source").get("persistentVolumeName") or ""
    attached = bool(status_of(obj).get("attached"))
    return [name_of(obj), spec.get("attacher") or "", volume, spec.get("nodeName") or "", attached, age(obj, now)]


def _csi_node(obj: Object, now: float) -> list[Any]:
    return [name_of(obj), len(rows(spec_of(obj), "drivers")), age(obj, now)]


def _csi_driver(obj: Object, now: float) -> list[Any]:
    spec = spec_of(obj)
    requests = spec.get("tokenRequests")
    attach = spec.get("attachRequired")
    return [
        name_of(obj),
        attach is None or bool(attach),
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        UNSET if requests is None else ",".join(str(one.get("audience", "")) for one in requests),
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or []) or NONE,
        age(obj, now),
    ]


def _csi_capacity(obj: Object, now: float) -> list[Any]:
    amount = obj.get("capacity")
    return [name_of(obj), obj.get("storageClassName") or "", UNSET if amount is None else quantity(amount)]


VOLUMES: Final = Printer(
    (
        NAME,
        text("Capacity", "Its size."),
        text("Access Modes", "How it may be mounted."),
        text("Reclaim Policy", "What becomes of it after its claim."),
        text("Status", "Its phase."),
        text("Claim", "The claim it is bound to."),
        text("StorageClass", "Its class."),
        text("VolumeAttributesClass", "The class of its attributes."),
        text("Reason", "Why it is in this phase."),
        AGE,
        text("VolumeMode", "Filesystem or Block.", wide=True),
    ),
    _volume,
)

CLAIMS: Final = Printer(
    (
        NAME,
        text("Status", "Its phase."),
        text("Volume", "The volume it is bound to."),
        text("Capacity", "The volume's size."),
        text("Access Modes", "How the volume may be mounted."),
        text("StorageClass", "Its class."),
        text("VolumeAttributesClass", "The class of the volume's attributes."),
        AGE,
        text("VolumeMode", "Filesystem or Block.", wide=True),
    ),
    _claim,
)

STORAGE_CLASSES: Final = Printer(
    (
        NAME,
        text("Provisioner", "Who makes the volumes."),
        text("ReclaimPolicy", "What becomes of a volume after its claim."),
        text("VolumeBindingMode", "At once, or when the first pod is placed."),
        text("AllowVolumeExpansion", "Whether a claim may grow."),
        AGE,
    ),
    _storage_class,
)

ATTACHMENTS: Final = Printer(
    (
        NAME,
        TableColumn("Attacher", format="name", description="The driver."),
        text("PV", "The volume."),
        text("Node", "Where it is to be attached."),
        flag("Attached", "Whether it is."),
        AGE,
    ),
    _attachment,
)

CSI_NODES: Final = Printer((NAME, number("Drivers", "Storage drivers on the node."), AGE), _csi_node)

CSI_DRIVERS: Final = Printer(
    (
        NAME,
        flag("AttachRequired", "Whether its volumes are attached before they are mounted."),
        flag("PodInfoOnMount", "Whether it is told about the pod."),
        flag("StorageCapacity", "Whether it says how much room it has."),
        text("TokenRequests", "For whom it wants tokens."),
        flag("RequiresRepublish", "Whether it wants to be called again and again."),
        text("Modes", "Lives of volumes it supports."),
        AGE,
    ),
    _csi_driver,
)

CSI_CAPACITIES: Final = Printer(
    (NAME, text("StorageClassName", "Whose room it is."), text("Capacity", "How much.")), _csi_capacity
)
