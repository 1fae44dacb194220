# SPDX-License-Identifier: Apache-2.0
"""Server-side apply: a client states the fields that it owns; fields that it no longer states are removed.

As kube-apiserver's field managers on structured-merge-diff: fields that another manager owns with another value are
conflicts unless forced; a field leaves when its last owner no longer applies it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pumice.cluster.api import refusals
from pumice.cluster.api.apply.comparing import compare, same
from pumice.cluster.api.apply.field_sets import NOTHING, FieldSet, shown, steps_of
from pumice.cluster.api.apply.owners import (
    APPLY,
    Manager,
    Managers,
    Owned,
    allowed_by_last_applied,
    first_owners,
    ownable,
    read_managers,
    with_last_applied,
    without_managers,
    write_managers,
)
from pumice.cluster.api.apply.walks import Known, fields_of, is_leaf, with_named, without, without_nulls
from pumice.cluster.api.schema.shapes import Shape, field_shape
from pumice.cluster.api.schema.wrong_fields import mistyped
from pumice.config.errors import RequestError
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import COMPOUND, Object, is_list, is_mapping, section

# --- Errors


class ApplyError(RequestError):
    """The applied object is not of its kind's shape; the sentence is for the client."""


# --- Merging


def merge(live: Any, config: Any, shape: Shape, path: str = "") -> Any:
    """Return the live value with the applied one merged in. Raises ApplyError for an applied list of a wrong form.

    Elements keep the order of the applied list; those that only the live one has stay where they stood between them.
    """
    if config is None or is_leaf(config, shape):
        return live if shape.scalar and same(live, config, shape) else config
    if is_mapping(config):
        return _merged_map(live if is_mapping(live) and not is_leaf(live, shape) else {}, config, shape, path)
    return _merged_list(live if is_list(live) else [], config, shape, path)


def _merged_map(live: Object, config: Object, shape: Shape, path: str) -> Object:
    merged = dict(live)
    for name, each in config.items():
        before = live.get(name)
        if before is None and each.__class__ not in COMPOUND:  # a new leaf, as most are
            merged[name] = each
        else:
            merged[name] = merge(before, each, field_shape(shape, name), f"{path}.{name}")
    return merged


def _merged_list(live: list[Any], config: list[Any], shape: Shape, path: str) -> list[Any]:
    applied = _indexed(config, shape, path)
    # what stands in the live object may be unsound: only the applied list is refused for it
    steps = [step or "" for step in steps_of(live, shape)]
    item = shape.item()
    before: Object = {}
    for step, each in zip(steps, live, strict=True):
        before[step] = None if step in before else each  # what stands there twice is merged with nothing
    result: list[Any] = []
    for at, step in _order(steps, list(applied)):
        if step in applied:
            result.append(merge(before.get(step), applied[step], item, f"{path}[{step[2:]}]"))
        else:
            result.append(live[at])
    return result


def _order(live: list[str], applied: list[str]) -> list[tuple[int, str]]:
    """Return the source of each element of the merged list: its place in the live list, or -1, and its step.

    Live elements that are not applied come as soon as the walk through the live list reaches them; applied ones in
    their own order; live ones that the applied list moved are skipped until the walk is at the next common one.
    """
    wanted, there = set(applied), set(live)
    shared = [step for step in applied if step in there]
    done: set[str] = set()
    result: list[tuple[int, str]] = []
    i = j = k = 0
    while i < len(live) or j < len(applied):
        if i < len(live) and live[i] not in wanted:
            result.append((i, live[i]))
            i += 1
        elif i < len(live) and (j == len(applied) or _is_passed(live[i], applied[j], shared[k : k + 1], done)):
            i += 1
        else:
            step = applied[j]
            i += i < len(live) and live[i] == step
            k += shared[k : k + 1] == [step]
            done.add(step)
            result.append((-1, step))
            j += 1
    return result


def _is_passed(step: str, applied: str, upcoming: list[str], done: set[str]) -> bool:
    """Return whether a live element that is applied elsewhere was already placed or will be."""
    return step != applied and (step in done or (bool(upcoming) and step != upcoming[0]))


def _indexed(items: list[Any], shape: Shape, path: str) -> Object:
    found: Object = {}
    for at, (step, each) in enumerate(zip(steps_of(items, shape), items, strict=True)):
        if step is None:
            keys = ", ".join(shape.keys)
            wanted = f"a map with the keys {keys}" if shape.list_type == "map" else "a text, number or boolean"
            raise ApplyError(f"{path}: element {at}: expected {wanted}")
        if step in found:
            raise ApplyError(f"{path}: duplicate entries for key {step[2:]}")
        found[step] = each
    return found


# --- Conflicts


def conflict(clashes: Mapping[Manager, FieldSet]) -> Refused:
    """Return 409 with a cause for every field; `clashes` are the contested fields by owner."""
    listed = [(who, [shown(path) for path in sorted(clashes[who])]) for who in sorted(clashes)]
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {who.shown()}", "field": name}
        for who, names in listed
        for name in names
    ]
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        lines = [
            line for who, names in listed for line in (f"conflicts with {who.shown()}:", *(f"- {n}" for n in names))
        ]
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    return Refused(409, "Conflict", message, {"causes": causes})


_KUBECTL: Final = "kubectl"


class Applicant(NamedTuple):
    """Source of an apply: field manager, apiVersion of the kind, subresource, and whether it takes contested fields
    over.

    `reset` are the parts of an object that the write does not reach (`pumice.cluster.api.apply.owners.resets`).
    """

    name: str
    api_version: str
    subresource: str = ""
    force: bool = False
    reset: tuple[str, ...] = ()

    @property
    def manager(self) -> Manager:
        """Return the owner that the applied fields get."""
        return Manager(self.name, APPLY, "", self.subresource)


def apply(live: Object | None, config: Object, who: Applicant, now: str, shape: Shape) -> Object | Refused:
    """Return the object after the apply at `now` (RFC 3339), with its managedFields; equal to `live` when nothing
    changed.

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
    # only a field that this manager applied before can have been withdrawn by it
    if last is not None:
        managed = stated
        for owned in owners.values():
            managed |= owned.paths
        merged = _pruned(merged, last.paths, managed, shape)
    change = compare(before, merged, shape)
    clashes = _clashes(owners, who.manager, ownable(change.added | change.modified, who.reset))
    if clashes and not who.force:
        # kubectl's own client-side fields are no conflict when it goes over to server-side apply
        allowed = allowed_by_last_applied(before, who.api_version, shape) if who.name == _KUBECTL else NOTHING
        refused = {other: paths - allowed for other, paths in clashes.items() if paths - allowed}
        if refused:
            return conflict(refused)
    merged = without_nulls(merged)
    owners = _settled(owners, clashes, ownable(change.removed, who.reset), who.manager)
    # the time moves only with a change, or every apply would write the object anew
    if who.manager in owners and (merged != before or last is None):
        owners[who.manager] = owners[who.manager]._replace(time=now)
    # as apimachinery's `lastappliedupdater.go`: kubectl's client-side apply can go on from the annotation
    if who.name == _KUBECTL:
        merged = with_last_applied(merged, config)
    return write_managers(merged, owners)


def _check_types(config: Object, shape: Shape) -> None:
    wrong = mistyped(config, shape)
    if wrong:
        raise ApplyError(f".{wrong[0].path}: expected {wrong[0].expected}, got {wrong[0].found}")


def _without_nulls_in_metadata(config: Object) -> Object:
    """Return the object without nulls in metadata: printed manifests write `creationTimestamp: null` without a
    meaning.
    """
    meta = section(config, "metadata")
    return {**config, "metadata": {name: each for name, each in meta.items() if each is not None}}


def _clashes(owners: Managers, me: Manager, changed: FieldSet) -> dict[Manager, FieldSet]:
    """Return the fields that change and belong to other managers."""
    return {who: owned.paths & changed for who, owned in owners.items() if who != me and owned.paths & changed}


def _settled(owners: Managers, lost: dict[Manager, FieldSet], removed: FieldSet, me: Manager) -> Managers:
    """Return the owners after all other managers have lost those fields and the removed ones."""
    result: Managers = {}
    for who, owned in owners.items():
        left = owned.paths if who == me else owned.paths - lost.get(who, NOTHING) - removed
        if left:
            result[who] = owned._replace(paths=left)
    return result


def _pruned(merged: Object, last: FieldSet, managed: FieldSet, shape: Shape) -> Object:
    """Return the merged object without the fields that its applier applied last time, no longer applies, and no other
    manager owns.
    """
    last_named, managed_named = with_named(last, shape), with_named(managed, shape)
    if last_named <= managed_named:
        return merged
    known: Known = {}
    all_named = with_named(fields_of(merged, shape, known), shape)
    # the steps of structured-merge-diff's `prune` (`merge/update.go`): take away what was applied last time,
    # give back what others own, then what was not applied last time
    pruned: Any = without(merged, last_named, shape)
    dropped = all_named - with_named(fields_of(pruned, shape, known), shape) - managed_named
    pruned = without(merged, dropped, shape)
    gone = (all_named - with_named(fields_of(pruned, shape, known), shape)) & last_named
    result: Object = pruned if gone == dropped else without(merged, gone, shape)
    return result
