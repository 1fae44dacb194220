# SPDX-License-Identifier: Apache-2.0
"""Changes of existing objects: replaced, patched, or their status written, under optimistic concurrency."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from pumice.cluster.api import checks, metadata, patches, refusals
from pumice.cluster.api.admission import admission_of, certificate_requests, ephemeral_containers, resizes
from pumice.cluster.api.admission.limit_ranges import pod_problem
from pumice.cluster.api.admission.quotas import over_quota
from pumice.cluster.api.kinds import Kind
from pumice.cluster.api.metadata import WITHOUT_GENERATION
from pumice.cluster.api.patches.operations import MOST_COPIED
from pumice.cluster.api.refusals import Cause
from pumice.cluster.api.registry import FoundObject, FoundRecord, Registry
from pumice.cluster.api.schema.field_types import status_problems
from pumice.cluster.api.schema.zeros import in_form_of
from pumice.cluster.api.verbs.creation import MOST_BYTES, Creation
from pumice.cluster.api.verbs.deletion import Deletion
from pumice.cluster.api.verbs.ownership import MANAGED, owners_in, tracked
from pumice.cluster.api.verbs.requests import RequestMoment, decoded, may_hold_null, name_of
from pumice.cluster.kube.merge_patch import merge_patch
from pumice.core.life.task import ENDED_PHASES
from pumice.core.messages.commands import Patch, Update, UpdateStatus
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object, is_mapping, section
from pumice.core.objects.soundness import unsound
from pumice.storage.codec import pack

# --- Patches of statuses, decoded once

_KEPT: Final = 256


@lru_cache(maxsize=_KEPT)
def sound_patch(kind: str, blob: bytes) -> Object | None:
    """Return the patch, which must not be changed, when every status stays sound under it.

    So does one that takes nothing away and replaces each field that it names, by a value of that field's type. None:
    what comes of it depends on the object.
    """
    if may_hold_null(blob):
        return None
    patch = decoded(blob)
    # a mapping is merged into the stored one, so that the result depends on the object
    if isinstance(patch, Refused) or any(map(is_mapping, patch.values())) or status_problems(kind, patch):
        return None
    return patch


# --- Subresources under which one part of an object is written
# Which, and what they make of the object.

RESIZE: Final = "resize"
PartWrite = Callable[[Object, Object, str], tuple[Object, list[Cause]]]
"""Of the stored object, the given one, and the time as text: the new object, and what is wrong with it."""

PART_WRITES: Final[dict[tuple[str, str], PartWrite]] = {
    ("CertificateSigningRequest", "approval"): certificate_requests.approve,
    ("CertificateSigningRequest", "status"): certificate_requests.report,
    ("Pod", "ephemeralcontainers"): ephemeral_containers.write,
    ("Pod", RESIZE): resizes.write,
}
"""By the key of the kind and the subresource."""


STATUS: Final = "status"
FINALIZE: Final = "finalize"
POD: Final = "Pod"
"""Of pods agents say the very same again and again."""


OWNED: Final = 8
"""Bytes of an object, with the owners of its fields, for each byte of a request, at most."""


class Changes:
    """Writes existing objects. A change without a difference writes nothing."""

    def __init__(self, registry: Registry, creation: Creation, deletion: Deletion) -> None:
        self._registry = registry
        self._tables = registry.tables
        self._creation = creation
        self._deletion = deletion

    def update(self, request: Update, moment: RequestMoment) -> Accepted | Refused:
        """Replace an object, or its status; 409 when its metadata.resourceVersion is given and stale."""
        obj = decoded(request.blob)
        if isinstance(obj, Refused):
            return obj
        kind = self._registry.kinds.by_type(obj.get("apiVersion"), obj.get("kind"))
        if kind is None:
            return refusals.unknown_kind(obj.get("kind"), obj.get("apiVersion"))
        # older versions are stored under the version of the kind's row (`Kind.also`)
        obj["apiVersion"] = kind.api_version
        if causes := checks.changed_shape(self._registry, kind, obj, nulls=may_hold_null(request.blob)):
            return refusals.invalid(kind, name_of(obj), causes)
        meta = section(obj, "metadata")
        found = self._registry.existing(kind.key, meta.get("namespace") or "default", meta.get("name") or "")
        if isinstance(found, Refused):
            return found
        if not kind.is_custom:
            obj = in_form_of(found.obj, obj, kind.group, kind.version, kind.kind)
        return self._change(found, obj, request, moment)

    def patch(self, request: Patch, moment: RequestMoment) -> Accepted | Refused:
        """Change an object by a patch of any form; its status stays where the kind has a status subresource."""
        found = self._registry.existing(request.kind, request.namespace, request.name)
        if isinstance(found, Refused):
            return found
        patch = decoded(request.blob) if request.form != "json" else patches.decoded_operations(request.blob)
        if isinstance(patch, Refused):
            return patch
        new = patches.patched(request.form, found, patch)
        if isinstance(new, Refused):
            return new
        if request.form == "json" and (problem := unsound(new)):  # its copies may nest deeper than any body
            return refusals.bad_request(problem)
        return self.write(found, new, request, moment)

    def write(
        self, found: FoundObject, new: Object, request: Patch, moment: RequestMoment, *, owners: object = None
    ) -> Accepted | Refused:
        """Write the patched object; `owners`: its managedFields when it was applied."""
        if causes := checks.changed_shape(self._registry, found.kind, new, nulls=may_hold_null(request.blob)):
            return refusals.invalid(found.kind, request.name, causes)
        if problem := self._other_object(found, new):
            return refusals.bad_request(problem)
        # a patch may share untouched metadata with the old object, which is compared with the new one later
        new["metadata"] = dict(new["metadata"])
        return self._change(found, new, request, moment, owners=owners)

    def update_status(self, request: UpdateStatus, moment: RequestMoment) -> Accepted | Refused:
        """Merge a patch into the status; nothing else changes. An ended pod stays ended, whatever an agent with an
        older view reports (as the kubelet's status manager has it).
        """
        found = self._registry.for_status(request.kind, request.namespace, request.name)
        if isinstance(found, Refused):
            return found
        old = found.obj
        if request.resource_version is not None and request.resource_version != old["metadata"]["resourceVersion"]:
            return refusals.modified(found.kind, request.name)
        sound = sound_patch(found.kind.key, request.blob) if found.kind.key == POD and not found.whole else None
        patch = decoded(request.blob) if sound is None else sound
        if isinstance(patch, Refused):
            return patch
        after = {**old, STATUS: merge_patch(old.get(STATUS), patch)}
        if found.kind.key == POD and _ended(old) and not _ended(after):
            return refusals.conflict(found.kind, request.name, "the pod has ended, and does not run again")
        nulls = sound is None and may_hold_null(request.blob)
        written = self.write_status(found, after, moment, nulls=nulls, typed=sound is not None)
        return written if isinstance(written, Refused) else Accepted(self._tables.revision, written)

    def write_status(
        self, found: FoundRecord, new: Object, moment: RequestMoment, *, nulls: bool = False, typed: bool = False
    ) -> bytes | Refused:
        """Write an object whose status or annotations have changed, and return its bytes. For `nulls` and `typed` see
        `changed_status`.
        """
        old = found.obj
        # a repeated report gets no revision: watchers would wake up for nothing
        if new == old:
            return found.record.blob
        # the very same metadata: nothing but the status is written
        status_only = new["metadata"] is old["metadata"]
        new["metadata"] = {**new["metadata"]}
        if causes := checks.changed_status(self._registry, found, new, nulls=nulls, typed=typed):
            return refusals.invalid(found.kind, found.key[2], causes)
        return self._tables.replace(found.key, found.record, new, moment.user, status_only=status_only)

    # --- parts

    def _change(
        self, found: FoundObject, new: Object, request: Update | Patch, moment: RequestMoment, *, owners: object = None
    ) -> Accepted | Refused:
        """Write the part of an object that the request is about."""
        _, kind, old = found
        if refused := checks.identity(found, new):
            return refused
        # before `metadata.keep`, which puts the stored managedFields back
        owned = owners if owners is not None else owners_in(new)
        if (kind.key, request.subresource) in PART_WRITES:
            return self._change_part(found, new, request, moment, owners=owners)
        if request.subresource == STATUS:
            return self._change_status(found, new, request, moment, owners=owners)
        if request.subresource == FINALIZE:
            return self._finalize(found, new, request, moment)
        # a kind that keeps a given status does not lose it by an update that leaves it out
        if kind.drops_status or (kind.status and STATUS not in new):
            _carry(old, new, STATUS)
        metadata.keep(new["metadata"], old["metadata"])
        if refused := checks.rules_of_change(self._registry, found, new):
            return refused
        if (settle := admission_of(kind.key).settle) is not None:
            settle(new, self._registry.lookup, moment.text)
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        new = self._owned(found, new, "", moment, owned, applied=owners is not None)
        if self._is_oversized(found, request, new):
            return refusals.too_large()
        return self._replace(found, new, moment, dry_run=request.dry_run)

    def _is_oversized(self, found: FoundObject, request: Update | Patch, new: Object) -> bool:
        """Return whether a change makes an object larger than etcd takes: of many managers, each with its fields, too.

        An object that is larger already, from a file, may shrink.
        """
        record = self._tables.get(found.key)
        size = 0 if record is None else len(record.blob)
        # Packed for this only where it may be: owners of fields take up to some times the bytes of the request.
        if not self._registry.served or size + OWNED * len(request.blob) + MOST_COPIED <= MOST_BYTES:
            return False
        return len(pack(new)) > max(size, MOST_BYTES)

    def _replace(self, found: FoundObject, new: Object, moment: RequestMoment, *, dry_run: bool) -> Accepted:
        key, _, old = found
        meta, before = new["metadata"], old["metadata"]
        if new == old:
            return self._registry.unchanged(key)
        counted = key[0] not in WITHOUT_GENERATION
        # as in Kubernetes a generation counts neither labels nor the status
        if counted and any(new.get(part) != old.get(part) for part in (new.keys() | old.keys()) - {"metadata", STATUS}):
            meta["generation"] = before.get("generation", 1) + 1
        # deleted before, and now its last finalizer has gone
        ended = "deletionTimestamp" in meta and not meta.get("finalizers")
        if ended and not meta.get("deletionGracePeriodSeconds") and not dry_run:
            self._deletion.remove(key, old, moment)
            return Accepted(self._tables.revision, pack(new), uid=before["uid"])
        return self._registry.written(key, new, moment.user, dry_run=dry_run)

    def _owned(
        self, found: FoundObject, new: Object, subresource: str, moment: RequestMoment, owners: object, *, applied: bool
    ) -> Object:
        """Return the object with its owners: those of an apply, or those after an update that may have added some."""
        if owners is not None:
            new["metadata"][MANAGED] = owners
        return new if applied else tracked(self._registry.kinds, found.kind, found.obj, new, subresource, moment)

    def _change_status(
        self, found: FoundObject, given: Object, request: Update | Patch, moment: RequestMoment, *, owners: object
    ) -> Accepted | Refused:
        key, kind, old = found
        if not kind.status:
            return refusals.no_subresource(kind, STATUS)
        new = {**old, "metadata": metadata.beside_status(kind, given["metadata"], old["metadata"])}
        _carry(given, new, STATUS)
        if causes := checks.metadata_of_change(found, new):
            return refusals.invalid(kind, key[2], causes)
        new = self._owned(found, new, STATUS, moment, owners, applied=owners is not None)
        if self._is_oversized(found, request, new):
            return refusals.too_large()
        return self._replace(found, new, moment, dry_run=request.dry_run)

    def _change_part(
        self, found: FoundObject, given: Object, request: Update | Patch, moment: RequestMoment, *, owners: object
    ) -> Accepted | Refused:
        """Write what of an object is written under a path of its own."""
        key, kind, old = found
        new, causes = PART_WRITES[kind.key, request.subresource](old, given, moment.text)
        metadata.keep(new["metadata"], old["metadata"])
        # so that an object without a difference equals the stored one in `_replace`
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if causes := metadata.problems(new["metadata"], kind) or causes:
            return refusals.invalid(kind, key[2], causes)
        if request.subresource == RESIZE and (why := self._too_large(kind, old, new)):
            return refusals.forbidden(kind, key[2], why)
        new = self._owned(found, new, request.subresource, moment, owners, applied=owners is not None)
        return self._replace(found, new, moment, dry_run=request.dry_run)

    def _too_large(self, kind: Kind, old: Object, new: Object) -> str | None:
        """Return why LimitRanges or quotas do not let a pod be resized."""
        lookup = self._registry.lookup
        return pod_problem(new, lookup) or over_quota(lookup, kind, new, old)

    def _finalize(self, found: FoundObject, given: Object, request: Update | Patch, moment: RequestMoment) -> Accepted:
        """Write the finalizers in the spec of a namespace, and nothing else."""
        key, _, old = found
        finalizers: list[str] = section(given, "spec").get("finalizers") or []
        wanted: Object = {**section(old, "spec"), "finalizers": finalizers}
        new: Object = {**old, "metadata": dict(old["metadata"]), "spec": wanted}
        answer = self._registry.written(key, new, moment.user, dry_run=request.dry_run)
        if not request.dry_run:
            self._deletion.finalized(key, moment)
        return answer

    def _other_object(self, found: FoundObject, new: Object) -> str:
        """Return why a patched object is no longer the requested one; its apiVersion is settled."""
        kind, name = self._registry.kinds.by_type(new.get("apiVersion"), new.get("kind")), new["metadata"].get("name")
        if kind is None or kind.key != found.kind.key:
            return f"a patch may not change apiVersion and kind ({found.kind.api_version} {found.kind.kind})"
        if name != found.key[2]:
            return f"the name of the object ({name}) does not match the name on the URL ({found.key[2]})"
        new["apiVersion"] = kind.api_version
        return ""


def _ended(pod: Object) -> bool:
    return section(pod, STATUS).get("phase") in ENDED_PHASES


def _carry(old: Object, new: Object, part: str) -> None:
    if part in old:
        new[part] = old[part]
    else:
        new.pop(part, None)
