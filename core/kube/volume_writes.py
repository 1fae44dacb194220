# SPDX-License-Identifier: Apache-2.0
"""The writes to claims and volumes for binding, promising and making volumes: an object in, the changed object out.

Source: Kubernetes' PersistentVolume controller (`controller/volume/persistentvolume`) and component-helpers
`storage/volume` (GetBindVolumeToClaim).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.kube.storage import BIND_COMPLETED, SELECTED_NODE, claim_key, class_name, name_of
from pumice.core.objects.metadata import key_of, section, text_map

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.core.objects.metadata import Object

BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


def annotated(obj: Object, annotations: Mapping[str, str | None]) -> Object:
    """Return the object with these annotations; None removes one."""
    meta = section(obj, "metadata")
    after = {**text_map(meta.get("annotations")), **annotations}
    return {
        **obj,
        "metadata": {**meta, "annotations": {key: value for key, value in after.items() if value is not None}},
    }


def claimed_by(volume: Object) -> str:
    """Return "namespace/name" of the claim of a volume, "" for none."""
    reference = section(section(volume, "spec"), "claimRef")
    return key_of(str(reference.get("namespace") or ""), str(reference.get("name") or "")) if reference else ""


def is_promised(volume: Object, claim: Object) -> bool:
    """Return whether the volume names this very claim, its uid included."""
    reference = section(section(volume, "spec"), "claimRef")
    return claimed_by(volume) == claim_key(claim) and reference.get("uid") == section(claim, "metadata").get("uid")


def promised_volume(volume: Object, claim: Object) -> Object:
    """Return a volume that is kept for the claim."""
    meta, spec = section(claim, "metadata"), section(volume, "spec")
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": meta.get("namespace"),
        "name": meta.get("name"),
        "uid": meta.get("uid"),
    }
    # The mark says that the controller wrote claimRef; a user's own carries none (GetBindVolumeToClaim).
    marked = volume if spec.get("claimRef") else annotated(volume, {BY_CONTROLLER: "yes"})
    return {**marked, "spec": {**spec, "claimRef": reference}}


def freed_volume(volume: Object) -> Object:
    """Return the volume without its claim, free for any claim."""
    spec = {key: value for key, value in section(volume, "spec").items() if key != "claimRef"}
    return {**annotated(volume, {BY_CONTROLLER: None}), "spec": spec}


def bound_volume(volume: Object, claim: Object) -> Object:
    """Return a volume that is bound to the claim."""
    return in_phase(volume if is_promised(volume, claim) else promised_volume(volume, claim), "Bound")


def in_phase(obj: Object, phase: str) -> Object:
    """Return the object with this status.phase."""
    return {**obj, "status": {**section(obj, "status"), "phase": phase}}


def bound_claim(claim: Object, volume: Object) -> Object:
    """Return a claim that is bound to the volume."""
    spec, offered = section(claim, "spec"), section(volume, "spec")
    # A claim whose user named the volume gets no mark of the controller, either.
    marks = {BIND_COMPLETED: "yes"} if spec.get("volumeName") else {BIND_COMPLETED: "yes", BY_CONTROLLER: "yes"}
    status = {
        **section(claim, "status"),
        "phase": "Bound",
        "accessModes": list(offered.get("accessModes") or ()),
        "capacity": dict(section(offered, "capacity")),
    }
    return {**annotated(claim, marks), "spec": {**spec, "volumeName": name_of(volume)}, "status": status}


def made_volume(claim: Object, storage_class: Object) -> Object:
    """Return a new volume for the claim, reachable from everywhere and already bound."""
    spec, meta = section(claim, "spec"), section(claim, "metadata")
    offered: Object = {
        "capacity": dict(section(section(spec, "resources"), "requests")),
        "accessModes": list(spec.get("accessModes") or ()),
        "storageClassName": class_name(claim),
        "volumeMode": spec.get("volumeMode") or "Filesystem",
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
    }
    volume: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            # Kubernetes' name (GetProvisionedVolumeNameForClaim): a second try would give the same one.
            "name": f"pvc-{meta.get('uid')}",
            "annotations": {PROVISIONED_BY: str(storage_class.get("provisioner") or "")},
        },
        "spec": offered,
    }
    return bound_volume(volume, claim)


def with_node(claim: Object, node: str | None) -> Object:
    """Return a claim whose volume is to be made on this node, or on any for None."""
    return annotated(claim, {SELECTED_NODE: node})
