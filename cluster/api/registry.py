"""Context of a request: the tables, the kinds that exist now, and the state that admission may read."""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec import Struct

from pumice.cluster.api import refusals
from pumice.cluster.api.admission import ADMISSION
from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.definitions.pruning import prune, settle
from pumice.cluster.api.definitions.rules import change_problems, creation_problems
from pumice.cluster.api.definitions.values import value_problems
from pumice.cluster.api.definitions.volcano import schema_of
from pumice.cluster.api.definitions.work import TooDearError, Work
from pumice.cluster.api.kind_table import KindTable
from pumice.cluster.api.kinds import Kind
from pumice.cluster.api.object_tables import Key, ObjectRecord, ObjectTables, own
from pumice.cluster.api.refusals import Cause
from pumice.cluster.api.schema.field_types import status_problems, type_problems
from pumice.cluster.api.schema.wrong_fields import settle_quantities
from pumice.cluster.api.verbs.requests import drop_nulls
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object, section
from pumice.core.objects.soundness import unsound
from pumice.storage.codec import pack

# --- The lookup of admission


class TablesLookup:
    """`Lookup` over the tables. Objects handed out are shared: the reader must not change them."""

    def __init__(self, tables: ObjectTables) -> None:
        self._tables = tables
        self._classes_at = -1
        self._default_class: Object | None = None

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """An object, or None."""
        return self._tables.shared((kind, namespace, name))

    def all(self, kind: str, namespace: str | None = None) -> list[Object]:
        """All objects of a kind, or those of a namespace, by namespace and name."""
        found = self._tables.of_kind(kind, namespace)
        return [obj for name, _ in found if (obj := self._tables.shared((kind, *name))) is not None] if found else []

    def queues(self) -> list[Object]:
        """All queues, by name."""
        names = sorted(name for _, name in self._tables.names("Queue"))
        return [queue for name in names if (queue := self._tables.shared(("Queue", "", name))) is not None]

    def children(self, parent: str) -> list[Object]:
        """The queues whose parent it is."""
        return [queue for queue in self.queues() if section(queue, "spec").get("parent") == parent]

    def default_priority_class(self) -> Object | None:
        """The PriorityClass that is the global default: the lowest value when there are several, as in Kubernetes."""
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
    return priority_class.get("value", 0), priority_class["metadata"]["name"]


_DEFINITION: Final = "CustomResourceDefinition"


class FoundObject(NamedTuple):
    """An object that is there; `obj` is a copy, unless it says otherwise where it comes from."""

    key: Key
    kind: Kind
    obj: Object


class FoundRecord(Struct):
    """Record whose status alone is to change: the rest of `obj` is read-only.

    Unless it is settled `whole`: any write may change any part of it, to what a schema says.
    """

    key: Key
    kind: Kind
    record: ObjectRecord
    obj: Object
    whole: bool


class Registry:
    """`seed` goes into uids and generated names; `strict`: see `Store`."""

    def __init__(self, tables: ObjectTables, *, seed: int = 0, strict: bool = False) -> None:
        self.tables = tables
        self.seed = seed
        self.strict = strict
        self.lookup: Lookup = TablesLookup(tables)
        self._kinds = KindTable()
        self._defined_at = 0

    @property
    def kinds(self) -> KindTable:
        """The kinds of this moment: definitions come and go like any object."""
        # read again only after a change: this is asked at every request
        if self.tables.kind_revisions[_DEFINITION] != self._defined_at:
            self._read_definitions()
        return self._kinds

    def _read_definitions(self) -> None:
        self._defined_at = self.tables.kind_revisions[_DEFINITION]
        self._kinds = KindTable()
        for namespace, name in sorted(self.tables.names(_DEFINITION)):
            definition = self.tables.shared((_DEFINITION, namespace, name))
            if definition is not None:
                self._kinds.add_definition(definition)

    def existing(self, key: str, namespace: str, name: str) -> FoundObject | Refused:
        """The object of a kind's key, or the refusal that says what is missing."""
        kind = self.kinds.by_key(key)
        if kind is None:
            return refusals.unknown_kind(key)
        place = (key, namespace if kind.namespaced else "", name)
        obj = self.tables.read(place)
        return refusals.not_found(kind, name) if obj is None else FoundObject(place, kind, obj)

    def for_status(self, key: str, namespace: str, name: str) -> FoundRecord | Refused:
        """`existing` for a change of the status alone."""
        kind = self.kinds.by_key(key)
        if kind is None:
            return refusals.unknown_kind(key)
        place = (key, namespace if kind.namespaced else "", name)
        record = self.tables.get(place)
        if record is None:
            return refusals.not_found(kind, name)
        whole = self.strict or kind.defined
        return FoundRecord(place, kind, record, own(record) if whole else self.tables.seen(record), whole)

    def settle_shape(self, kind: Kind, obj: Object, *, nulls: bool = True, strict: bool | None = None) -> list[Cause]:
        """Check the types of an object's fields; one of a defined kind is pruned and defaulted by its schema.

        `nulls`: there may be some in it, which are absent fields where the schema does not allow them. `strict`: a
        stranger wrote the object; None: as all that comes into this store.
        """
        strict = self.strict if strict is None else strict
        if strict and (problem := unsound(obj)):
            return [Cause("", "FieldValueInvalid", f"Invalid value: {problem}")]
        schema = self.kinds.schema(kind.key) if kind.defined else None
        if schema is None and nulls:
            drop_nulls(obj)
        if causes := type_problems(kind.group, kind.version, kind.kind, obj):
            return causes
        if schema is None:
            if strict and not kind.is_custom:
                settle_quantities(obj, kind.group, kind.version, kind.kind)
            return self._settle_volcanos(kind, obj) if strict else []
        prune(obj, schema)
        return _settled(obj, schema)

    def settle_loaded(self, kind: Kind, obj: Object, *, nulls: bool) -> list[Cause]:
        """Say what in an object that exists elsewhere no reader here could make sense of; nulls are absent fields."""
        if problem := unsound(obj):
            return [Cause("", "FieldValueInvalid", f"Invalid value: {problem}")]
        if nulls and not kind.defined:
            drop_nulls(obj)
        return type_problems(kind.group, kind.version, kind.kind, obj)

    def settle_status(self, found: FoundRecord, new: Object, *, nulls: bool, typed: bool) -> list[Cause]:
        """`settle_shape` when nothing but the status has changed: what has not was settled when it was written.

        `nulls`: there may be some in the status; `typed`: of what is new in it the types are known already.
        """
        if found.whole:
            return self.settle_shape(found.kind, new, nulls=nulls)
        if typed:
            return []
        if nulls:
            drop_nulls(new["status"])
        return status_problems(found.kind.key, new["status"])

    def _settle_volcanos(self, kind: Kind, obj: Object) -> list[Cause]:
        """Apply the defaults and rules of Volcano's own definitions, at every write. A kind with rules in admission is
        judged after its own defaults (`definition_problems`).
        """
        schema = schema_of(kind.group, kind.version, kind.kind)
        if schema is None:
            return []
        return _settled(obj, schema, judge=kind.key not in ADMISSION)

    def rules_of_creation(self, kind: Kind, new: Object) -> list[Cause]:
        """Return what the rules of a defined kind about changes say about a new object."""
        schema = self.kinds.schema(kind.key) if kind.defined else None
        if schema is None:
            return []
        try:
            return creation_problems(new, schema, Work(new))
        except TooDearError as error:
            return [_too_dear(error)]

    def rules_of_change(self, kind: Kind, new: Object, old: Object) -> list[Cause]:
        """Return the problems that the rules of a defined kind find in a change."""
        schema = self.kinds.schema(kind.key) if kind.defined else None
        if schema is None:
            return []
        try:
            return change_problems(new, old, schema, Work(new))
        except TooDearError as error:
            return [_too_dear(error)]

    def definition_problems(self, kind: Kind, obj: Object, *, strict: bool | None = None) -> list[Cause]:
        """Return the problems that Volcano's own definition finds in an object that admission has filled in; `strict`:
        as above.
        """
        if not (self.strict if strict is None else strict) or kind.key not in ADMISSION:
            return []
        schema = schema_of(kind.group, kind.version, kind.kind)
        return _judged(obj, schema, Work(obj)) if schema is not None else []

    def unchanged(self, key: Key) -> Accepted:
        """The answer of a request that changed nothing."""
        record = self.tables.get(key)
        return Accepted(self.tables.revision, b"" if record is None else record.blob)

    def written(self, key: Key, obj: Object, user: str, *, dry_run: bool) -> Accepted:
        """Store an object, which must not change afterwards, or (dry run) return it unstored."""
        if dry_run:
            return Accepted(self.tables.revision, pack(obj))
        blob = self.tables.put(key, obj, user)
        return Accepted(self.tables.revision, blob)


def _settled(obj: Object, schema: Object, *, judge: bool = True) -> list[Cause]:
    """Fill in what a schema says, and see whether all is as it says."""
    work = Work(obj)
    try:
        settle(obj, schema, work)
    except TooDearError as error:
        return [_too_dear(error)]
    return _judged(obj, schema, work) if judge else []


def _judged(obj: Object, schema: Object, work: Work) -> list[Cause]:
    try:
        return value_problems(obj, schema, work)
    except TooDearError as error:
        return [_too_dear(error)]


def _too_dear(error: TooDearError) -> Cause:
    return Cause("", "FieldValueInvalid", f"Invalid value: {error}")
