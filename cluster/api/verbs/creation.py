"""New objects: named, admitted, stamped and stored."""

from __future__ import annotations

from typing import Any, Final

from pumice.cluster.api import metadata, refusals
from pumice.cluster.api.admission import Admission, admission_of
from pumice.cluster.api.admission.quotas import over_quota, take
from pumice.cluster.api.admission.served import fill_in_served, served_problems
from pumice.cluster.api.kinds import Kind
from pumice.cluster.api.metadata import WITHOUT_GENERATION
from pumice.cluster.api.names import generated_name, uid_of
from pumice.cluster.api.namespaces import ending, is_missing, new_namespace, not_there
from pumice.cluster.api.object_tables import Key, owner_uids
from pumice.cluster.api.registry import Registry
from pumice.cluster.api.verbs.deletion import Deletion
from pumice.cluster.api.verbs.ownership import made
from pumice.cluster.api.verbs.requests import RequestMoment, decoded, may_hold_null, name_of
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object
from pumice.storage.codec import pack

SUBMIT: Final = "submit"
"""User that creates the manifests with which a run starts."""

_GENERATE_ATTEMPTS: Final = 8


class Creation:
    """Creation of objects; one with no owner left is deleted again at once."""

    def __init__(self, registry: Registry, deletion: Deletion) -> None:
        self._registry = registry
        self._tables = registry.tables
        self._deletion = deletion

    def create(self, blob: bytes, moment: RequestMoment, *, dry_run: bool = False) -> Accepted | Refused:
        """Admit and store a new object; `dry_run`: admission only."""
        obj = decoded(blob)
        if isinstance(obj, Refused):
            return obj
        return self.create_object(obj, moment, dry_run=dry_run, nulls=may_hold_null(blob))

    def create_object(
        self, obj: Object, moment: RequestMoment, *, dry_run: bool = False, nulls: bool = True, owners: Any = None
    ) -> Accepted | Refused:
        """`create` of plain data, which is changed on the way; `nulls`: there may be some in it.

        `owners` are the managedFields of an object that is applied.
        """
        kind = self._registry.kinds.by_type(obj.get("apiVersion"), obj.get("kind"))
        if kind is None:
            return refusals.unknown_kind(obj.get("kind"), obj.get("apiVersion"))
        obj["apiVersion"] = kind.api_version
        strict = self._is_strict(moment)
        if causes := self._registry.settle_shape(
            kind, obj, nulls=nulls, strict=strict
        ) or self._registry.rules_of_creation(kind, obj):
            return refusals.invalid(kind, name_of(obj), causes)
        if kind.defined and self._is_ending(kind):
            return refusals.not_allowed("create not allowed while custom resource definition is terminating")
        meta = metadata.settle(obj, kind)
        self._generate_name(kind, meta)
        if causes := metadata.problems(meta, kind):
            return refusals.invalid(kind, meta.get("name") or "", causes)
        key = (kind.key, meta.get("namespace") or "", meta["name"])
        # before the look for a namesake: in Kubernetes NamespaceLifecycle is admission, which precedes the storage
        if kind.namespaced and (refused := self._enter(kind, key, moment, dry_run=dry_run)):
            return refused
        if self._tables.get(key) is not None:
            return refusals.already_exists(kind, meta["name"])
        return self._admit(key, kind, obj, moment, dry_run=dry_run, owners=owners)

    def _admit(
        self, key: Key, kind: Kind, obj: Object, moment: RequestMoment, *, dry_run: bool, owners: Any
    ) -> Accepted | Refused:
        admission, lookup = admission_of(kind.key), self._registry.lookup
        if kind.drops_status:
            obj.pop("status", None) if admission.initial_status is None else admission.initial_status(obj)
        strict = self._is_strict(moment)
        if strict and moment.user != SUBMIT:
            fill_in_served(kind.key, obj, lookup)
        if refused := self._judge(key, kind, obj, admission, strict=strict):
            return refused
        uid = self.uid_for(moment.uid)
        if strict and (causes := served_problems(kind.key, obj, uid)):
            return refusals.invalid(kind, key[2], causes)
        # last of all that may refuse, as in Kubernetes: what is refused otherwise uses no quota
        if kind.namespaced and (why := over_quota(lookup, kind, obj)):
            return refusals.forbidden(kind, key[2], why)
        metadata.stamp(obj["metadata"], uid, moment.text, generation=kind.key not in WITHOUT_GENERATION)
        if owners:
            obj["metadata"]["managedFields"] = owners
        if admission.settle is not None:
            admission.settle(obj, lookup, moment.text)
        if not owners:
            obj = made(self._registry.kinds, kind, obj, moment)
        if dry_run:
            return Accepted(self._tables.revision, pack(obj))
        if kind.namespaced:
            take(self._tables, lookup, kind, obj, moment.user)
        blob = self._tables.put_new(key, obj, moment.user)
        answer = Accepted(self._tables.revision, blob)
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

    def _enter(self, kind: Kind, key: Key, moment: RequestMoment, *, dry_run: bool) -> Refused | None:
        """Say why the namespace takes no new object; one that a manifest at the start only names is made for it."""
        namespace = key[1]
        if self._registry.strict and is_missing(self._tables, namespace):
            return not_there(namespace) if moment.user != SUBMIT or dry_run else self.make_namespace(namespace, moment)
        return ending(self._tables, kind, namespace, key[2])

    def make_namespace(self, namespace: str, moment: RequestMoment) -> Refused | None:
        """Make a namespace that objects at the start only name."""
        made = self.create_object(new_namespace(namespace), moment)
        return made if isinstance(made, Refused) else None

    def _is_ending(self, kind: Kind) -> bool:
        definition = self._registry.kinds.definition(kind.key)
        return definition is not None and "deletionTimestamp" in definition["metadata"]

    def _is_strict(self, moment: RequestMoment) -> bool:
        """Return whether a stranger wrote the object: over HTTP or in a file. What actors make is well made."""
        return self._registry.strict or moment.user == SUBMIT

    def _judge(self, key: Key, kind: Kind, obj: Object, admission: Admission, *, strict: bool) -> Refused | None:
        lookup = self._registry.lookup
        if admission.default is not None:
            admission.default(obj, lookup)
        if admission.forbid is not None and (why := admission.forbid(obj, lookup)):
            return refusals.forbidden(kind, key[2], why)
        if causes := self._registry.definition_problems(kind, obj, strict=strict):
            return refusals.invalid(kind, key[2], causes)
        if admission.validate is not None and (causes := admission.validate(obj, lookup)):
            return refusals.invalid(kind, key[2], causes, admission.webhook)
        return None

    def _generate_name(self, kind: Kind, meta: dict[str, Any]) -> None:
        base = meta.get("generateName")
        if meta.get("name") or not base:
            return
        for attempt in range(_GENERATE_ATTEMPTS):
            meta["name"] = generated_name(base, self._registry.seed, self._tables.revision + 1, attempt)
            if self._tables.get((kind.key, meta.get("namespace") or "", meta["name"])) is None:
                return
