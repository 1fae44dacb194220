# SPDX-License-Identifier: Apache-2.0
"""Sets of fields as trees of steps, as structured-merge-diff keeps them: shared beginnings of paths stand once.

An object of 64 KiB has thousands of fields, most of them side by side: there the set's operations are those of Python's
own sets and dictionaries, and whole branches that only one side has are passed on as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from pumice.cluster.api.schema.shapes import Shape
from pumice.core.objects.metadata import Object, is_mapping

# --- Paths of fields
# A path is a tuple of steps: `f:name` a field, `k:{"name":"x"}` the element of a list with those keys, `v:"x"` an
# element of a set.

Path = tuple[str, ...]


def field(name: str) -> str:
    """Return the step to a field."""
    return f"f:{name}"


def steps_of(items: list[Any], shape: Shape) -> list[str | None]:
    """Return the steps to the elements of a list of type set or map; None for an element that such a list cannot
    hold.
    """
    if shape.list_type == "set":
        return [None if each is None or isinstance(each, dict | list) else f"v:{_text(each)}" for each in items]
    inner, defaults = shape.item(), Object()
    # sorted: a step has one spelling, whatever the order of the definition's keys
    for name in sorted(shape.keys):
        described = inner.named(name)
        defaults[name] = None if described is None else described.default
    return [_step_by_keys(each, defaults) if is_mapping(each) else None for each in items]


def _step_by_keys(item: Object, defaults: Object) -> str | None:
    keys: Object = {}
    for name, default in defaults.items():
        key = item.get(name)
        # a key may have a default: a port without a protocol is the one with TCP
        if key is None:
            key = default
        if key is not None:
            keys[name] = key
    return f"k:{_text(keys)}" if keys else None


def shown(path: Path) -> str:
    """Return a path as conflicts name it: `.spec.containers[name="web"].image`."""
    return "".join(_shown_step(step) for step in path)


def _shown_step(step: str) -> str:
    sort, rest = step[:1], step[2:]
    if sort == "f":
        return f".{rest}"
    if sort == "v":
        return f"[={rest}]"
    if sort != "k":
        return f"[{rest}]"
    try:
        keys = json.loads(rest)
    except ValueError:
        return f"[{rest}]"
    return (
        f"[{','.join(f'{name}={_text(value)}' for name, value in sorted(keys.items()))}]" if is_mapping(keys) else rest
    )


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()


_DEEPEST: Final = 200
_SELF: Final = "."


@dataclass(slots=True)
class FieldSet:
    """A set of paths, which must not change once it is made: the member steps at this level, and the sets below steps.

    A step may be in both: a field and some of its parts. No set in `inside` is empty.
    """

    members: AbstractSet[str]
    inside: Mapping[str, FieldSet]

    def __bool__(self) -> bool:
        return bool(self.members or self.inside)

    def __iter__(self) -> Iterator[Path]:
        for step in self.members:
            yield (step,)
        for step, below in self.inside.items():
            for path in below:
                yield (step, *path)

    def __or__(self, other: FieldSet) -> FieldSet:
        # branches are shared between sets: equal ones are mostly the same one
        if self is other or not self or not other:
            return self or other
        inside = dict(self.inside)
        for step, below in other.inside.items():
            mine = inside.get(step)
            inside[step] = below if mine is None else mine | below
        return FieldSet(self.members | other.members, inside)

    def __sub__(self, other: FieldSet) -> FieldSet:
        if self is other:
            return NOTHING
        inside = dict(self.inside)
        for step in inside.keys() & other.inside.keys():
            if left := inside[step] - other.inside[step]:
                inside[step] = left
            else:
                del inside[step]
        return FieldSet(self.members - other.members, inside)

    def __and__(self, other: FieldSet) -> FieldSet:
        if self is other:
            return self
        shared = ((step, self.inside[step] & other.inside[step]) for step in self.inside.keys() & other.inside.keys())
        return FieldSet(self.members & other.members, {step: both for step, both in shared if both})

    def __le__(self, other: FieldSet) -> bool:
        return (
            self.members <= other.members
            and self.inside.keys() <= other.inside.keys()
            and all(below <= other.inside[step] for step, below in self.inside.items())
        )

    def without_branches(self, steps: AbstractSet[str]) -> FieldSet:
        """Return the set without these steps and everything below them."""
        inside = {step: below for step, below in self.inside.items() if step not in steps}
        return FieldSet(self.members - steps, inside)


NOTHING: Final = FieldSet(frozenset(), {})


def field_set(paths: Iterable[Path]) -> FieldSet:
    """Return the set of these paths; the empty path, which is the object itself, is left out."""
    members: set[str] = set()
    inside: dict[str, list[Path]] = {}
    for path in paths:
        if len(path) == 1:
            members.add(path[0])
        elif path:
            inside.setdefault(path[0], []).append(path[1:])
    return FieldSet(members, {step: field_set(below) for step, below in inside.items()})


def to_fields(paths: FieldSet) -> Object:
    """Return the FieldsV1 tree of a set, in which `.` says that the node itself belongs to it."""
    inside, tree = paths.inside, Object()
    for step in sorted(paths.members | inside.keys()):
        below = to_fields(inside[step]) if step in inside else {}
        tree[step] = {_SELF: {}, **below} if below and step in paths.members else below
    return tree


def from_fields(tree: object, depth: int = 1) -> FieldSet:
    """Return the set of a FieldsV1 tree; malformed parts are skipped, and those deeper than 200 steps."""
    if not is_mapping(tree) or depth > _DEEPEST:
        return NOTHING
    members = {step for step, each in tree.items() if not each and step[1:2] == ":"}
    inside: dict[str, FieldSet] = {}
    for step, each in tree.items():
        if each and step[1:2] == ":":
            if not is_mapping(each) or _SELF in each or all(name[1:2] != ":" for name in each):
                members.add(step)
            if below := from_fields(each, depth + 1):
                inside[step] = below
    return FieldSet(members, inside)
