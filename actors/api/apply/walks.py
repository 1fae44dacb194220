"""Walks over values and their shapes: which fields a value has, what changed between two, what is left without some."""

from __future__ import annotations

from typing import Any, NamedTuple

from actors.api.apply.paths import FieldSet, Path, by_step, field, step_of
from actors.api.apply.same import same
from actors.api.schema.plain import is_list, is_map
from actors.api.schema.shapes import Shape, field_shape

_ABSENT: Any = object()


class FieldDifference(NamedTuple):
    """The fields that came, changed and went between two values."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet


def is_leaf(value: Any, shape: Shape) -> bool:
    """Whether a value has one owner as a whole."""
    if is_map(value):
        return shape.sort not in ("map", "any") or shape.atomic
    if is_list(value):
        return shape.sort != "list" or shape.list_type == "atomic"
    return True


def fields_of(value: Any, shape: Shape) -> FieldSet:
    """The leaves of a value, elements of keyed lists and entries of plain maps too."""
    found: set[Path] = set()
    _fields(value, shape, (), found)
    return frozenset(found)


def _fields(value: Any, shape: Shape, path: Path, found: set[Path]) -> None:
    if is_leaf(value, shape):
        found.add(path)
    elif is_map(value):
        of_others = shape.item()
        for name, each in value.items():
            inner, described = (*path, field(name)), shape.named(name)
            if described is None or each is None or each == {}:
                found.add(inner)
            if described is not None or isinstance(each, dict | list):
                _fields(each, described or of_others, inner, found)
    else:
        for step, items in elements(value, shape).items():
            inner = (*path, step)
            found.add(inner)
            if len(items) == 1:
                _fields(items[0], shape.item(), inner, found)


def elements(values: list[Any], shape: Shape) -> dict[str, list[Any]]:
    """The elements of a list of type set or map by their step; more than one when it stands there twice."""
    found: dict[str, list[Any]] = {}
    for each in values:
        step = step_of(each, shape)
        if step is not None:
            found.setdefault(step, []).append(each)
    return found


def compare(old: Any, new: Any, shape: Shape) -> FieldDifference:
    """What changed. A map or list that came or went counts itself beside its leaves."""
    added: set[Path] = set()
    modified: set[Path] = set()
    removed: set[Path] = set()
    _compare(old, new, shape, (), (added, modified, removed))
    return FieldDifference(frozenset(added - {()}), frozenset(modified - {()}), frozenset(removed - {()}))


def _compare(old: Any, new: Any, shape: Shape, path: Path, found: tuple[set[Path], set[Path], set[Path]]) -> None:
    added, modified, removed = found
    if old is _ABSENT:
        added.add(path)
    elif new is _ABSENT:
        removed.add(path)
    if _is_whole(old, new, shape):
        if old is not _ABSENT and new is not _ABSENT and not same(old, new, shape):
            modified.add(path)
        return
    if is_map(old) or is_map(new):
        left, right = old if is_map(old) else {}, new if is_map(new) else {}
        of_others = shape.item()
        for name in left.keys() | right.keys():
            before, after = left.get(name, _ABSENT), right.get(name, _ABSENT)
            if before is _ABSENT and not isinstance(after, dict | list):
                added.add((*path, field(name)))
            elif after is _ABSENT and not isinstance(before, dict | list):
                removed.add((*path, field(name)))
            elif before is not after:
                _compare(before, after, shape.named(name) or of_others, (*path, field(name)), found)
    else:
        listed = elements(old, shape) if is_list(old) else {}
        now = elements(new, shape) if is_list(new) else {}
        for step in listed.keys() | now.keys():
            _compare_items(listed.get(step, []), now.get(step, []), shape.item(), (*path, step), found)


def _is_whole(old: Any, new: Any, shape: Shape) -> bool:
    if old is _ABSENT or new is _ABSENT:
        there = new if old is _ABSENT else old
        return there is None or there in ({}, []) or is_leaf(there, shape)
    filled = [value for value in (old, new) if value is not None or shape.sort == "scalar" or shape.atomic]
    if all(value in ({}, [], None) for value in filled):
        return True
    return any(is_leaf(value, shape) for value in filled) or len({is_map(value) for value in filled}) > 1


def _compare_items(
    old: list[Any], new: list[Any], shape: Shape, path: Path, found: tuple[set[Path], set[Path], set[Path]]
) -> None:
    if len(old) > 1 or len(new) > 1:  # twice in a list that should hold it once: only as a whole
        if old != new:
            found[1].add(path)
        return
    _compare(old[0] if old else _ABSENT, new[0] if new else _ABSENT, shape, path, found)


def without(value: Any, gone: set[Path] | FieldSet, shape: Shape) -> Any:
    """The value without those fields; null for a map or list that keeps nothing."""
    if not gone or is_leaf(value, shape):
        return value
    parts = by_step(gone)
    if is_map(value):
        kept: dict[str, Any] = {}
        for name, each in value.items():
            part = parts.get(field(name))
            if part is None:
                kept[name] = each
            elif () not in part:
                kept[name] = without(each, part, field_shape(shape, name))
        return kept or None
    left: list[Any] = []
    for each in value:
        part = parts.get(step_of(each, shape) or "", set())
        if () not in part:
            left.append(without(each, part, shape.item()))
    return left or None


def without_nulls(value: Any) -> Any:
    """The value without nulls at any depth."""
    if is_map(value):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    if is_list(value):
        return [without_nulls(each) for each in value if each is not None]
    return value


def with_named(paths: FieldSet, shape: Shape) -> FieldSet:
    """The set and every described field on the way to its members: `a` beside `a.b.c`, but not `a.b` of a plain map."""
    found = set(paths)
    shapes: dict[Path, Shape] = {(): shape}
    for path in paths:
        _walk_to(path[:-1], shapes, found)
    return frozenset(found)


def _walk_to(path: Path, shapes: dict[Path, Shape], found: set[Path]) -> Shape:
    """The shape at a path, with all on the way to it remembered; `found` gets those that are described."""
    known = shapes.get(path)
    if known is None:
        above, step = _walk_to(path[:-1], shapes, found), path[-1]
        inner = above.named(step[2:]) if step.startswith("f:") else None
        if inner is not None:
            found.add(path)
        known = shapes[path] = inner or above.item()
    return known
