"""What changed between two values of one shape, field by field."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from actors.api.apply.field_sets import NOTHING, FieldSet
from actors.api.apply.paths import field
from actors.api.apply.same import same
from actors.api.apply.walks import CONTAINERS, elements, is_leaf
from actors.api.schema.plain import is_list, is_map
from actors.api.schema.shapes import Shape

_ABSENT: Any = object()


class FieldDifference(NamedTuple):
    """The fields that came, changed and went between two values."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet


_NO_DIFFERENCE: Final = FieldDifference(NOTHING, NOTHING, NOTHING)


class _Found:
    """What is found at one place: of the three sets, the steps there and the sets below them."""

    def __init__(self) -> None:
        self.members: tuple[set[str], set[str], set[str]] = (set(), set(), set())
        self._inside: tuple[dict[str, FieldSet], ...] = ({}, {}, {})

    def look(self, step: str, old: Any, new: Any, shape: Shape) -> None:
        """Compare what is at a step before and after."""
        added, modified, removed = self.members
        if old is _ABSENT:
            added.add(step)
        elif new is _ABSENT:
            removed.add(step)
        if not _is_whole(old, new, shape):
            for inside, below in zip(self._inside, _differences(old, new, shape), strict=True):
                if below:
                    inside[step] = below
        elif old is not _ABSENT and new is not _ABSENT and not same(old, new, shape):
            modified.add(step)

    def difference(self) -> FieldDifference:
        return FieldDifference(*map(FieldSet, self.members, self._inside))


def compare(old: Any, new: Any, shape: Shape) -> FieldDifference:
    """What changed. A map or list that came or went counts itself beside its leaves; a whole value's change is none."""
    return _NO_DIFFERENCE if _is_whole(old, new, shape) else _differences(old, new, shape)


def _differences(old: Any, new: Any, shape: Shape) -> FieldDifference:
    if is_map(old) or is_map(new):
        return _of_maps(old if is_map(old) else {}, new if is_map(new) else {}, shape)
    return _of_lists(old if is_list(old) else [], new if is_list(new) else [], shape)


def _of_maps(old: dict[str, Any], new: dict[str, Any], shape: Shape) -> FieldDifference:
    found = _Found()
    added, modified, removed = found.members
    added |= {f"f:{name}" for name in new if name not in old}
    removed |= {f"f:{name}" for name in old if name not in new}
    for name, after in new.items():
        before = old.get(name, _ABSENT)
        if before is after:
            continue
        if after.__class__ in CONTAINERS or before.__class__ in CONTAINERS or before is None or after is None:
            found.look(field(name), before, after, shape.named(name) or shape.item())
        elif before is not _ABSENT and not same(before, after, shape.named(name) or shape.item()):
            modified.add(field(name))
    for name, before in old.items():
        if before.__class__ in CONTAINERS and name not in new:
            found.look(field(name), before, _ABSENT, shape.named(name) or shape.item())
    return found.difference()


def _of_lists(old: list[Any], new: list[Any], shape: Shape) -> FieldDifference:
    found, inner = _Found(), shape.item()
    listed, now = elements(old, shape), elements(new, shape)
    for step in listed.keys() | now.keys():
        before, after = listed.get(step, [_ABSENT]), now.get(step, [_ABSENT])
        if len(before) == len(after) == 1:
            found.look(step, before[0], after[0], inner)
        elif before != after:  # twice in a list that should hold it once: only as a whole
            found.members[1].add(step)
    return found.difference()


def _is_whole(old: Any, new: Any, shape: Shape) -> bool:
    if old is _ABSENT or new is _ABSENT:
        there = new if old is _ABSENT else old
        return not there or is_leaf(there, shape)
    filled = [value for value in (old, new) if value is not None or shape.sort == "scalar" or shape.atomic]
    if all(value in ({}, [], None) for value in filled):
        return True
    return any(is_leaf(value, shape) for value in filled) or len({is_map(value) for value in filled}) > 1
