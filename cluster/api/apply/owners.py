# SPDX-License-Identifier: Apache-2.0
"""`metadata.managedFields`: the owners of fields, read from an object and written back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from pumice.cluster.api.apply.comparing import compare
from pumice.cluster.api.apply.field_sets import NOTHING, FieldSet, field, field_set, from_fields, to_fields
from pumice.cluster.api.apply.walks import fields_of
from pumice.cluster.api.schema.shapes import Shape
from pumice.core.objects.metadata import Object, annotations_of, is_list, is_mapping, parse_time, section

APPLY: Final = "Apply"
UPDATE: Final = "Update"
# apimachinery's `DefaultMaxUpdateManagers`; without a bound every client that ever wrote would stay.
_MOST_UPDATERS: Final = 10
_OLD: Final = "ancient-changes"
_FIELDS_V1: Final = "FieldsV1"


class Manager(NamedTuple):
    """Field manager: a name, its operation and its subresource. An applier is the same in every version."""

    name: str
    operation: str
    api_version: str = ""
    subresource: str = ""

    def shown(self) -> str:
        """Return the manager's name as conflicts show it."""
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


class Owned(NamedTuple):
    """Fields of a manager, the version of the kind in which it last wrote, and the time of that write."""

    paths: FieldSet
    api_version: str
    time: str = ""


Managers = dict[Manager, Owned]
"""Owners of an object's fields."""

# apimachinery's `stripSet` (`pkg/util/managedfields/internal/stripmeta.go`).
_NOT_OWNED: Final = field_set(
    [(field("apiVersion"),), (field("kind"),), (field("metadata"),)]
    + [
        (field("metadata"), field(name))
        for name in (
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        )
    ]
)


def ownable(paths: FieldSet, reset: tuple[str, ...]) -> FieldSet:
    """Return the fields that can have an owner: without the server's own, and without those that the write does not
    reach.
    """
    return (paths - _NOT_OWNED).without_branches({field(name) for name in reset})


def read_managers(obj: Object) -> Managers:
    """Return the owners in an object; none when its managedFields are not well formed."""
    entries: Any = section(obj, "metadata").get("managedFields")
    found: Managers = {}
    for each in entries if is_list(entries) else []:
        # one bad entry voids them all, as apiserver's `DecodeManagedFields` fails as a whole
        if not is_mapping(each) or each.get("operation") not in (APPLY, UPDATE) or each.get("fieldsType") != _FIELDS_V1:
            return {}
        version, operation = _text(each, "apiVersion"), each["operation"]
        who = Manager(
            _text(each, "manager"), operation, version if operation == UPDATE else "", _text(each, "subresource")
        )
        found[who] = Owned(from_fields(each.get("fieldsV1")), version, _text(each, "time"))
    return found


def write_managers(obj: Object, managers: Mapping[Manager, Owned]) -> Object:
    """Return the object with these owners: appliers first, then by time and name. Its metadata is a new mapping."""
    meta = {name: value for name, value in section(obj, "metadata").items() if name != "managedFields"}
    listed = sorted(managers.items(), key=lambda pair: _place(*pair))
    entries = [_entry(who, owned) for who, owned in listed if owned.paths]
    if entries:
        meta["managedFields"] = entries
    return {**obj, "metadata": meta}


def without_managers(obj: Object) -> Object:
    """Return the object without managedFields."""
    return write_managers(obj, {}) if "managedFields" in section(obj, "metadata") else obj


def capped(managers: Managers) -> Managers:
    """Keep at most ten owners that came by updates: the oldest of one version become one."""
    updaters = [who for who in managers if who.operation == UPDATE]
    excess = len(updaters) - _MOST_UPDATERS
    if excess <= 0:
        return managers
    result = dict(managers)
    first: dict[str, Manager] = {}
    for who in sorted(updaters, key=lambda who: (_moment(managers[who].time), who)):
        if excess <= 0:
            break
        # a bucket needs two managers of its version: the first one waits for another
        if who.api_version not in first:
            first[who.api_version] = who
            continue
        bucket = Manager(_OLD, UPDATE, who.api_version)
        if bucket not in result:
            result[bucket] = result.pop(first[who.api_version])
        if who != bucket:
            owned = result.pop(who)
            result[bucket] = Owned(result[bucket].paths | owned.paths, owned.api_version, owned.time)
            excess -= 1
    return result


def _place(who: Manager, owned: Owned) -> tuple[str, float, str, str, str]:
    # as texts "Apply" comes before "Update", so that appliers stand first
    return who.operation, _moment(owned.time), who.name, owned.api_version, who.subresource


def _entry(who: Manager, owned: Owned) -> Object:
    entry: Object = {"manager": who.name, "operation": who.operation, "apiVersion": owned.api_version}
    if owned.time:
        entry["time"] = owned.time
    entry |= {"fieldsType": _FIELDS_V1, "fieldsV1": to_fields(owned.paths)}
    if who.subresource:
        entry["subresource"] = who.subresource
    return entry


def _text(entry: Object, name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""


def _moment(text: str) -> float:
    try:
        return parse_time(text)
    except ValueError:  # a client may write what it likes there
        return 0.0


# --- Owners after other writes than apply

# --- Owners before the first apply

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_BEFORE: Final = "before-first-apply"
_CLIENT_SIDE: Final = "kubectl-client-side-apply"
_ANNOTATION: Final = field_set([(field("metadata"), field("annotations"), field(LAST_APPLIED))])


def first_owners(live: Object, api_version: str, now: str, shape: Shape) -> Managers:
    """Return the owners of an object that was never applied server-side.

    Writes are recorded from the first apply on only. What kubectl's annotation says to be applied, and still is so,
    belongs to `kubectl-client-side-apply`; the rest to `before-first-apply`, as in Kubernetes.
    """
    if not live:
        return {}
    change = compare({}, live, shape)
    everything = ownable(change.added, ())
    kubectl = Manager(_CLIENT_SIDE, UPDATE, api_version)
    applied = ownable(allowed_by_last_applied(live, api_version, shape), ()) & everything
    if applied:
        applied |= _ANNOTATION & everything  # by it kubectl knows whose fields are its own when it goes over to apply
    owners = {
        kubectl: Owned(applied, api_version, now),
        Manager(_BEFORE, UPDATE, api_version): Owned(everything - applied, api_version, now),
    }
    return {who: owned for who, owned in owners.items() if owned.paths}


def allowed_by_last_applied(live: Object, api_version: str, shape: Shape) -> FieldSet:
    """Return the fields that kubectl applied client-side last and that have not changed since."""
    text: Any = annotations_of(live).get(LAST_APPLIED)
    try:
        last: Any = msgspec.json.decode(text) if isinstance(text, str) and text else None
    except (msgspec.DecodeError, RecursionError):
        return NOTHING
    if not is_mapping(last) or last.get("apiVersion") != api_version:
        return NOTHING
    # only what has stayed as it was applied is still kubectl's
    change = compare(last, live, shape)
    return fields_of(last, shape) - change.modified - change.added - change.removed


def with_last_applied(obj: Object, config: Object) -> Object:
    """Return the object with its last-applied annotation updated, where it has one."""
    meta = section(obj, "metadata")
    annotations = section(meta, "annotations")
    if not annotations.get(LAST_APPLIED):
        return obj
    told = dict(annotations_of(config))
    told.pop(LAST_APPLIED, None)
    stripped = {**config, "metadata": {**section(config, "metadata"), "annotations": told}}
    if not told:
        del stripped["metadata"]["annotations"]
    # as kubectl writes the annotation: keys sorted, and a line end behind
    text = json.dumps(stripped, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n"
    return {**obj, "metadata": {**meta, "annotations": {**annotations, LAST_APPLIED: text}}}


MAIN_RESETS = ("status",)
STATUS_RESETS = ("apiVersion", "kind", "metadata", "spec")


def resets(subresource: str, *, drops_status: bool) -> tuple[str, ...]:
    """Return the parts of an object that a write does not reach, so that the writer does not own them."""
    if subresource in ("status", "approval"):
        return STATUS_RESETS
    return MAIN_RESETS if drops_status else ()


def track_update(old: Object, new: Object, who: Manager, now: str, shape: Shape, reset: tuple[str, ...] = ()) -> Object:
    """Return the new object with the owners of its fields after an update by `who` at `now` (RFC 3339).

    Only objects that were applied once have owners; `managedFields: [{}]` in the new object takes them away, an
    empty list does not, as in Kubernetes.
    """
    managers = _told(old, new, subresource=who.subresource)
    if not managers:
        return without_managers(new)
    return write_managers(new, updated(without_managers(old), without_managers(new), managers, who, now, shape, reset))


def updated(
    old: Object, new: Object, managers: Managers, who: Manager, now: str, shape: Shape, reset: tuple[str, ...]
) -> Managers:
    """Return the owners after an update of an object whose owners were `managers`."""
    change = compare(old, new, shape)
    mine = ownable(change.added | change.modified, reset)
    gone = mine | ownable(change.removed, reset)
    kept = {each: owned._replace(paths=owned.paths - gone) for each, owned in managers.items()}
    if mine:
        before = kept[who].paths if who in kept else NOTHING
        kept[who] = Owned(before | mine, who.api_version, now)
    return capped({each: owned for each, owned in kept.items() if owned.paths})


def by_update(name: str, api_version: str, subresource: str = "") -> Manager:
    """Return the manager of a write other than apply."""
    return Manager(name or "unknown", UPDATE, api_version, subresource)


def _told(old: Object, new: Object, *, subresource: str) -> Managers:
    given = section(new, "metadata").get("managedFields")
    if subresource or given is None:
        return read_managers(old)
    if given == [{}]:
        return {}
    return read_managers(new) or read_managers(old)
