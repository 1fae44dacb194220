# SPDX-License-Identifier: Apache-2.0
"""The origin of an object: an author asks for a new one, or a cluster had it.

What may exist and what may be created are two rules. A cluster holds objects that its admission would refuse today: a
closed queue, PodGroups in it, a child below a queue with pods, pods that have ended. A dump of it, a fork of a recorded
state or a backup is loaded as it is (`LoadObject`); what an author wrote is created (`Create`), by all rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pumice.cluster.api.kinds import kind_of
from pumice.cluster.api.metadata import is_uid
from pumice.cluster.api.verbs.deletion import FOREGROUND
from pumice.cluster.api.verbs.requests import SUBMIT
from pumice.core.messages.commands import Create, Delete, LoadObject
from pumice.core.objects.metadata import Object, is_list, is_mapping, section
from pumice.storage import codec

LOAD: Final = "load"
"""The user of objects that are loaded at the start, from another cluster or a recorded state."""
OF_SERVERS: Final = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields")
"""Metadata that only a server writes."""


def is_recorded(obj: Object) -> bool:
    """Return whether a cluster had the object: it has a uid, a resourceVersion, or a status that only a server writes.

    A status that says nothing (`status: {}`, as generators of manifests write it) does not count, nor that of a Node,
    which authors write themselves: it says how much there is.
    """
    meta: Object = section(obj, "metadata")
    if is_uid(meta.get("uid")) or (isinstance(meta.get("resourceVersion"), str) and meta["resourceVersion"]):
        return True
    return obj.get("kind") != "Node" and _says_something(obj.get("status"))


def _says_something(value: object) -> bool:
    if is_mapping(value):
        return any(map(_says_something, value.values()))
    if is_list(value):
        return any(map(_says_something, value))
    return bool(value)


def entering(obj: Object) -> Create | LoadObject:
    """Return the request by which an object comes in at the start."""
    blob = codec.pack(obj)
    return LoadObject(blob, user=LOAD) if is_recorded(obj) else Create(blob, user=SUBMIT)


def as_new(obj: Object) -> Object:
    """Return the object as an author would hand it in: without what only a server writes."""
    made = {part: value for part, value in obj.items() if part != "status" or obj.get("kind") == "Node"}
    meta = {name: value for name, value in section(obj, "metadata").items() if name not in OF_SERVERS}
    return {**made, "metadata": meta}


def unfinished(objects: Iterable[Object]) -> list[Delete]:
    """Return the deletions that go on once all objects are in: those that a cluster had begun.

    A namespace empties itself, an owner waits for its dependents, a pod that runs nowhere goes immediately; one that
    runs is its node agent's to end. All of them must be there first.
    """
    return [_deletion(obj) for obj in objects if section(obj, "metadata").get("deletionTimestamp") and is_recorded(obj)]


def _deletion(obj: Object) -> Delete:
    meta = obj["metadata"]
    kind = kind_of(obj.get("apiVersion"), obj.get("kind"))
    key = kind.key if kind is not None else str(obj["kind"])
    first = "Foreground" if FOREGROUND in (meta.get("finalizers") or ()) else ""
    namespace = str(meta.get("namespace") or "")
    return Delete(key, namespace, str(meta["name"]), uid=meta.get("uid"), user=LOAD, propagation=first)
