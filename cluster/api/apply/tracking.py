"""Owners after a write that was no apply: who changed a field owns it now, and whoever owned it does not."""

from __future__ import annotations

from pumice.cluster.api.apply.comparing import compare
from pumice.cluster.api.apply.field_sets import NOTHING
from pumice.cluster.api.apply.owners import (
    UPDATE,
    Manager,
    Managers,
    Owned,
    capped,
    ownable,
    read_managers,
    without_managers,
    write_managers,
)
from pumice.cluster.api.schema.shapes import Shape
from pumice.core.objects.metadata import Object, section

MAIN_RESETS = ("status",)
STATUS_RESETS = ("apiVersion", "kind", "metadata", "spec")


def resets(subresource: str, *, drops_status: bool) -> tuple[str, ...]:
    """The parts of an object that a write does not reach, so that nobody comes to own them by it."""
    if subresource in ("status", "approval"):
        return STATUS_RESETS
    return MAIN_RESETS if drops_status else ()


def track_update(old: Object, new: Object, who: Manager, now: str, shape: Shape, reset: tuple[str, ...] = ()) -> Object:
    """The new object with the owners of its fields after an update by `who` at `now` (RFC 3339).

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
    """The owners after an update of an object whose owners were `managers`."""
    change = compare(old, new, shape)
    mine = ownable(change.added | change.modified, reset)
    gone = mine | ownable(change.removed, reset)
    kept = {each: owned._replace(paths=owned.paths - gone) for each, owned in managers.items()}
    if mine:
        before = kept[who].paths if who in kept else NOTHING
        kept[who] = Owned(before | mine, who.api_version, now)
    return capped({each: owned for each, owned in kept.items() if owned.paths})


def by_update(name: str, api_version: str, subresource: str = "") -> Manager:
    """Who wrote otherwise than by apply."""
    return Manager(name or "unknown", UPDATE, api_version, subresource)


def _told(old: Object, new: Object, *, subresource: str) -> Managers:
    given = section(new, "metadata").get("managedFields")
    if subresource or given is None:
        return read_managers(old)
    if given == [{}]:
        return {}
    return read_managers(new) or read_managers(old)
