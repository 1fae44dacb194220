"""Claims, volumes and storage classes as the volume filters read them.

Sources: component-helpers `storage/volume` and `storage/ephemeral`. In-tree volumes are not translated to their CSI
drivers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pumice.core.objects.metadata import Object, key_of, section, text_map

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate

BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


class UnreadableVolumesError(Exception):
    """Why a pod's volumes cannot be read; the text is Kubernetes' own. `missing`: an object is not there (yet)."""

    def __init__(self, text: str, *, missing: bool = True) -> None:
        super().__init__(text)
        self.missing = missing


class ClaimName(NamedTuple):
    """A claim that a pod uses. `ephemeral`: made for the pod, and must be its own."""

    name: str
    ephemeral: bool


def uses_claims(template: PodTemplate) -> bool:
    """Whether a pod has any volume behind a claim."""
    if not template.volumes:
        return False
    return any(v.get("persistentVolumeClaim") is not None or v.get("ephemeral") is not None for v in template.volumes)


def has_ephemeral(template: PodTemplate) -> bool:
    """Whether the name of a claim depends on the pod's own name."""
    return any(v.get("ephemeral") is not None for v in template.volumes)


def claim_names(task: Task) -> list[ClaimName]:
    """The claims a pod uses, in the order of its volumes."""
    found: list[ClaimName] = []
    for volume in task.template.volumes:
        if volume.get("persistentVolumeClaim") is not None:
            found.append(ClaimName(str(section(volume, "persistentVolumeClaim").get("claimName") or ""), False))
        elif volume.get("ephemeral") is not None:
            found.append(ClaimName(f"{task.name}-{volume.get('name') or ''}", True))
    return found


def class_name(obj: Object) -> str:
    """The storage class of a claim or volume; the old annotation comes first."""
    annotations = text_map(section(obj, "metadata").get("annotations"))
    return annotations.get(BETA_CLASS, str(section(obj, "spec").get("storageClassName") or ""))


def name_of(obj: Object) -> str:
    """metadata.name."""
    return str(section(obj, "metadata").get("name") or "")


def claim_key(claim: Object) -> str:
    """namespace/name of a claim."""
    return key_of(str(section(claim, "metadata").get("namespace") or ""), name_of(claim))


def volume_name(claim: Object) -> str:
    """The volume a claim is bound to, or shall be."""
    return str(section(claim, "spec").get("volumeName") or "")


def is_fully_bound(claim: Object) -> bool:
    """Whether the binding of a claim is complete."""
    return bool(volume_name(claim)) and BIND_COMPLETED in text_map(section(claim, "metadata").get("annotations"))


class Storage:
    """Look-ups over the session's objects."""

    def __init__(self, objects: Mapping[str, Mapping[str, Object]]) -> None:
        self._objects = objects

    def of_kind(self, kind: str) -> Mapping[str, Object]:
        """All objects of a kind, by name or namespace/name."""
        return self._objects.get(kind, {})

    def claim(self, namespace: str, name: str) -> Object:
        """A claim; raises StorageError when there is none."""
        return self._get("PersistentVolumeClaim", key_of(namespace, name), "persistentvolumeclaim", name)

    def volume(self, name: str) -> Object:
        """A volume; raises StorageError when there is none."""
        return self._get("PersistentVolume", name, "persistentvolume", name)

    def storage_class(self, name: str) -> Object:
        """A storage class; raises StorageError when there is none."""
        return self._get("StorageClass", name, "storageclass.storage.k8s.io", name)

    def _get(self, kind: str, key: str, label: str, name: str) -> Object:
        found = self.of_kind(kind).get(key)
        if found is None:
            raise UnreadableVolumesError(f'{label} "{name}" not found')
        return found

    def waits_for_consumer(self, claim: Object) -> bool:
        """Whether a claim is bound only once a pod is placed. Raises StorageError for a class that does not say."""
        name = class_name(claim)
        known = self.of_kind("StorageClass").get(name) if name else None
        if known is None:
            return False
        mode = known.get("volumeBindingMode")
        if mode is None:
            raise UnreadableVolumesError(f'VolumeBindingMode not set for StorageClass "{name}"', missing=False)
        return bool(mode == "WaitForFirstConsumer")


def check_owner(claim: Object, task: Task) -> None:
    """Raises StorageError when an ephemeral volume's claim was not made for this pod."""
    owners: list[dict[str, Any]] = section(claim, "metadata").get("ownerReferences") or []
    if not any(owner.get("controller") and owner.get("uid") == task.uid for owner in owners):
        text = f"PVC {claim_key(claim)} was not created for pod {task.key} (pod is not owner)"
        raise UnreadableVolumesError(text, missing=False)
