# SPDX-License-Identifier: Apache-2.0
"""Walks over values and their shapes: the fields of a value, and the value without some."""

from __future__ import annotations

from typing import Any

from pumice.cluster.api.apply.field_sets import NOTHING, FieldSet, field, steps_of
from pumice.cluster.api.schema.shapes import Shape, field_shape
from pumice.core.objects.metadata import COMPOUND, Object, is_list, is_mapping


def is_leaf(value: object, shape: Shape) -> bool:
    """Return whether a value has one owner as a whole."""
    if is_mapping(value):
        return shape.sort not in ("map", "any") or shape.atomic
    if is_list(value):
        return shape.sort != "list" or shape.list_type == "atomic"
    return True


Known = dict[int, tuple[Any, FieldSet]]
"""Values that were walked already, by identity, with their fields."""


def fields_of(value: Any, shape: Shape, known: Known | None = None) -> FieldSet:
    """Return the leaves of a value, with elements of keyed lists and entries of plain maps; none of a value that is a
    leaf.

    `known` gets what is found, and tells it again of the parts that another value shares with this one.
    """
    if is_leaf(value, shape):
        return NOTHING
    if known is None:
        known = {}
    if (held := known.get(id(value))) is not None:
        return held[1]
    found = _fields_of_map(value, shape, known) if is_mapping(value) else _fields_of_list(value, shape, known)
    # the value is held, too: an identity is only unique while its object lives
    known[id(value)] = value, found
    return found


def _fields_of_map(value: Object, shape: Shape, known: Known) -> FieldSet:
    members = {f"f:{name}" for name in value}
    inside: dict[str, FieldSet] = {}
    for name, each in value.items():
        if each.__class__ in COMPOUND:
            described, step = shape.named(name), field(name)
            inner = described or shape.item()
            if below := fields_of(each, inner, known):
                inside[step] = below
            if described is not None and each != {} and not is_leaf(each, inner):
                members.discard(step)
    return FieldSet(members, inside)


def _fields_of_list(value: list[Any], shape: Shape, known: Known) -> FieldSet:
    inside: dict[str, FieldSet] = {}
    held, inner = elements(value, shape), shape.item()
    for step, items in held.items():
        if len(items) == 1 and (below := fields_of(items[0], inner, known)):
            inside[step] = below
    return FieldSet(set(held), inside)


def elements(values: list[Any], shape: Shape) -> dict[str, list[Any]]:
    """Return the elements of a list of type set or map by their step; several where an element stands twice."""
    found: dict[str, list[Any]] = {}
    for step, each in zip(steps_of(values, shape), values, strict=True):
        if step is not None:
            found.setdefault(step, []).append(each)
    return found


def without(value: Any, gone: FieldSet, shape: Shape) -> Any:
    """Return the value without those fields; null for a map or list that keeps nothing."""
    if not gone or is_leaf(value, shape):
        return value
    members, inside = gone.members, gone.inside
    if is_mapping(value):
        kept = {name: each for name, each in value.items() if f"f:{name}" not in members}
        for step, below in inside.items():
            name = step[2:]
            if name in kept and step.startswith("f:"):
                kept[name] = without(kept[name], below, field_shape(shape, name))
        return kept or None
    both = zip(steps_of(value, shape), value, strict=True)
    left = [without(each, inside.get(step or "", NOTHING), shape.item()) for step, each in both if step not in members]
    return left or None


def without_nulls(value: object) -> Any:
    """Return the value without nulls at any depth."""
    if is_mapping(value):
        return {
            name: without_nulls(each) if each.__class__ in COMPOUND else each
            for name, each in value.items()
            if each is not None
        }
    if is_list(value):
        return [without_nulls(each) for each in value if each is not None]
    return value


def with_named(paths: FieldSet, shape: Shape) -> FieldSet:
    """Return the set and every described field on the way to its members: `a` beside `a.b.c`, but not `a.b` of a plain
    map.
    """
    if not paths.inside:
        return paths
    members, inside = set(paths.members), dict[str, FieldSet]()
    for step, below in paths.inside.items():
        inner = shape.named(step[2:]) if step.startswith("f:") else None
        if inner is not None:
            members.add(step)
        inside[step] = with_named(below, inner or shape.item())
    return FieldSet(members, inside)
