# SPDX-License-Identifier: Apache-2.0
"""Objects that a cluster had: stored as they were there, without the checks of new objects."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from pumice.cluster.api import refusals
from pumice.cluster.api.admission import Admission, admission_of
from pumice.cluster.api.admission.namespaces import is_missing
from pumice.cluster.api.checks import loaded_problems
from pumice.cluster.api.definitions.volcano import fill_in_defaults
from pumice.cluster.api.kinds import Kind
from pumice.cluster.api.metadata import WITHOUT_GENERATION, is_uid
from pumice.cluster.api.object_tables import own, owner_uids
from pumice.cluster.api.refusals import Cause, invalid_value, required
from pumice.cluster.api.registry import Registry
from pumice.cluster.api.verbs.changes import POD, Changes
from pumice.cluster.api.verbs.creation import Creation
from pumice.cluster.api.verbs.deletion import Deletion
from pumice.cluster.api.verbs.requests import SUBMIT, RequestMoment, decoded, may_hold_null, name_of
from pumice.cluster.kube.statuses import reported
from pumice.config.errors import RequestError
from pumice.core.messages.commands import Reflect, ReportStatus
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object, parse_time
from pumice.core.objects.parts import WATCHED
from pumice.core.state.view import View
from pumice.storage.codec import unpack

# --- Statuses that the scheduler reports, laid over those that objects have by then
# As with a patch, the caller reads no object before: the newest one is changed, and what is there already is not
# written again.


class Reporting:
    """Writes reported statuses."""

    def __init__(self, registry: Registry, changes: Changes) -> None:
        self._registry = registry
        self._changes = changes

    def report(self, request: ReportStatus, moment: RequestMoment) -> Accepted | Refused:
        """Lay the report over the newest status; 409, with its revision, when that has changed since the one that the
        reporter knew.

        The answer does not bring the object along: reports are many, and their authors watch.
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


# --- Reflection: objects of another cluster, stored without any judgement


class Reflection:
    """Writes into the tables of the registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._tables = registry.tables

    def reflect(self, request: Reflect) -> Accepted | Refused:
        """Store an object of another cluster, or remove one that it no longer has."""
        if self._registry.kinds.by_key(request.kind) is None:
            return refusals.unknown_kind(request.kind)
        tables, key = self._tables, (request.kind, request.namespace, request.name)
        record = tables.get(key)
        if not request.blob:
            if record is not None:
                tables.remove(key, own(record), request.user)
            return Accepted(tables.revision)
        obj: Object = unpack(request.blob)
        # another object under this name: watchers have to hear that the former one has gone
        if record is not None and record.uid != obj["metadata"]["uid"]:
            tables.remove(key, own(record), request.user)
        elif record is not None and _same(obj, tables.seen(record)):
            return Accepted(tables.revision)
        blob = tables.put(key, obj, request.user)
        return Accepted(tables.revision, blob)


def _same(given: Object, stored: Object) -> bool:
    """Compare all but the resourceVersion, which differs between clusters."""
    given["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
    return given == stored


# --- Objects of a dump or a manifest, checked as far as readers need it

_OF_THE_OTHER: Final = ("resourceVersion", "selfLink", "managedFields")
"""Metadata that a server writes about its own copy of an object."""
_TIMES: Final = ("creationTimestamp", "deletionTimestamp")
_WATCHED: Final = frozenset(WATCHED)


class Loading:
    """Stores objects with the identity, age and status that they had in their cluster."""

    def __init__(self, registry: Registry, creation: Creation, deletion: Deletion) -> None:
        self._registry = registry
        self._tables = registry.tables
        self._creation = creation
        self._deletion = deletion
        self._reader = View()

    def load(self, blob: bytes, moment: RequestMoment) -> Accepted | Refused:
        """Store the object with its identity, age, status and deletion."""
        obj = decoded(blob)
        if isinstance(obj, Refused):
            return obj
        kind = self._registry.kinds.by_type(obj.get("apiVersion"), obj.get("kind"))
        if kind is None:
            return refusals.unknown_kind(obj.get("kind"), obj.get("apiVersion"))
        obj["apiVersion"] = kind.api_version
        if causes := loaded_problems(kind, obj, nulls=may_hold_null(blob)) or identity_problems(obj):
            return refusals.invalid(kind, name_of(obj), causes)
        key = kind.key, settle_namespace(kind, obj), obj["metadata"]["name"]
        if key[1] and self._registry.served and is_missing(self._tables, key[1]):
            asked = RequestMoment(moment.now, SUBMIT)
            if refused := self._creation.make_namespace(key[1], asked):
                return refused
        if self._tables.get(key) is not None:
            return refusals.already_exists(kind, key[2])
        admission = admission_of(kind.key)
        given = obj["metadata"].get("uid")
        if kind.is_custom and not kind.defined:
            fill_in_defaults(obj, kind)
        self._fill_in(obj, admission, moment)
        if causes := self._unreadable(kind, obj, admission):
            return refusals.invalid(kind, key[2], causes)
        if admission.settle is not None and (admission.indispensable is not None or obj["metadata"]["uid"] != given):
            admission.settle(obj, self._registry.lookup, moment.text)
        stored = self._tables.put_new(key, obj, moment.user)
        if "ownerReferences" in obj["metadata"] and any(map(self._tables.was_removed, owner_uids(obj))):
            self._deletion.orphaned(key, moment)
        return Accepted(self._tables.revision, stored)

    def _fill_in(self, obj: Object, admission: Admission, moment: RequestMoment) -> None:
        meta: Object = obj["metadata"]
        for name in _OF_THE_OTHER:
            meta.pop(name, None)
        meta["uid"] = self._creation.uid_for(meta["uid"] if is_uid(meta.get("uid")) else "")
        meta["creationTimestamp"] = meta.get("creationTimestamp") or moment.text
        if str(obj.get("kind")) not in WITHOUT_GENERATION:
            meta.setdefault("generation", 1)
        fill_loaded(obj, admission, self._registry.lookup)

    def _unreadable(self, kind: Kind, obj: Object, admission: Admission) -> list[Cause]:
        """Say what keeps readers from making sense of it; the scheduler's view is the one that reads the most."""
        if admission.indispensable is not None:
            return admission.indispensable(obj, self._registry.lookup)
        if kind.key not in _WATCHED:
            return []
        try:
            # Counted are only pods with volumes, which have more to read.
            if kind.key == POD and not self._reader.read_pod(obj).template.volumes:
                return []
            self._reader.apply("ADDED", obj)
        except RequestError as error:
            # one that has failed half way may hold half of the object
            self._reader = View()
            return [Cause("", "FieldValueInvalid", f"Invalid value: {error}")]
        # it was only tried: the reader must not grow with the cluster
        self._reader.apply("DELETED", obj)
        return []


def fill_loaded(obj: Object, admission: Admission, lookup: Any) -> None:
    """Fill in missing fields of an existing object; its own fields stay."""
    status: Object = obj.get("status") or {}
    if admission.initial_status is not None:
        admission.initial_status(obj)
        obj["status"] = {**obj.get("status", {}), **status}
    fill_in = admission.fill_loaded or admission.default
    if fill_in is not None:
        fill_in(obj, lookup)
        if status:
            obj["status"] = {**obj.get("status", {}), **status}


def settle_namespace(kind: Kind, obj: Object) -> str:
    """Give the object the namespace that its kind has, and return it."""
    meta: Object = obj["metadata"]
    if kind.namespaced:
        meta["namespace"] = meta.get("namespace") or "default"
    else:
        meta.pop("namespace", None)
    return meta.get("namespace") or ""


def identity_problems(obj: Object) -> list[Cause]:
    """Return the problems of an existing object's name and times."""
    meta: Object = obj.get("metadata") or {}
    if not meta.get("name"):
        return [required("metadata.name", "an object that exists has a name")]
    found: list[Cause] = []
    for name in _TIMES:
        try:
            parse_time(meta.get(name))
        except (ValueError, TypeError, AttributeError):
            why = "expected a time such as 2026-01-31T12:00:00Z"
            found.append(invalid_value(f"metadata.{name}", meta[name], why))
    return found
