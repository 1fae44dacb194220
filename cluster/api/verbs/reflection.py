"""Storing what another cluster has: as it is there, without admission, defaults or any judgement."""

from __future__ import annotations

from pumice.cluster.api import refusals
from pumice.cluster.api.registry import Registry
from pumice.cluster.api.tables import own
from pumice.core.messages.reflection import Reflect
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object
from pumice.storage.codec import unpack


class Reflection:
    """Writes into the tables of the registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._tables = registry.tables

    def reflect(self, request: Reflect) -> Accepted | Refused:
        """Store what another cluster has, or remove what it no longer has."""
        if self._registry.kinds.by_key(request.kind) is None:
            return refusals.unknown_kind(request.kind)
        tables, key = self._tables, (request.kind, request.namespace, request.name)
        record = tables.get(key)
        if not request.blob:
            if record is not None:
                tables.remove(key, own(record), request.user)
            return Accepted(tables.revision)
        obj: Object = unpack(request.blob)
        if record is not None and record.uid != obj["metadata"]["uid"]:
            tables.remove(key, own(record), request.user)
        elif record is not None and _same(obj, tables.seen(record)):
            return Accepted(tables.revision)
        blob = tables.put(key, obj, request.user)
        return Accepted(tables.revision, blob)


def _same(given: Object, stored: Object) -> bool:
    """But for the resourceVersion, which is another in each cluster."""
    given["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
    return given == stored
