# SPDX-License-Identifier: Apache-2.0
"""The tables of the store: objects as MessagePack by kind, namespace and name, and their owners.

Every change goes through `put` or `remove`: one revision, one entry in the log, one mutation for the journal.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, TypeVar

from msgspec import Struct

from pumice.cluster.api.watch import RevisionLog
from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import Object, section
from pumice.core.objects.parts import PARTS, KindParts
from pumice.storage.codec import repack, unpack
from pumice.storage.shared_objects import SharedObjects
from pumice.storage.truth import Truth

# --- Objects in order
# The sorted order is kept in short runs, so that neither a change nor a list ever sorts or shifts all of them.

Name = tuple[str, str]
"""Namespace ("" for cluster-wide objects) and name."""

T = TypeVar("T")

_RUN: Final = 1024
"""Names in a run at most; twice as many are split."""


# `gc=False`: there is one record for each object, and the garbage collector would walk through them all.
# A record cannot be part of a cycle.
class ObjectRecord(Struct, gc=False):
    """One object: its bytes, the revision that wrote them, its uid, and its labels (None: not read yet).

    `views`: what the watchers of each part of its kind see of it (`core.objects.parts`); None: as the bytes tell.
    """

    blob: bytes
    revision: int
    uid: str
    labels: dict[str, str] | None = None
    views: tuple[object, ...] | None = None


class Ordered:
    """Names and records. Iterators must not be kept across a change. `records` are read-only."""

    def __init__(self) -> None:
        self.records: dict[Name, ObjectRecord] = {}
        self._firsts: list[Name] = []
        self._names: list[list[Name]] = []
        self._runs: list[list[ObjectRecord]] = []

    def __len__(self) -> int:
        return len(self.records)

    def names(self) -> Iterator[Name]:
        """Return every present name, in order of arrival."""
        # a copy: the caller may change objects while it walks
        return iter(tuple(self.records))

    def items(self) -> Iterator[tuple[Name, ObjectRecord]]:
        """Return names and records, in order of arrival."""
        return iter(tuple(self.records.items()))

    def add(self, name: Name, record: ObjectRecord) -> bool:
        """Put a record under a name, and return whether the name is new; an existing one keeps its place."""
        known = name in self.records
        self.records[name] = record
        # without any run `_place` has none to point at
        if not self._firsts:
            self._firsts, self._names, self._runs = [name], [[name]], [[record]]
            return True
        run, at = self._place(name)
        # a changed object keeps its place, so nothing is shifted
        if known:
            self._runs[run][at] = record
            return False
        self._names[run].insert(at, name)
        self._runs[run].insert(at, record)
        # a name before all others goes into the first run, and becomes its first name
        self._firsts[run] = self._names[run][0]
        # split at twice the size: each half takes a thousand names more before it is split again
        if len(self._names[run]) >= 2 * _RUN:
            self._split(run)
        return True

    def pop(self, name: Name) -> ObjectRecord:
        """Remove a record. Raises KeyError when it does not exist."""
        record = self.records.pop(name)
        run, at = self._place(name)
        del self._names[run][at], self._runs[run][at]
        if self._names[run]:
            self._firsts[run] = self._names[run][0]
        else:
            # an empty run has no first name by which it could be found
            del self._firsts[run], self._names[run], self._runs[run]
        return record

    def sorted_names(self, namespace: str | None = None) -> Iterator[Name]:
        """Return names by namespace and name: all of them, or those of a namespace."""
        return chain.from_iterable(self._names[run][part] for run, part in self._parts(namespace))

    def sorted_records(self, namespace: str | None = None) -> Iterator[ObjectRecord]:
        """Return the records of these names, in the same order."""
        return chain.from_iterable(self._runs[run][part] for run, part in self._parts(namespace))

    def _place(self, name: Name) -> tuple[int, int]:
        """Return the run that a name belongs into, and the place in it."""
        run = max(bisect_right(self._firsts, name) - 1, 0)
        return run, bisect_left(self._names[run], name)

    def _split(self, run: int) -> None:
        _halve(self._names, run)
        _halve(self._runs, run)
        self._firsts.insert(run + 1, self._names[run + 1][0])

    def _parts(self, namespace: str | None) -> Iterator[tuple[int, slice]]:
        """Yield the runs that hold the objects of a namespace, and the slice of each."""
        if namespace is None or not self._firsts:
            yield from ((run, slice(None)) for run in range(len(self._firsts)))
            return
        # no namespace has a NUL in its name: this place is right behind the last of its objects
        first, last = self._place((namespace, "")), self._place((namespace + "\0", ""))
        for run in range(first[0], last[0] + 1):
            yield run, slice(first[1] if run == first[0] else 0, last[1] if run == last[0] else None)


def _halve(runs: list[list[T]], run: int) -> None:
    runs.insert(run + 1, runs[run][_RUN:])
    del runs[run][_RUN:]


Key = tuple[str, str, str]
"""Kind key, namespace ("" for cluster-wide objects), name."""

# Bounded, or each pod that ever ended would leave its uid here. An object that names an older owner is kept.
_REMEMBERED_OWNERS: Final = 10_000


class ObjectTables:
    """Objects, their revision, the log, the outbox. The tables check no request.

    `written`: where those find what was written, and the changes, who read their bytes.
    """

    def __init__(self, log: RevisionLog, written: SharedObjects) -> None:
        self.revision = 0
        self.log = log
        self.outbox: list[Mutation] = []
        self._written = written
        self._superseded: list[bytes] = []
        self._kinds: dict[str, Ordered] = {}
        self._in_namespace: dict[str, int] = {}
        self._keys: dict[str, Key] = {}
        # dictionaries as sets in order: a set of texts has another order in each process
        self._dependents: dict[str, dict[Key, None]] = {}
        self._removed_uids: dict[str, None] = {}
        self._parsed: dict[Key, tuple[int, Object]] = {}
        self.kind_revisions = defaultdict[str, int](int)
        """By kind, the revision of the last change to any of its objects: for reading only."""
        self._parts = _PartsByKind(PARTS)

    # --- reading

    def get(self, key: Key) -> ObjectRecord | None:
        """Return the record, or None."""
        # asked at every request: where nothing is raised a `try` costs less than a look before
        try:
            return self._kinds[key[0]].records.get(key[1:])
        except KeyError:  # no object of this kind yet
            return None

    def read(self, key: Key) -> Object | None:
        """Return a copy of the object that is the caller's to change, or None."""
        record = self.get(key)
        return None if record is None else own(record)

    def shared(self, key: Key) -> Object | None:
        """Return the object, decoded once a revision and shared, so read-only. For the few that admission reads
        often.
        """
        record = self.get(key)
        if record is None:
            return None
        known = self._parsed.get(key)
        if known is None or known[0] != record.revision:
            known = (record.revision, own(record))
            self._parsed[key] = known
        return known[1]

    def seen(self, record: ObjectRecord) -> Object:
        """Return the object of a record, shared with the watchers that read the same bytes, so read-only."""
        found: Object = self._written.unpack(record.blob)
        return found

    def of_kind(self, kind: str, namespace: str | None = None) -> list[tuple[Name, ObjectRecord]]:
        """Yield (namespace, name) and record of every object of a kind, in that order."""
        held = self._kinds.get(kind)
        if held is None:
            return []
        # a list: callers write while they walk, and iterators of `Ordered` do not survive a change
        return list(zip(held.sorted_names(namespace), held.sorted_records(namespace), strict=True))

    def blobs(self, kind: str, namespace: str | None = None) -> tuple[bytes, ...]:
        """Return every object of a kind, by namespace and name."""
        held = self._kinds.get(kind)
        # from a list: a generator would be resumed once for each object
        return () if held is None else tuple([record.blob for record in held.sorted_records(namespace)])

    def labels(self, record: ObjectRecord) -> dict[str, str]:
        """Return the labels of an object, known from its writing or looked up once."""
        if record.labels is None:
            record.labels = _labels_of(own(record))
        return record.labels

    def kinds(self) -> list[str]:
        """Return the keys of the kinds that have ever had an object."""
        return list(self._kinds)

    def in_namespace(self, namespace: str) -> int:
        """Return the number of objects in a namespace."""
        return self._in_namespace.get(namespace, 0)

    def names(self, kind: str) -> Iterator[tuple[str, str]]:
        """Return (namespace, name) of every object of a kind, oldest first."""
        held = self._kinds.get(kind)
        return iter(()) if held is None else held.names()

    def changed_since(self, revision: int) -> set[str]:
        """Return the kinds with a change after a revision."""
        return {kind for kind, at in self.kind_revisions.items() if at > revision}

    def count(self, kind: str | None = None) -> int:
        """Return the number of objects, of one kind or of all."""
        if kind is not None:
            return len(self._kinds.get(kind, ()))
        return sum(map(len, self._kinds.values()))

    def has(self, kinds: Iterable[str]) -> bool:
        """Return whether there is an object of one of these kinds."""
        held = self._kinds
        # Of most kinds there never is one, and this is asked in every turn.
        return not held.keys().isdisjoint(kinds) and any(map(self.count, kinds))

    def dependents(self, uid: str) -> list[Key]:
        """Return the objects whose ownerReferences name this uid, in the order in which they came."""
        return list(self._dependents.get(uid, ()))

    def key_of(self, uid: str) -> Key | None:
        """Return the object of this uid."""
        return self._keys.get(uid)

    def inside(self, namespace: str) -> list[Key]:
        """Return every object of a namespace, kind by kind."""
        return [(kind, *name) for kind, held in self._kinds.items() for name in held.sorted_names(namespace)]

    def was_removed(self, uid: str) -> bool:
        """Return whether an object of this uid existed and was removed (the latest ten thousand are remembered)."""
        return uid in self._removed_uids

    # --- writing

    def put(self, key: Key, obj: Object, user: str) -> bytes:
        """Write an object under the next revision, which it carries from then on, and return its bytes.

        It must not change afterwards: all readers of these bytes share it.
        """
        record = self.get(key)
        if record is None:
            return self.put_new(key, obj, user)
        # read before `replace`, which puts the new bytes into the same record
        before = owner_uids(self.seen(record))
        blob = self.replace(key, record, obj, user)
        self._reown(key, before, owner_uids(obj))
        # kept beside the bytes, so that a list by labels decodes no object
        record.labels = _labels_of(obj)
        return blob

    def put_again(self, key: Key, obj: Object, user: str) -> bytes:
        """Write an existing object that keeps its labels and owners; the caller may change it afterwards."""
        # without `SharedObjects.keep`: readers would share an object that the caller goes on to change
        return self._write(key, self._kinds[key[0]].records[key[1:]], obj, user)

    def replace(self, key: Key, record: ObjectRecord, obj: Object, user: str, *, status_only: bool = False) -> bytes:
        """Put an object that keeps its labels and owners (all but its status); `record` is the one of this key."""
        blob = self._write(key, record, obj, user, user if status_only else "")
        self._written.keep(blob, obj)
        return blob

    def put_new(self, key: Key, obj: Object, user: str) -> bytes:
        """Put an object that does not exist yet."""
        revision = self.revision + 1
        meta = obj["metadata"]
        meta["resourceVersion"] = str(revision)
        blob = repack(obj)
        self._written.keep(blob, obj)
        parts = self._parts[key[0]]
        views = parts.views(obj)
        self._add(key, ObjectRecord(blob, revision, meta["uid"], _labels_of(obj), views))
        self._own(key, owner_uids(obj))
        self._changed("ADDED", key, blob, user, parts.concerned(parts.unseen, views))
        return blob

    def _write(self, key: Key, record: ObjectRecord, obj: Object, user: str, status_by: str = "") -> bytes:
        revision = self.revision + 1
        obj["metadata"]["resourceVersion"] = str(revision)
        blob = repack(obj)
        parts = self._parts[key[0]]
        before = parts.views(own(record)) if record.views is None else record.views
        # a write of the status alone cannot change views that do not depend on it
        views = before if status_by and parts.blind else parts.views(obj)
        concerned = parts.concerned(before, views, status_by)
        self._superseded.append(record.blob)
        record.blob, record.revision, record.views = blob, revision, views
        self._changed("MODIFIED", key, blob, user, concerned)
        return blob

    def remove(self, key: Key, obj: Object, user: str) -> None:
        """Remove an object; watchers get its last state."""
        record = self._take(key)
        self._forget(key, record.uid, owner_uids(obj))
        parts = self._parts[key[0]]
        # None after a restart: `load` and `restore` know the bytes only
        before = parts.views(own(record)) if record.views is None else record.views
        self._changed("DELETED", key, record.blob, user, parts.concerned(before, parts.unseen))

    def load(self, truth: Truth) -> None:
        """Take over the objects of a checkpoint; the tables must be empty."""
        for kind, name, held in truth.rows():
            self._add((kind, *name), ObjectRecord(held.blob, held.revision, held.uid))
            self._own((kind, *name), held.owners)
        self.revision = truth.revision
        self.kind_revisions = defaultdict(int, truth.revisions)
        self._removed_uids = dict(truth.removed)
        # a checkpoint holds states and no changes: watchers of an earlier revision list again
        self.log.forget_all(self.revision)

    def restore(self, mutation: Mutation) -> None:
        """Apply a mutation of the journal. A repeated one changes nothing."""
        if mutation.revision <= self.revision:
            return
        key = (mutation.kind, mutation.namespace, mutation.name)
        record = self.get(key)
        if mutation.type == "DELETED":
            if record is not None:
                self._take(key)
                self._forget(key, record.uid, owner_uids(own(record)))
        else:
            self._restore_object(key, mutation, record)
        self.revision = self.kind_revisions[mutation.kind] = mutation.revision

    def _restore_object(self, key: Key, mutation: Mutation, record: ObjectRecord | None) -> None:
        obj: Object = unpack(mutation.blob)
        before = set[str]() if record is None else owner_uids(own(record))
        restored = ObjectRecord(mutation.blob, mutation.revision, obj["metadata"]["uid"])
        self._add(key, restored)
        self._reown(key, before, owner_uids(obj))

    def _add(self, key: Key, record: ObjectRecord) -> None:
        held = self._kinds.get(key[0])
        if held is None:
            held = self._kinds[key[0]] = Ordered()
        if held.add(key[1:], record):
            self._in_namespace[key[1]] = self._in_namespace.get(key[1], 0) + 1
        self._keys[record.uid] = key

    def _take(self, key: Key) -> ObjectRecord:
        record = self._kinds[key[0]].pop(key[1:])
        self._keys.pop(record.uid, None)
        self._in_namespace[key[1]] -= 1
        return record

    def _changed(self, type_: str, key: Key, blob: bytes, user: str, concerned: frozenset[str]) -> None:
        kind, namespace, name = key
        revision = self.revision = self.kind_revisions[kind] = self.revision + 1
        mutation = Mutation(revision, type_, kind, namespace, name, blob, user)
        self.log.append(mutation, concerned)
        self.outbox.append(mutation)

    def drain(self) -> list[Mutation]:
        """Take the outbox."""
        taken, self.outbox = self.outbox, []
        # Old bytes are rarely read once all have heard of the next: they make room. Not before: in a moment of virtual
        # time the node agents have written again when controllers see the change that they answered to.
        for blob in self._superseded:
            self._written.forget(blob)
        self._superseded.clear()
        self._written.keep_changes(taken)
        return taken

    def _own(self, key: Key, owners: Iterable[str]) -> None:
        for uid in owners:
            self._dependents.setdefault(uid, {})[key] = None

    def _disown(self, key: Key, owners: Iterable[str]) -> None:
        for uid in owners:
            rows = self._dependents.get(uid, {})
            rows.pop(key, None)
            if not rows:
                self._dependents.pop(uid, None)

    def _reown(self, key: Key, before: set[str], after: set[str]) -> None:
        if before != after:
            # sorted, because sets of texts have another order in each process
            self._disown(key, sorted(before - after))
            self._own(key, sorted(after - before))

    def _forget(self, key: Key, uid: str, owners: set[str]) -> None:
        self._disown(key, sorted(owners))
        self._parsed.pop(key, None)
        self._removed_uids[uid] = None
        if len(self._removed_uids) > _REMEMBERED_OWNERS:
            # a dictionary keeps the order of insertion: the first key is the uid that was removed longest ago
            del self._removed_uids[next(iter(self._removed_uids))]


class _PartsByKind(dict[str, KindParts]):
    """Parts of kinds; a kind without named parts has none."""

    def __missing__(self, kind: str) -> KindParts:
        parts = self[kind] = KindParts(kind)
        return parts


def own(record: ObjectRecord) -> Object:
    """Return a copy of a record's object that the caller may change."""
    copy: Object = unpack(record.blob)
    return copy


def _labels_of(obj: Object) -> dict[str, str]:
    return section(obj["metadata"], "labels")


def owner_uids(obj: Object) -> set[str]:
    """Return the uids in metadata.ownerReferences."""
    references: list[Object] | None = section(obj, "metadata").get("ownerReferences")
    return {reference["uid"] for reference in references} if references else set()
