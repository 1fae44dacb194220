# SPDX-License-Identifier: Apache-2.0
"""Context of a request: the tables, the existing kinds, and the state that admission may read."""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec import Struct

from pumice.cluster.api import refusals
from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.kind_table import KindTable
from pumice.cluster.api.kinds import Kind
from pumice.cluster.api.object_tables import Key, ObjectRecord, ObjectTables, own
from pumice.cluster.api.templates import Templates
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object, section
from pumice.storage.codec import pack

# --- The lookup of admission


class TablesLookup:
    """`Lookup` over the tables. Its objects are shared: the reader must not change them."""

    def __init__(self, tables: ObjectTables) -> None:
        self._tables = tables
        self._classes_at = -1
        self._default_class: Object | None = None

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """Return an object, or None."""
        return self._tables.shared((kind, namespace, name))

    def all(self, kind: str, namespace: str | None = None) -> list[Object]:
        """Return all objects of a kind, or those of a namespace, by namespace and name."""
        found = self._tables.of_kind(kind, namespace)
        return [obj for name, _ in found if (obj := self._tables.shared((kind, *name))) is not None] if found else []

    def queues(self) -> list[Object]:
        """Return all queues, by name."""
        # the tables give names by arrival, which must not decide which of two problems is reported
        names = sorted(name for _, name in self._tables.names("Queue"))
        return [queue for name in names if (queue := self._tables.shared(("Queue", "", name))) is not None]

    def children(self, parent: str) -> list[Object]:
        """Return the queues that have it as their parent."""
        return [queue for queue in self.queues() if section(queue, "spec").get("parent") == parent]

    def default_priority_class(self) -> Object | None:
        """Return the PriorityClass that is the global default, with the lowest value when there are several, as in
        Kubernetes.
        """
        revision = self._tables.kind_revisions["PriorityClass"]
        if revision != self._classes_at:
            # remembered until a class changes: every new pod asks for it
            self._classes_at = revision
            self._default_class = self._find_default_class()
        return self._default_class

    def _find_default_class(self) -> Object | None:
        names = [name for _, name in self._tables.names("PriorityClass")]
        classes = [found for name in names if (found := self.get("PriorityClass", "", name)) is not None]
        defaults = [found for found in classes if found.get("globalDefault")]
        return min(defaults, key=_value_and_name, default=None)


def _value_and_name(priority_class: Object) -> tuple[int, str]:
    # the name decides between equal values, which Kubernetes leaves to the order of its cache
    return priority_class.get("value", 0), priority_class["metadata"]["name"]


_DEFINITION: Final = "CustomResourceDefinition"


class FoundObject(NamedTuple):
    """An existing object; `obj` is a copy, unless its source says otherwise."""

    key: Key
    kind: Kind
    obj: Object


class FoundRecord(Struct):
    """A record whose status alone will change: the rest of `obj` is read-only.

    Unless it is settled `whole`: any write may change any part of it, to what a schema says.
    """

    key: Key
    kind: Kind
    record: ObjectRecord
    obj: Object
    whole: bool


class Registry:
    """The registry. `seed` goes into uids and generated names; `served`: see `Store`."""

    def __init__(self, tables: ObjectTables, *, seed: int = 0, served: bool = False) -> None:
        self.tables = tables
        self.seed = seed
        self.served = served
        self.lookup: Lookup = TablesLookup(tables)
        self.templates = Templates(tables)
        self._kinds = KindTable(installable=served)
        self._defined_at = 0

    @property
    def kinds(self) -> KindTable:
        """Return the present kinds: definitions come and go like any object."""
        # read again only after a change: this is asked at every request
        if self.tables.kind_revisions[_DEFINITION] != self._defined_at:
            self._read_definitions()
        return self._kinds

    def _read_definitions(self) -> None:
        self._defined_at = self.tables.kind_revisions[_DEFINITION]
        # once installed, always: from then on a Volcano kind without a definition is withheld
        self._kinds = KindTable(installable=self.served, installed=self._kinds.installed)
        # by name: of two definitions that claim the same kind the same one wins after a restart
        for namespace, name in sorted(self.tables.names(_DEFINITION)):
            definition = self.tables.shared((_DEFINITION, namespace, name))
            if definition is not None:
                self._kinds.add_definition(definition)

    def existing(self, key: str, namespace: str, name: str) -> FoundObject | Refused:
        """Return the object of a kind's key, or the refusal that names what is missing."""
        kind = self.kinds.by_key(key)
        if kind is None:
            return refusals.unknown_kind(key)
        place = (key, namespace if kind.namespaced else "", name)
        obj = self.tables.read(place)
        return refusals.not_found(kind, name) if obj is None else FoundObject(place, kind, obj)

    def for_status(self, key: str, namespace: str, name: str) -> FoundRecord | Refused:
        """Return `existing` for a change of the status alone."""
        kind = self.kinds.by_key(key)
        if kind is None:
            return refusals.unknown_kind(key)
        place = (key, namespace if kind.namespaced else "", name)
        record = self.tables.get(place)
        if record is None:
            return refusals.not_found(kind, name)
        whole = kind.defined
        return FoundRecord(place, kind, record, own(record) if whole else self.tables.seen(record), whole)

    def is_ending(self, kind: Kind) -> bool:
        """Return whether the definition of a kind is being deleted."""
        definition = self.tables.shared((_DEFINITION, "", kind.resource))
        return definition is not None and "deletionTimestamp" in definition["metadata"]

    def unchanged(self, key: Key) -> Accepted:
        """Return the answer of a request that changed nothing."""
        record = self.tables.get(key)
        return Accepted(self.tables.revision, b"" if record is None else record.blob)

    def written(self, key: Key, obj: Object, user: str, *, dry_run: bool) -> Accepted:
        """Store an object, which must not change afterwards, or (dry run) return it unstored."""
        if dry_run:
            return Accepted(self.tables.revision, pack(obj))
        blob = self.tables.put(key, obj, user)
        return Accepted(self.tables.revision, blob)
