# SPDX-License-Identifier: Apache-2.0
"""New objects: named, admitted, stamped and stored."""

from __future__ import annotations

from typing import Final

from pumice.cluster.api import metadata, refusals
from pumice.cluster.api.admission.namespaces import new_namespace
from pumice.cluster.api.admission.quotas import take
from pumice.cluster.api.bootstrap import system_queues
from pumice.cluster.api.checks import NewObject, refusal_of_new
from pumice.cluster.api.metadata import WITHOUT_GENERATION
from pumice.cluster.api.names import uid_of
from pumice.cluster.api.object_tables import owner_uids
from pumice.cluster.api.registry import Registry
from pumice.cluster.api.verbs.deletion import Deletion
from pumice.cluster.api.verbs.ownership import made
from pumice.cluster.api.verbs.requests import SUBMIT, RequestMoment, decoded, may_hold_null
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object
from pumice.storage.codec import pack

QUEUES: Final = ("CustomResourceDefinition", "", "queues.scheduling.volcano.sh")
"""The definition of queues."""

MOST_BYTES: Final = 1_536 * 1024
"""Bytes of an object that a client may write, as etcd's `--max-request-bytes` has it by default."""


class Creation:
    """Creation of objects; an object without a remaining owner is deleted again immediately."""

    def __init__(self, registry: Registry, deletion: Deletion) -> None:
        self._registry = registry
        self._tables = registry.tables
        self._deletion = deletion

    def create(self, blob: bytes, moment: RequestMoment, *, dry_run: bool = False) -> Accepted | Refused:
        """Admit and store a new object; `dry_run`: admission only."""
        obj = decoded(blob)
        if isinstance(obj, Refused):
            return obj
        if self._registry.served and len(blob) > MOST_BYTES:
            return refusals.too_large()
        return self.create_object(obj, moment, dry_run=dry_run, nulls=may_hold_null(blob))

    def create_object(
        self, obj: Object, moment: RequestMoment, *, dry_run: bool = False, nulls: bool = True, owners: object = None
    ) -> Accepted | Refused:
        """Create plain data, which is changed on the way; `nulls`: the object may contain some.

        `owners` are the managedFields of an object that is applied.
        """
        kind = self._registry.kinds.by_type(obj.get("apiVersion"), obj.get("kind"))
        if kind is None:
            return refusals.unknown_kind(obj.get("kind"), obj.get("apiVersion"))
        obj["apiVersion"] = kind.api_version
        uid = self.uid_for(moment.uid)
        new = NewObject(self._registry, kind, obj, moment, uid, self.make_namespace, nulls, dry_run)
        if refused := refusal_of_new(new):
            return refused
        # An applied object has as many owners as fields.
        if owners and self._registry.served and len(pack([obj, owners])) > MOST_BYTES:
            return refusals.too_large()
        return self._store(new, owners)

    def _store(self, new: NewObject, owners: object) -> Accepted:
        """Stamp and store an object that has passed all checks; `owners`: its managedFields when it is applied."""
        key, kind, obj, moment = new.key, new.kind, new.obj, new.moment
        lookup = self._registry.lookup
        metadata.stamp(obj["metadata"], new.uid, moment.text, generation=kind.key not in WITHOUT_GENERATION)
        if owners:
            obj["metadata"]["managedFields"] = owners
        # after the stamp: the selector of a batch/v1 Job is made of its uid
        if new.admission.settle is not None:
            new.admission.settle(obj, lookup, moment.text)
        if not owners:
            obj = made(self._registry.kinds, kind, obj, moment)
        if new.dry_run:
            return Accepted(self._tables.revision, pack(obj))
        if kind.namespaced:
            # before it is stored: a quota without a status counts the stored objects, and would count this one twice
            take(self._tables, lookup, kind, obj, moment.user)
        blob = self._tables.put_new(key, obj, moment.user)
        answer = Accepted(self._tables.revision, blob)
        if key == QUEUES and moment.user != SUBMIT:
            self._make_system_queues(moment)
        # an owner that went before this object came will not go again, and nothing else would remove the object
        if "ownerReferences" in obj["metadata"] and any(map(self._tables.was_removed, owner_uids(obj))):
            self._deletion.orphaned(key, moment)
        return answer

    def uid_for(self, own: str) -> str:
        """Return the uid of a new object: its own, or one that no object has or had."""
        if own and self._tables.key_of(own) is None:
            return own
        tables, revision = self._tables, self._tables.revision + 1
        attempt = 0
        while True:
            uid = uid_of(self._registry.seed, revision, attempt)
            if tables.key_of(uid) is None and not tables.was_removed(uid):
                return uid
            attempt += 1

    def _make_system_queues(self, moment: RequestMoment) -> None:
        """Make the queues that Volcano's scheduler makes at its start: an installer has brought their kind back."""
        for queue in system_queues():
            self.create_object(queue, RequestMoment(moment.now, SUBMIT))

    def make_namespace(self, namespace: str, moment: RequestMoment) -> Refused | None:
        """Make a namespace that objects at the start only name."""
        made = self.create_object(new_namespace(namespace), moment)
        return made if isinstance(made, Refused) else None
