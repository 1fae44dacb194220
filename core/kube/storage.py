# SPDX-License-Identifier: Apache-2.0
"""Claims, volumes and storage classes as the volume filters read them.

Sources: component-helpers `storage/volume` and `storage/ephemeral`. In-tree volumes are not translated to their CSI
drivers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from pumice.core.kube.node_selector import label_column, rows_in_term
from pumice.core.kube.selectors import SelectorError, label_selector
from pumice.core.objects.metadata import Object, annotations_of, controlling_owner, key_of, labels_of, section
from pumice.core.quantity import Quantity, quantity_of
from pumice.core.state.derived import Like, derived
from pumice.core.state.sources import NODES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.core.kube.rows import BoolArray, NodeRows
    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.state.sources import NodeSpecs

BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


class UnreadableVolumesError(Exception):
    """The reason why a pod's volumes cannot be read; the text is Kubernetes' own. `missing`: an object does not exist
    (yet).
    """

    def __init__(self, text: str, *, missing: bool = True) -> None:
        super().__init__(text)
        self.missing = missing


class ClaimName(NamedTuple):
    """A claim that a pod uses. `ephemeral`: made for the pod, and must be its own."""

    name: str
    ephemeral: bool


def uses_claims(template: PodTemplate) -> bool:
    """Return whether a pod has any volume behind a claim."""
    if not template.volumes:
        return False
    return any(v.get("persistentVolumeClaim") is not None or v.get("ephemeral") is not None for v in template.volumes)


def has_ephemeral(template: PodTemplate) -> bool:
    """Return whether the name of a claim depends on the pod's own name."""
    return any(v.get("ephemeral") is not None for v in template.volumes)


def claim_names(task: Task) -> list[ClaimName]:
    """Return the claims a pod uses, in the order of its volumes."""
    found: list[ClaimName] = []
    for volume in task.template.volumes:
        if volume.get("persistentVolumeClaim") is not None:
            found.append(ClaimName(str(section(volume, "persistentVolumeClaim").get("claimName") or ""), False))
        elif volume.get("ephemeral") is not None:
            found.append(ClaimName(f"{task.name}-{volume.get('name') or ''}", True))
    return found


def class_name(obj: Object) -> str:
    """Return the storage class of a claim or volume; the old annotation comes first."""
    annotations = annotations_of(obj)
    return annotations.get(BETA_CLASS, str(section(obj, "spec").get("storageClassName") or ""))


def name_of(obj: Object) -> str:
    """Return metadata.name."""
    return str(section(obj, "metadata").get("name") or "")


def claim_key(claim: Object) -> str:
    """Return namespace/name of a claim."""
    return key_of(str(section(claim, "metadata").get("namespace") or ""), name_of(claim))


def volume_name(claim: Object) -> str:
    """Return the volume to which a claim is bound, or shall be."""
    return str(section(claim, "spec").get("volumeName") or "")


def is_fully_bound(claim: Object) -> bool:
    """Return whether the binding of a claim is complete."""
    return bool(volume_name(claim)) and BIND_COMPLETED in annotations_of(claim)


class Storage:
    """Look-ups over the session's objects."""

    def __init__(self, objects: Mapping[str, Mapping[str, Object]]) -> None:
        self._objects = objects

    def of_kind(self, kind: str) -> Mapping[str, Object]:
        """Return all objects of a kind, by name or namespace/name."""
        return self._objects.get(kind, {})

    def claim(self, namespace: str, name: str) -> Object:
        """Return a claim. Raises StorageError without one."""
        return self._get("PersistentVolumeClaim", key_of(namespace, name), "persistentvolumeclaim", name)

    def volume(self, name: str) -> Object:
        """Return a volume. Raises StorageError without one."""
        return self._get("PersistentVolume", name, "persistentvolume", name)

    def storage_class(self, name: str) -> Object:
        """Return a storage class. Raises StorageError without one."""
        return self._get("StorageClass", name, "storageclass.storage.k8s.io", name)

    def _get(self, kind: str, key: str, label: str, name: str) -> Object:
        found = self.of_kind(kind).get(key)
        if found is None:
            raise UnreadableVolumesError(f'{label} "{name}" not found')
        return found

    def waits_for_consumer(self, claim: Object) -> bool:
        """Return whether a claim is bound only once a pod is placed. Raises StorageError for a class that does not
        say.
        """
        name = class_name(claim)
        known = self.of_kind("StorageClass").get(name) if name else None
        # Kubernetes does not wait for a class that does not exist (IsDelayBindingMode).
        if known is None:
            return False
        mode = known.get("volumeBindingMode")
        if mode is None:
            raise UnreadableVolumesError(f'VolumeBindingMode not set for StorageClass "{name}"', missing=False)
        return bool(mode == "WaitForFirstConsumer")


def check_owner(claim: Object, task: Task) -> None:
    """Check that an ephemeral volume's claim was made for this pod. Raises StorageError."""
    owner = controlling_owner(claim)
    if owner is None or owner.get("uid") != task.uid:
        text = f"PVC {claim_key(claim)} was not created for pod {task.key} (pod is not owner)"
        raise UnreadableVolumesError(text, missing=False)


# --- Volumes that an unbound claim can get
# Source: component-helpers `storage/volume` FindMatchingVolume.
#
# Everything but the place of a volume is judged once per claim; the place is a mask over the nodes.


def requested_storage(claim: Object) -> Quantity:
    """Return the size that a claim requests."""
    return quantity_of(section(section(section(claim, "spec"), "resources"), "requests").get("storage"))


def storage_capacity(volume: Object) -> Quantity:
    """Return the size of a volume."""
    return quantity_of(section(section(volume, "spec"), "capacity").get("storage"))


def rows_reaching(nodes: NodeRows, volume: Object) -> BoolArray:
    """Return mask [N] of the nodes that can use a volume, by the labels in its node affinity."""
    required: Object | None = section(section(volume, "spec"), "nodeAffinity").get("required")
    if required is None:
        return np.ones(nodes.count, dtype=np.bool_)
    terms: list[Object] = required.get("nodeSelectorTerms") or []
    return _rows_in_terms(nodes, Like(msgspec.json.encode(terms, order="deterministic"), terms))


@derived(NODES)
def _rows_in_terms(nodes: NodeSpecs, terms: Like[list[Object]]) -> BoolArray:
    mask = np.zeros(nodes.count, dtype=np.bool_)
    for term in terms.subject:
        mask |= _rows_in_labels(nodes, term)
    return mask


def _rows_in_labels(nodes: NodeRows, term: Object) -> BoolArray:
    # Kubernetes asks about a node without a name here (CheckNodeAffinity) and so passes over fields.
    if term.get("matchFields") and not term.get("matchExpressions"):
        return np.ones(nodes.count, dtype=np.bool_)
    try:
        return rows_in_term(nodes, {"matchExpressions": term.get("matchExpressions")})
    except SelectorError:
        return np.zeros(nodes.count, dtype=np.bool_)


def rows_in_topologies(nodes: NodeRows, terms: Sequence[Object]) -> BoolArray:
    """Return mask [N] of the nodes that a storage class's allowedTopologies allow; all of them without a list."""
    if not terms:
        return np.ones(nodes.count, dtype=np.bool_)
    allowed = np.zeros(nodes.count, dtype=np.bool_)
    for term in terms:
        expressions: list[Object] = term.get("matchLabelExpressions") or []
        # A term without expressions allows no node (TopologySelectorRequirementsAsSelector).
        mask = np.full(nodes.count, bool(expressions), dtype=np.bool_)
        for expression in expressions:
            column = label_column(nodes, str(expression.get("key") or ""))
            wanted: list[str] = expression.get("values") or []
            # The last is for nodes without the label, whose code is -1.
            accepted = np.array([value in wanted for value in column.values] + [False], dtype=np.bool_)
            mask &= accepted[column.codes]
        allowed |= mask
    return allowed


def is_for(volume: Object, claim: Object, claimed_by: str | None) -> bool:
    """Return whether a volume is bound to this claim, in the API or by a placement of this session.

    `claimed_by`: the key of the claim that the session placed on it, if any.
    """
    if claimed_by is not None:
        return claimed_by == claim_key(claim)
    reference, meta = section(section(volume, "spec"), "claimRef"), section(claim, "metadata")
    if (reference.get("name"), reference.get("namespace")) != (meta.get("name"), meta.get("namespace")):
        return False
    # A volume that its author reserved may name its claim without a uid.
    return not reference.get("uid") or reference.get("uid") == meta.get("uid")


def is_taken(volume: Object, claimed_by: str | None) -> bool:
    """Return whether a volume is bound to any claim."""
    return claimed_by is not None or section(volume, "spec").get("claimRef") is not None


def is_large_enough(volume: Object, claim: Object) -> bool:
    """Return whether the volume has the size, volume mode and attributes class, and is not terminating."""
    asked, offered = section(claim, "spec"), section(volume, "spec")
    return (
        storage_capacity(volume).compare(requested_storage(claim)) >= 0
        and (asked.get("volumeMode") or "Filesystem") == (offered.get("volumeMode") or "Filesystem")
        and (asked.get("volumeAttributesClassName") or "") == (offered.get("volumeAttributesClassName") or "")
        and not section(volume, "metadata").get("deletionTimestamp")
    )


def is_available(volume: Object, claim: Object) -> bool:
    """Return whether a free volume has the phase, labels, class and access modes. Raises SelectorError."""
    spec = section(claim, "spec")
    chosen: Object | None = spec.get("selector")
    labels = labels_of(volume)
    modes: list[str] = section(volume, "spec").get("accessModes") or []
    wanted: list[str] = spec.get("accessModes") or []
    return (
        section(volume, "status").get("phase") == "Available"
        and (chosen is None or label_selector(chosen).matches(labels))
        and class_name(volume) == class_name(claim)
        and set(wanted) <= set(modes)
    )
