# SPDX-License-Identifier: Apache-2.0
"""The stored state of the cluster, like etcd and kube-apiserver in one: a synchronous store of Kubernetes objects.

Each request comes with the time and gives a reply value; no request raises. What changed is in `outbox` until the actor
has made it durable, and only then published to watchers. Same requests, times and seed: same objects, to the byte.
"""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from pumice.cluster.api import refusals
from pumice.cluster.api.admission import Lookup, admission_of
from pumice.cluster.api.admission.namespaces import NAMESPACE
from pumice.cluster.api.admission.quotas import ObjectCounts
from pumice.cluster.api.kind_table import KindTable
from pumice.cluster.api.object_tables import ObjectTables
from pumice.cluster.api.registry import Registry
from pumice.cluster.api.selectors import SelectorTextError, matches, parse_selector
from pumice.cluster.api.verbs.applying import Applying
from pumice.cluster.api.verbs.changes import Changes
from pumice.cluster.api.verbs.creation import Creation
from pumice.cluster.api.verbs.deletion import Deletion
from pumice.cluster.api.verbs.loading import Loading, Reflection, Reporting
from pumice.cluster.api.verbs.placement import Eviction, Placement
from pumice.cluster.api.verbs.requests import RequestMoment
from pumice.cluster.api.watch import RevisionLog
from pumice.cluster.handles import HandleTable
from pumice.core.messages import commands
from pumice.core.messages.commands import EMPTIES, ReadRevision, Reflect, RevisionRead
from pumice.core.messages.events import Mutation
from pumice.core.messages.replies import Accepted, ApiReply, Listing, ListingOpened, Refused
from pumice.storage.shared_objects import SharedObjects
from pumice.storage.truth import Truth

MOST_LISTINGS = 256
"""Opened listings that are held at most: the oldest goes when there are more."""


class Store:
    """Create, read, update, delete, bind, evict, list and watch. `seed` goes into uids and generated names.

    `served`: clients look on (`pumice.cluster.api.admission.served`). `written`: see `ObjectTables`.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        log_capacity: int = 32_768,
        served: bool = False,
        written: SharedObjects | None = None,
    ) -> None:
        self.seed = seed
        self.log = RevisionLog(log_capacity)
        self.tables = ObjectTables(self.log, written or SharedObjects())
        self.listings: HandleTable[tuple[bytes, ...]] = HandleTable(tuple)
        self.registry = Registry(self.tables, seed=seed, served=served)
        self._deletion = Deletion(self.tables)
        self._creation = Creation(self.registry, self._deletion)
        self._loading = Loading(self.registry, self._creation, self._deletion)
        self._changes = Changes(self.registry, self._creation, self._deletion)
        self._applying = Applying(self.registry, self._creation, self._changes)
        self._reporting = Reporting(self.registry, self._changes)
        self._placement = Placement(self.tables, self._deletion)
        self._eviction = Eviction(self.registry, self._deletion)
        self._reflection = Reflection(self.registry)
        self._counts = ObjectCounts(self.registry)

    @property
    def revision(self) -> int:
        """Return the newest revision, durable or not."""
        return self.tables.revision

    @property
    def binds(self) -> int:
        """Return the number of pods that were put on a node since the start, without restored ones."""
        return self._placement.bound

    @property
    def kinds(self) -> KindTable:
        """Return the present kinds."""
        return self.registry.kinds

    @property
    def lookup(self) -> Lookup:
        """Return the state that admission may read."""
        return self.registry.lookup

    @property
    def outbox(self) -> list[Mutation]:
        """Return changes since the last `drain`, in order."""
        return self.tables.outbox

    def drain(self) -> list[Mutation]:
        """Take the outbox."""
        return self.tables.drain()

    def publish(self, revision: int | None = None) -> set[str]:
        """Let watchers see changes up to `revision` (None: all of them), and return the kinds that they affect: see the
        log.
        """
        return self.log.publish(self.revision if revision is None else revision)

    def restore(self, mutation: Mutation) -> None:
        """Rebuild the tables by applying the journal's mutations in order. Watchers start after the last one."""
        self.tables.restore(mutation)
        self.log.forget_all(self.revision)

    def begin_after(self, revision: int) -> None:
        """Leave out the revisions up to this one, if it is ahead: watchers start from it."""
        if revision > self.tables.revision:
            self.tables.revision = revision
            self.log.forget_all(revision)

    def load(self, truth: Truth) -> None:
        """Begin with what a checkpoint holds."""
        self.tables.load(truth)

    def apply(self, request: commands.StoreRequest, now: float) -> ApiReply:
        """Carry out one request at `now` (seconds since the epoch)."""
        before = len(self.tables.outbox)
        reply = self._carried_out(request, now)
        # within the request: the next one is held against the quotas' new numbers
        if len(self.tables.outbox) > before:
            self._counts.follow(self.tables.outbox[before:])
        return reply

    def _carried_out(self, request: commands.StoreRequest, now: float) -> ApiReply:
        try:
            match request:  # each case is tried in turn: the frequent ones stand first
                case commands.UpdateStatus():
                    return self._changes.update_status(request, RequestMoment(now, request.user))
                case commands.ReportStatus():
                    return self._reporting.report(request, RequestMoment(now, "scheduler"))
                case commands.Create():
                    moment = RequestMoment(now, request.user, request.manager, request.uid)
                    return self._creation.create(request.blob, moment, dry_run=request.dry_run)
                case commands.LoadObject():
                    return self._loading.load(request.blob, RequestMoment(now, request.user))
                case commands.BindPod():
                    return self._placement.bind(request, RequestMoment(now, "bind-worker"))
                case commands.Get():
                    return self.get(request.kind, request.namespace, request.name)
                case commands.Update():
                    return self._changes.update(request, RequestMoment(now, request.user, request.manager))
                case commands.Patch():
                    writer = self._applying.apply if request.form == "apply" else self._changes.patch
                    return writer(request, RequestMoment(now, request.user, request.manager))
                case commands.Delete():
                    return self.delete(request, now)
                case commands.RequestEviction():
                    return self._eviction.request(request, RequestMoment(now, request.user))
                case commands.EvictPod():
                    return self._placement.evict(request, RequestMoment(now, "evict-worker"))
                case Reflect():
                    return self._reflection.reflect(request)
                case commands.List():
                    return self.list(request.kind, request.namespace, request.label_selector)
                case commands.OpenListing():
                    return self.open_listing(request.kind, request.namespace)
                case ReadRevision():
                    return RevisionRead(self.log.published, self.binds)
                case _:
                    assert_never(request)
        except RecursionError:  # while the object was walked through, which is before any write
            return refusals.bad_request("the object is nested too deeply")

    # --- reading

    def get(self, kind: str, namespace: str, name: str) -> Accepted | Refused:
        """Return the object as it is now, or that it does not exist at the newest revision."""
        row = self.registry.kinds.by_key(kind)
        if row is None:
            return refusals.unknown_kind(kind)
        record = self.tables.get((kind, namespace if row.namespaced else "", name))
        if record is None:
            # with the revision a reader can wait until its watch has come as far
            return replace(refusals.not_found(row, name), revision=self.revision)
        return Accepted(record.revision, record.blob)

    def list(self, kind: str, namespace: str | None = None, label_selector: str | None = None) -> Listing | Refused:
        """Return all objects of a kind, or those of a namespace, or those with certain labels."""
        if self.kinds.by_key(kind) is None:
            return refusals.unknown_kind(kind)
        if not label_selector:
            return Listing(self.revision, self.tables.blobs(kind, namespace))
        try:
            wanted = parse_selector(label_selector)
        except SelectorTextError as error:
            return refusals.bad_request(str(error))
        records = (record for _, record in self.tables.of_kind(kind, namespace))
        return Listing(self.revision, tuple(each.blob for each in records if matches(wanted, self.tables.labels(each))))

    def open_listing(self, kind: str, namespace: str | None = None) -> ListingOpened | Refused:
        """Return objects as of now, held under a handle: a snapshot that no later change affects."""
        if self.kinds.by_key(kind) is None:
            return refusals.unknown_kind(kind)
        blobs = self.tables.blobs(kind, namespace)
        handle = self.listings.put(blobs)
        self.listings.drop(handle - MOST_LISTINGS)  # its client has gone without taking it
        return ListingOpened(handle, self.revision, len(blobs))

    # --- writing

    def create(self, blob: bytes, now: float, *, dry_run: bool = False, user: str = "") -> Accepted | Refused:
        """Admit and store a new object."""
        return self._creation.create(blob, RequestMoment(now, user), dry_run=dry_run)

    def delete(self, request: commands.Delete, now: float) -> Accepted | Refused:
        """Delete an object, gracefully where it asks for it; owned objects go with it, or as `propagation` says."""
        found = self.registry.existing(request.kind, request.namespace, request.name)
        if isinstance(found, Refused):
            return found
        key, kind, old = found
        uid, revision = old["metadata"]["uid"], old["metadata"]["resourceVersion"]
        # the uid before the revision, as apiserver's `Preconditions.Check` does (pkg/storage/interfaces.go)
        if request.uid is not None and request.uid != uid:
            return refusals.other_uid(kind, key[2], request.uid, uid)
        if request.resource_version is not None and request.resource_version != revision:
            return refusals.other_revision(kind, key[2], request.resource_version, revision)
        forbid = admission_of(kind.key).forbid_delete
        if forbid is not None and (reason := forbid(old, self.lookup)):
            return refusals.forbidden(kind, key[2], reason)
        if request.dry_run:
            return self.registry.unchanged(key)
        moment = RequestMoment(now, request.user)
        # clients see the namespace end: `NamespaceMachine` empties it a little later, under the user of `EMPTIES`
        if self.registry.served and key[0] == NAMESPACE and request.user != EMPTIES:
            return Accepted(self.revision, self._deletion.announce(key, old, moment), uid=uid)
        blob = self._deletion.delete(key, old, request.grace_period_s, moment, request.propagation)
        return Accepted(self.revision, blob, uid=uid)
