"""Server-side apply: a client states the fields it cares for; they become its own, and what it no longer states goes.

As kube-apiserver's field managers on structured-merge-diff: fields that another manager owns with another value are
conflicts unless forced; a field leaves when its last owner no longer applies it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from pumice.cluster.api import refusals
from pumice.cluster.api.apply.comparing import compare
from pumice.cluster.api.apply.conflicts import conflict
from pumice.cluster.api.apply.errors import ApplyError
from pumice.cluster.api.apply.field_sets import NOTHING, FieldSet
from pumice.cluster.api.apply.history import allowed_by_last_applied, first_owners, with_last_applied
from pumice.cluster.api.apply.merging import merge
from pumice.cluster.api.apply.owners import (
    APPLY,
    Manager,
    Managers,
    Owned,
    ownable,
    read_managers,
    without_managers,
    write_managers,
)
from pumice.cluster.api.apply.walks import Known, fields_of, with_named, without, without_nulls
from pumice.cluster.api.schema.mistyped import mistyped
from pumice.cluster.api.schema.shapes import Shape
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object, section

_KUBECTL: Final = "kubectl"


class Applicant(NamedTuple):
    """Who applies what way: field manager, apiVersion of the kind, subresource, whether conflicts are taken over.

    `reset` are the parts of an object that the write does not reach (`pumice.cluster.api.apply.tracking.resets`).
    """

    name: str
    api_version: str
    subresource: str = ""
    force: bool = False
    reset: tuple[str, ...] = ()

    @property
    def manager(self) -> Manager:
        """The owner that the applied fields get."""
        return Manager(self.name, APPLY, "", self.subresource)


def apply(live: Object | None, config: Object, who: Applicant, now: str, shape: Shape) -> Object | Refused:
    """The object after the apply at `now` (RFC 3339), its managedFields among it; equal to `live` when nothing changed.

    409 names every conflict as a cause; 400 an object that is not of the kind's shape or that brings managedFields.
    `live` and `config` stay as they are. What a write through `who.subresource` does not reach is the caller's to put
    back.
    """
    try:
        _check_types(config, shape)
        if section(config, "metadata").get("managedFields") is not None:
            return refusals.bad_request("metadata.managedFields must be nil")
        return _applied(live or {}, config, who, now, shape)
    except ApplyError as error:
        return refusals.bad_request(f"failed to create typed patch object: {error}")
    except RecursionError:
        return refusals.bad_request("failed to create typed patch object: it is nested too deeply")


def _applied(live: Object, config: Object, who: Applicant, now: str, shape: Shape) -> Object | Refused:
    before = without_managers(live)
    config = _without_nulls_in_metadata(config)
    managers = read_managers(live) or first_owners(before, who.api_version, now, shape)
    merged: Object = merge(before, config, shape)
    stated = fields_of(config, shape)
    last = managers.get(who.manager)
    owners = {**managers, who.manager: Owned(ownable(stated, who.reset), who.api_version, last.time if last else "")}
    if last is not None:
        managed = stated
        for owned in owners.values():
            managed |= owned.paths
        merged = _pruned(merged, last.paths, managed, shape)
    change = compare(before, merged, shape)
    clashes = _clashes(owners, who.manager, ownable(change.added | change.modified, who.reset))
    if clashes and not who.force:
        allowed = allowed_by_last_applied(before, who.api_version, shape) if who.name == _KUBECTL else NOTHING
        refused = {other: paths - allowed for other, paths in clashes.items() if paths - allowed}
        if refused:
            return conflict(refused)
    merged = without_nulls(merged)
    owners = _settled(owners, clashes, ownable(change.removed, who.reset), who.manager)
    if who.manager in owners and (merged != before or last is None):
        owners[who.manager] = owners[who.manager]._replace(time=now)
    if who.name == _KUBECTL:
        merged = with_last_applied(merged, config)
    return write_managers(merged, owners)


def _check_types(config: Object, shape: Shape) -> None:
    wrong = mistyped(config, shape)
    if wrong:
        raise ApplyError(f".{wrong[0].path}: expected {wrong[0].expected}, got {wrong[0].found}")


def _without_nulls_in_metadata(config: Object) -> Object:
    """Printed manifests say `creationTimestamp: null`, and mean nothing by it."""
    meta = section(config, "metadata")
    return {**config, "metadata": {name: each for name, each in meta.items() if each is not None}}


def _clashes(owners: Managers, me: Manager, changed: FieldSet) -> dict[Manager, FieldSet]:
    """What others own of the fields that change."""
    return {who: owned.paths & changed for who, owned in owners.items() if who != me and owned.paths & changed}


def _settled(owners: Managers, lost: dict[Manager, FieldSet], removed: FieldSet, me: Manager) -> Managers:
    """The owners when everybody else has lost those fields and the removed ones."""
    result: Managers = {}
    for who, owned in owners.items():
        left = owned.paths if who == me else owned.paths - lost.get(who, NOTHING) - removed
        if left:
            result[who] = owned._replace(paths=left)
    return result


def _pruned(merged: Object, last: FieldSet, managed: FieldSet, shape: Shape) -> Object:
    """The merged object without what its applier applied last time, no longer applies, and nobody else owns."""
    last_named, managed_named = with_named(last, shape), with_named(managed, shape)
    if last_named <= managed_named:
        return merged
    known: Known = {}
    all_named = with_named(fields_of(merged, shape, known), shape)
    pruned: Any = without(merged, last_named, shape)
    dropped = all_named - with_named(fields_of(pruned, shape, known), shape) - managed_named
    pruned = without(merged, dropped, shape)
    gone = (all_named - with_named(fields_of(pruned, shape, known), shape)) & last_named
    result: Object = pruned if gone == dropped else without(merged, gone, shape)
    return result
