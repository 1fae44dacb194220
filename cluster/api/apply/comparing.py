# SPDX-License-Identifier: Apache-2.0
"""Changes between two values of one shape, field by field."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from pumice.cluster.api.apply.field_sets import NOTHING, FieldSet, field
from pumice.cluster.api.apply.walks import elements, is_leaf
from pumice.cluster.api.schema.shapes import Shape, field_shape
from pumice.core.errors import QuantityError
from pumice.core.objects.metadata import COMPOUND, Object, is_list, is_mapping
from pumice.core.quantity import quantity_of

# --- Equality

_SPELLINGS: Final = (str, int, float)


def same(old: object, new: object, shape: Shape) -> bool:
    """Return whether two leaves are equal. The server spells quantities in one way, manifests in any."""
    # in Python True equals 1, in JSON it does not
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    if old == new or shape.scalar != "quantity":
        return bool(old == new)
    if not isinstance(old, _SPELLINGS) or not isinstance(new, _SPELLINGS):
        return False
    try:
        return quantity_of(old).compare(quantity_of(new)) == 0
    except QuantityError:
        return False


_ABSENT: Any = object()
_NOT_THERE: Final[list[Any]] = [_ABSENT]


class FieldDifference(NamedTuple):
    """The fields that were added, changed and removed between two values."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet


_NO_DIFFERENCE: Final = FieldDifference(NOTHING, NOTHING, NOTHING)


def compare(old: object, new: object, shape: Shape) -> FieldDifference:
    """Return the changes. An added or removed map or list counts itself beside its leaves; a changed whole value does
    not.
    """
    return _NO_DIFFERENCE if _is_whole(old, new, shape) else _differences(old, new, shape)


def _differences(old: object, new: object, shape: Shape) -> FieldDifference:
    if is_mapping(old) or is_mapping(new):
        return _of_maps(old if is_mapping(old) else {}, new if is_mapping(new) else {}, shape)
    return _of_lists(old if is_list(old) else [], new if is_list(new) else [], shape)


def _of_maps(old: Object, new: Object, shape: Shape) -> FieldDifference:
    added, modified = {f"f:{name}" for name in new if name not in old}, set[str]()
    removed = {f"f:{name}" for name in old if name not in new}
    below: dict[str, FieldDifference] = {}
    for name, after in new.items():
        before = old.get(name, _ABSENT)
        # a merged object shares with the old one what did not change: such parts cost one comparison
        if before is not after and (before is not _ABSENT or after.__class__ in COMPOUND):
            _look(field(name), before, after, field_shape(shape, name), modified, below)
    for name, before in old.items():
        if name not in new and before.__class__ in COMPOUND:
            _look(field(name), before, _ABSENT, field_shape(shape, name), modified, below)
    return _put_together(added, modified, removed, below)


def _of_lists(old: list[Any], new: list[Any], shape: Shape) -> FieldDifference:
    listed, now, inner = elements(old, shape), elements(new, shape), shape.item()
    added, removed = {step for step, items in now.items() if step not in listed and len(items) == 1}, set[str]()
    modified, below = set[str](), dict[str, FieldDifference]()
    for step in listed.keys() | now.keys():
        before, after = listed.get(step, _NOT_THERE), now.get(step, _NOT_THERE)
        if len(before) == len(after) == 1:
            _look(step, before[0], after[0], inner, modified, below)
            if after is _NOT_THERE:
                removed.add(step)
        elif before != after:  # twice in a list that should hold it once: only as a whole
            modified.add(step)
    return _put_together(added, modified, removed, below)


def _look(
    step: str, old: object, new: object, shape: Shape, modified: set[str], below: dict[str, FieldDifference]
) -> None:
    """Compare the values at a step before and after; the caller handles added and removed ones."""
    if not _is_whole(old, new, shape):
        below[step] = _differences(old, new, shape)
    elif old is not _ABSENT and new is not _ABSENT and not same(old, new, shape):
        modified.add(step)


def _put_together(
    added: set[str], modified: set[str], removed: set[str], below: dict[str, FieldDifference]
) -> FieldDifference:
    if not below:
        return FieldDifference(_one(added, {}), _one(modified, {}), _one(removed, {}))
    return FieldDifference(
        _one(added, {step: each.added for step, each in below.items() if each.added}),
        _one(modified, {step: each.modified for step, each in below.items() if each.modified}),
        _one(removed, {step: each.removed for step, each in below.items() if each.removed}),
    )


def _one(members: set[str], inside: dict[str, FieldSet]) -> FieldSet:
    return FieldSet(members, inside) if members or inside else NOTHING


def _is_whole(old: object, new: object, shape: Shape) -> bool:
    if old.__class__ not in COMPOUND and new.__class__ not in COMPOUND:
        return True
    if old is _ABSENT or new is _ABSENT:
        there = new if old is _ABSENT else old
        return not there or is_leaf(there, shape)
    filled = [value for value in (old, new) if value is not None or shape.sort == "scalar" or shape.atomic]
    if all(value in ({}, [], None) for value in filled):
        return True
    return any(is_leaf(value, shape) for value in filled) or len({is_mapping(value) for value in filled}) > 1
