"""Storing what another cluster has: as it is there, without admission, defaults or any judgement."""

from __future__ import annotations

from msgspec.structs import replace

from pumice.cluster.api import refusals
from pumice.cluster.api.registry import Registry
from pumice.cluster.api.tables import own
from pumice.cluster.api.verbs.changes import Changes
from pumice.cluster.api.verbs.requests import RequestMoment
from pumice.cluster.kube.statuses import reported
from pumice.core.messages.commands import Reflect, ReportStatus
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object
from pumice.storage.codec import unpack

# --- What the scheduler says of pods, PodGroups and queues, laid over the statuses they have by then. As with a
# patch, nobody reads an object before: it is the newest that is changed, and what is there already is not written
# again.


class Reporting:
    """Writes reported statuses."""

    def __init__(self, registry: Registry, changes: Changes) -> None:
        self._registry = registry
        self._changes = changes

    def report(self, request: ReportStatus, moment: RequestMoment) -> Accepted | Refused:
        """Lay it over the newest status; 409, and its revision, when that has changed since what the reporter knew.

        The answer does not bring the object along: reports are many, and who reports watches.
        """
        found = self._registry.for_status(request.kind, request.namespace, request.name)
        if isinstance(found, Refused):
            return found
        revision = found.record.revision
        if revision > request.as_of:
            return replace(refusals.modified(found.kind, request.name), revision=revision)
        after = reported(found.obj, request.wanted, moment.text, request.cycle)
        written = self._changes.write_status(found, after, moment, typed=True) if after is not None else b""
        return written if isinstance(written, Refused) else Accepted(self._registry.tables.revision)


# ---


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
