# SPDX-License-Identifier: Apache-2.0
"""Changes read from a cluster, one object at a time, without irrelevant fields."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from pumice.core.objects.metadata import Object, section
from pumice.storage import codec

if TYPE_CHECKING:
    from pumice.actors.real_clusters.mirror.redaction import Redaction

Key = tuple[str, str, str]
"""Kind, namespace ("" for cluster-wide objects) and name."""

LEFT_OUT: Final = ("managedFields",)
"""Of the metadata: half of many an object, and no scheduler reads it."""
PRIVATE: Final = ("kubectl.kubernetes.io/last-applied-configuration",)
"""Annotations that hold a copy of what is left out elsewhere."""
PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")


class RemoteChange(NamedTuple):
    """A change. `blob` (MessagePack, a tenth of a dictionary): the present state, or when `gone` the last one; None for
    a deleted object whose last state was not seen.
    """

    kind: str
    namespace: str
    name: str
    blob: bytes | None
    gone: bool = False

    @property
    def obj(self) -> Object | None:
        """Return the object in the blob, which must not be changed."""
        return None if self.blob is None else _unpacked(self.blob)

    @property
    def key(self) -> Key:
        """Return the key of the changed object."""
        return self.kind, self.namespace, self.name


def change_of(kind: str, obj: Object, *, gone: bool = False, redaction: Redaction | None = None) -> RemoteChange:
    """Return the change of an object as a server shows it; `redaction` replaces names by pseudonyms."""
    kept = trimmed(kind, obj)
    if redaction is not None:
        kept = redaction.redacted(kind, kept)
    meta = section(kept, "metadata")
    return RemoteChange(kind, str(meta.get("namespace") or ""), str(meta["name"]), codec.pack(kept), gone)


# Readers of one change follow close upon each other; a larger cache would keep large objects alive.
@lru_cache(maxsize=8)
def _unpacked(blob: bytes) -> Object:
    """Return the unpacked object, kept for the readers that follow."""
    found: Object = codec.unpack(blob)
    return found


def trimmed(kind: str, obj: Object) -> Object:
    """Return a copy without the values of environments, headers of probes, hooks and attributes of volumes, which hold
    secrets, and without managedFields and the like; parts are shared.
    """
    meta = {key: value for key, value in section(obj, "metadata").items() if key not in LEFT_OUT}
    meta.setdefault("uid", f"{kind}/{meta['name']}")  # samples of metrics have none
    annotations = meta.get("annotations")
    if annotations:
        meta["annotations"] = {key: value for key, value in annotations.items() if key not in PRIVATE}
    found = {**obj, "metadata": meta}
    if kind == "Pod":
        found["spec"] = _pod_spec(section(obj, "spec"))
    elif kind == "Job":
        found["spec"] = _job_spec(section(obj, "spec"))
    elif kind == "PersistentVolume":
        found["spec"] = _volume(section(obj, "spec"))
    return found


def _pod_spec(spec: Object) -> Object:
    found = dict(spec)
    for name in CONTAINERS:
        if spec.get(name):
            found[name] = [_container(each) for each in spec[name]]
    if spec.get("volumes"):
        found["volumes"] = [_volume(each) for each in spec["volumes"]]
    return found


def _volume(volume: Object) -> Object:
    csi = volume.get("csi")
    return {**volume, "csi": _without(csi, "volumeAttributes")} if csi else volume


def _container(container: Object) -> Object:
    kept = _without(container, "lifecycle", "envFrom")
    for name in PROBES:
        if section(section(container, name), "httpGet").get("httpHeaders"):
            kept[name] = {**container[name], "httpGet": _without(container[name]["httpGet"], "httpHeaders")}
    if "env" in container or "envFrom" in container:
        kept["env"] = list(_names(container))
    return kept


def _without(fields: Object, *names: str) -> Object:
    return {key: value for key, value in fields.items() if key not in names}


def _names(container: Object) -> Iterator[Object]:
    return ({"name": each.get("name")} for each in container.get("env") or ())


def _job_spec(spec: Object) -> Object:
    tasks: list[Object] = spec.get("tasks") or []
    return {**spec, "tasks": [_task(each) for each in tasks]}


def _task(task: Object) -> Object:
    template = section(task, "template")
    return {**task, "template": {**template, "spec": _pod_spec(section(template, "spec"))}}
