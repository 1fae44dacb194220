"""The truth, like etcd and kube-apiserver in one: a synchronous store of Kubernetes objects.

Each request comes with the time and gives a reply value; no request raises. What changed is in `outbox` until the actor
has made it durable, and only then published to watchers. Same requests, times and seed: same objects, to the byte.
"""

from __future__ import annotations

from typing import Any, assert_never, cast

from actors.api import metadata, refusals
from actors.api.admission import ADMISSION, Admission, Lookup
from actors.api.admission.shapes import shape_problems
from actors.api.decoding import decoded, decoded_object, name_of
from actors.api.deletion import Deletion
from actors.api.kinds import KINDS, Kind, kind_of
from actors.api.lookup import TablesLookup
from actors.api.names import generated_name, uid_of
from actors.api.placement import Placement
from actors.api.requests import Moment
from actors.api.selectors import SelectorError, matches, parse_selector
from actors.api.tables import Key, Tables, owner_uids
from actors.api.watch import RevisionLog
from actors.merge_patch import merge_patch
from core.messages import commands
from core.messages.events import Mutation
from core.messages.replies import Accepted, ApiReply, Events, Listing, Refused
from core.objects.metadata import Object, section
from storage.codec import pack, unpack
from storage.truth import Truth

_GENERATE_ATTEMPTS = 8


class Store:
    """Create, read, update, delete, bind, evict, list and watch. `seed` goes into uids and generated names."""

    def __init__(self, *, seed: int = 0, log_capacity: int = 32_768) -> None:
        self.seed = seed
        self.log = RevisionLog(log_capacity)
        self.tables = Tables(self.log)
        self.lookup: Lookup = TablesLookup(self.tables)
        self._deletion = Deletion(self.tables)
        self._placement = Placement(self.tables, self._deletion)

    @property
    def revision(self) -> int:
        """The newest revision, durable or not."""
        return self.tables.revision

    @property
    def outbox(self) -> list[Mutation]:
        """Changes since the last `drain`, in order."""
        return self.tables.outbox

    def drain(self) -> list[Mutation]:
        """Take the outbox."""
        taken, self.tables.outbox = self.tables.outbox, []
        return taken

    def publish(self, revision: int | None = None) -> None:
        """Let watchers see changes up to `revision` (all of them when None)."""
        self.log.publish(self.revision if revision is None else revision)

    def restore(self, mutation: Mutation) -> None:
        """Rebuild: apply the journal's mutations in order. Watchers start after the last one."""
        self.tables.restore(mutation)
        self.log.forget_all(self.revision)

    def load(self, truth: Truth) -> None:
        """Begin with what a checkpoint holds."""
        self.tables.load(truth)

    def apply(self, request: commands.ApiRequest, now: float) -> ApiReply:
        """Carry out one request at `now` (seconds since the epoch)."""
        match request:
            case commands.Create():
                return self.create(request.blob, now, dry_run=request.dry_run, user=request.user)
            case commands.Update():
                return self.update(request.blob, now, user=request.user)
            case commands.UpdateStatus():
                return self.update_status(request, now)
            case commands.Patch():
                return self.patch_merge(request, now)
            case commands.Delete():
                return self.delete(request, now)
            case commands.BindPod():
                return self._placement.bind(request, Moment(now, "bind-worker"))
            case commands.EvictPod():
                return self._placement.evict(request, Moment(now, "evict-worker"))
            case commands.Get():
                return self.get(request.kind, request.namespace, request.name)
            case commands.List():
                return self.list(request.kind, request.namespace, request.label_selector)
            case commands.Watch():
                return self.watch(request.since, request.kinds, request.limit)
            case _:
                assert_never(request)

    # --- reading

    def get(self, kind: str, namespace: str, name: str) -> Accepted | Refused:
        """The object as it is now."""
        row = KINDS.get(kind)
        if row is None:
            return refusals.unknown_kind(kind)
        record = self.tables.get((kind, namespace if row.namespaced else "", name))
        return refusals.not_found(row, name) if record is None else Accepted(record.revision, record.blob)

    def list(self, kind: str, namespace: str | None = None, label_selector: str | None = None) -> Listing | Refused:
        """All objects of a kind, or those of a namespace, or those with certain labels."""
        if kind not in KINDS:
            return refusals.unknown_kind(kind)
        records = self.tables.of_kind(kind, namespace)
        if not label_selector:
            return Listing(self.revision, tuple(record.blob for _, record in records))
        try:
            wanted = parse_selector(label_selector)
        except SelectorError as error:
            return refusals.bad_request(str(error))
        chosen = (record.blob for _, record in records if matches(wanted, _labels(record.blob)))
        return Listing(self.revision, tuple(chosen))

    def watch(self, since: int, kinds: tuple[str, ...] = (), limit: int = 1000) -> Events:
        """Published changes after `since`."""
        return self.log.read(since, kinds, limit)

    # --- writing

    def create(self, blob: bytes, now: float, *, dry_run: bool = False, user: str = "") -> Accepted | Refused:
        """Admit and store a new object."""
        obj = decoded_object(blob)
        if isinstance(obj, Refused):
            return obj
        kind = kind_of(obj.get("apiVersion"), obj.get("kind"))
        if kind is None:
            return refusals.unknown_kind(obj.get("kind"), obj.get("apiVersion"))
        obj["apiVersion"] = kind.api_version
        if causes := shape_problems(kind.key, obj):
            return refusals.invalid(kind, name_of(obj), causes)
        meta = metadata.settle(obj, kind)
        self._generate_name(kind, meta)
        if causes := metadata.problems(meta):
            return refusals.invalid(kind, meta.get("name") or "", causes)
        key = (kind.key, meta.get("namespace") or "", meta["name"])
        if self.tables.get(key) is not None:
            return refusals.already_exists(kind, meta["name"])
        return self._admit_new(key, kind, obj, Moment(now, user), dry_run=dry_run)

    def _admit_new(self, key: Key, kind: Kind, obj: Object, moment: Moment, *, dry_run: bool) -> Accepted | Refused:
        admission = ADMISSION.get(kind.key, Admission())
        if kind.status:
            obj.pop("status", None) if admission.initial_status is None else admission.initial_status(obj)
        if admission.default is not None:
            admission.default(obj, self.lookup)
        if admission.forbid is not None and (why := admission.forbid(obj, self.lookup)):
            return refusals.forbidden(kind, key[2], why)
        if admission.validate is not None and (causes := admission.validate(obj, self.lookup)):
            return refusals.invalid(kind, key[2], causes)
        metadata.stamp(obj["metadata"], uid_of(self.seed, self.revision + 1), moment.text)
        if dry_run:
            return Accepted(self.revision, pack(obj))
        blob = self.tables.put(key, obj, moment.user)
        revision = self.revision
        if any(map(self.tables.was_removed, owner_uids(obj))):
            self._deletion.orphaned(key, moment)
        return Accepted(revision, blob)

    def update(self, blob: bytes, now: float, *, user: str = "") -> Accepted | Refused:
        """Replace an object; 409 when its metadata.resourceVersion is given and stale."""
        obj = decoded_object(blob)
        if isinstance(obj, Refused):
            return obj
        kind = kind_of(obj.get("apiVersion"), obj.get("kind"))
        if kind is None:
            return refusals.unknown_kind(obj.get("kind"), obj.get("apiVersion"))
        obj["apiVersion"] = kind.api_version
        if causes := shape_problems(kind.key, obj):
            return refusals.invalid(kind, name_of(obj), causes)
        meta = section(obj, "metadata")
        namespace = (meta.get("namespace") or "default") if kind.namespaced else ""
        key = (kind.key, namespace, meta.get("name") or "")
        old = self.tables.read(key)
        if old is None:
            return refusals.not_found(kind, key[2])
        if kind.status:
            _carry(old, obj, "status")
        return self._replace(key, kind, old, obj, Moment(now, user))

    def patch_merge(self, request: commands.Patch, now: float) -> Accepted | Refused:
        """Merge a patch into an object; its status stays as it is where the kind has a status subresource."""
        found = self._existing(request.kind, request.namespace, request.name)
        if isinstance(found, Refused):
            return found
        key, kind, old = found
        patch = decoded(request.blob)
        if isinstance(patch, Refused):
            return patch
        if kind.status:
            patch.pop("status", None)
        new = merge_patch(old, patch)
        if causes := shape_problems(kind.key, new):
            return refusals.invalid(kind, key[2], causes)
        new["metadata"] = dict(new["metadata"])
        return self._replace(key, kind, old, new, Moment(now, request.user))

    def update_status(self, request: commands.UpdateStatus, now: float) -> Accepted | Refused:
        """Merge a patch into the status; nothing else changes."""
        found = self._existing(request.kind, request.namespace, request.name)
        if isinstance(found, Refused):
            return found
        key, kind, old = found
        if request.resource_version is not None and request.resource_version != old["metadata"]["resourceVersion"]:
            return refusals.modified(kind, key[2])
        patch = decoded(request.blob)
        if isinstance(patch, Refused):
            return patch
        before = old.get("status")
        after = merge_patch(before, patch)
        if after == before:
            return Accepted(self.revision, _blob(self.tables, key))
        new = {**old, "status": after}
        if causes := shape_problems(kind.key, new):
            return refusals.invalid(kind, key[2], causes)
        blob = self.tables.put(key, new, request.user, owners_changed=False)
        return Accepted(self.revision, blob)

    def delete(self, request: commands.Delete, now: float) -> Accepted | Refused:
        """Delete, gracefully where the object asks for it; what it owns goes with it."""
        found = self._existing(request.kind, request.namespace, request.name)
        if isinstance(found, Refused):
            return found
        key, kind, old = found
        if request.uid is not None and request.uid != old["metadata"]["uid"]:
            return refusals.other_uid(kind, key[2], request.uid, old["metadata"]["uid"])
        admission = ADMISSION.get(kind.key, Admission())
        if admission.forbid_delete is not None and (reason := admission.forbid_delete(old, self.lookup)):
            return refusals.forbidden(kind, key[2], reason)
        blob = self._deletion.delete(key, old, request.grace_period_s, Moment(now, request.user))
        return Accepted(self.revision, blob)

    # --- parts

    def _replace(self, key: Key, kind: Kind, old: Object, new: Object, moment: Moment) -> Accepted | Refused:
        meta, before = new["metadata"], old["metadata"]
        given = meta.get("resourceVersion")
        if given and given != before["resourceVersion"]:
            return refusals.modified(kind, key[2])
        if (uid := meta.get("uid")) and uid != before["uid"]:
            return refusals.other_uid(kind, key[2], uid, before["uid"])
        metadata.keep(meta, before)
        causes = metadata.problems(meta)
        admission = ADMISSION.get(kind.key, Admission())
        if not causes and admission.validate_update is not None:
            causes = admission.validate_update(old, new, self.lookup)
        if causes:
            return refusals.invalid(kind, key[2], causes)
        meta["resourceVersion"] = before["resourceVersion"]
        if new == old:
            return Accepted(self.revision, _blob(self.tables, key))
        if any(new.get(part) != old.get(part) for part in (new.keys() | old.keys()) - {"metadata", "status"}):
            meta["generation"] = before.get("generation", 1) + 1
        if "deletionTimestamp" in meta and not meta.get("finalizers") and not meta.get("deletionGracePeriodSeconds"):
            self._deletion.remove(key, old, moment)
            return Accepted(self.revision, b"")
        blob = self.tables.put(key, new, moment.user)
        return Accepted(self.revision, blob)

    def _existing(self, kind: str, namespace: str, name: str) -> tuple[Key, Kind, Object] | Refused:
        row = KINDS.get(kind)
        if row is None:
            return refusals.unknown_kind(kind)
        key = (kind, namespace if row.namespaced else "", name)
        obj = self.tables.read(key)
        return refusals.not_found(row, name) if obj is None else (key, row, obj)

    def _generate_name(self, kind: Kind, meta: dict[str, Any]) -> None:
        base = meta.get("generateName")
        if meta.get("name") or not base:
            return
        for attempt in range(_GENERATE_ATTEMPTS):
            meta["name"] = generated_name(base, self.seed, self.revision + 1, attempt)
            if self.tables.get((kind.key, meta.get("namespace") or "", meta["name"])) is None:
                return


def _labels(blob: bytes) -> dict[str, str]:
    return section(cast("Object", unpack(blob)), "metadata").get("labels") or {}


def _carry(old: Object, new: Object, part: str) -> None:
    if part in old:
        new[part] = old[part]
    else:
        new.pop(part, None)


def _blob(tables: Tables, key: Key) -> bytes:
    record = tables.get(key)
    return b"" if record is None else record.blob
