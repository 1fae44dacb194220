# SPDX-License-Identifier: Apache-2.0
"""metadata: the fields that a client may write, those that the server stamps, and those that an update may not
change.
"""

from __future__ import annotations

import re
from typing import Final

from pumice.cluster.api.kinds import Kind
from pumice.cluster.api.names import (
    annotation_key_problem,
    label_value_problem,
    name_problem,
    qualified_name_problem,
    subdomain_problem,
)
from pumice.cluster.api.refusals import Cause, forbidden_field, invalid_value, required
from pumice.core.objects.metadata import Object

_SERVERS: Final = {
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
}
_KEPT: Final = (
    "name",
    "namespace",
    "uid",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
)
WITHOUT_GENERATION: Final = frozenset(("ConfigMap", "Secret"))
"""Kinds whose changes Kubernetes does not count."""
# Their status strategies call `ResetObjectMetaForStatus`, which takes all of the old metadata.
_STATUS_ALONE: Final = frozenset(
    ("CustomResourceDefinition", "ResourceClaim", "ValidatingAdmissionPolicy", "VolumeAttachment")
)
# `deploymentStatusStrategy` keeps labels; `podStatusStrategy` keeps ownerReferences, which old kubelets corrupt.
_KEPT_BESIDE: Final = {"Deployment": ("labels",), "Pod": ("ownerReferences",)}
# apimachinery's `TotalAnnotationSizeLimitB` (`pkg/api/validation/objectmeta.go`).
_ANNOTATIONS_MOST: Final = 256 * 1024
_UID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


def settle(obj: Object, kind: Kind) -> Object:
    """Make metadata a client's: without what only the server sets, with the namespace its kind has."""
    meta: Object = obj.get("metadata") or {}
    _drop_servers(meta)
    if kind.namespaced:
        meta["namespace"] = meta.get("namespace") or "default"
    else:
        meta.pop("namespace", None)
    obj["metadata"] = meta
    return meta


def is_uid(text: object) -> bool:
    """Return whether a value can be the uid of an object."""
    return isinstance(text, str) and _UID.fullmatch(text) is not None


def stamp(meta: Object, uid: str, created: str, *, generation: bool = True) -> None:
    """Make it the server's: the identity of a new object. `generation`: whether its kind counts changes of its spec."""
    meta["uid"] = uid
    meta["creationTimestamp"] = created
    if generation:
        meta["generation"] = 1


def keep(meta: Object, old: Object) -> None:
    """Carry over the fields that an update may not change."""
    _drop_servers(meta)
    for name in _KEPT:
        if name in old:
            meta[name] = old[name]


def beside_status(kind: Kind, given: Object, old: Object) -> Object:
    """Return the metadata after a change of the status: for Kubernetes' own kinds with a client's labels, annotations
    and finalizers, except those that the kind keeps (source: the status strategies of `pkg/registry`).
    """
    if kind.is_custom or kind.key in _STATUS_ALONE:
        return dict(old)
    made = dict(given)
    keep(made, old)
    # `keep` has dropped it. Without it no object would equal the stored one, and each repeated status would be written.
    made["resourceVersion"] = old["resourceVersion"]
    for name in _KEPT_BESIDE.get(kind.key, ()):
        made.pop(name, None)
        if name in old:
            made[name] = old[name]
    return made


def _drop_servers(meta: Object) -> None:
    # most objects bring none of them: one look instead of eight
    if not _SERVERS.isdisjoint(meta):
        for name in _SERVERS:
            meta.pop(name, None)


def problems(meta: Object, kind: Kind) -> list[Cause]:
    """Return the names, labels and annotations of an object of a kind that Kubernetes would not take."""
    name: str = meta.get("name") or ""
    if not name:
        return [required("metadata.name", "name or generateName is required")]
    found: list[Cause] = []
    if problem := name_problem(kind.key, name):
        found.append(invalid_value("metadata.name", name, problem))
    if (namespace := meta.get("namespace")) and (problem := subdomain_problem(namespace)):
        found.append(invalid_value("metadata.namespace", namespace, problem))
    if labels := meta.get("labels"):
        found += label_problems(labels, "metadata.labels")
    if annotations := meta.get("annotations"):
        found += _annotation_problems(annotations)
    for finalizer in meta.get("finalizers") or ():
        if problem := qualified_name_problem(finalizer):
            found.append(invalid_value("metadata.finalizers", finalizer, problem))
    return found


def change_problems(meta: Object, old: Object) -> list[Cause]:
    """Return the problems of changed metadata: an update must not hold up a deletion that is under way."""
    if "deletionTimestamp" not in old:
        return []
    before = set(old.get("finalizers") or ())
    new = [name for name in meta.get("finalizers") or () if name not in before]
    if not new:
        return []
    why = "no new finalizers can be added if the object is being deleted, found new finalizers"
    return [forbidden_field("metadata.finalizers", f"{why}: {', '.join(map(str, new))}")]


def label_problems(labels: dict[str, str], path: str) -> list[Cause]:
    """Return the keys and values that are not valid labels."""
    found: list[Cause] = []
    for key, value in labels.items():
        if problem := qualified_name_problem(key):
            found.append(invalid_value(path, key, problem))
        if problem := label_value_problem(value):
            found.append(invalid_value(path, value, problem))
    return found


def _annotation_problems(annotations: dict[str, str]) -> list[Cause]:
    where = "metadata.annotations"
    found = [invalid_value(where, key, why) for key in annotations if (why := annotation_key_problem(key))]
    if sum(map(len, annotations)) + sum(map(len, annotations.values())) > _ANNOTATIONS_MOST:
        found.append(forbidden_field(where, f"may not be more than {_ANNOTATIONS_MOST} bytes"))
    return found
