"""Paths of fields as `metadata.managedFields` spells them, and sets of them.

A path is a tuple of steps: `f:name` a field, `k:{"name":"x"}` the element of a list with those keys, `v:"x"` an element
of a set. On the wire (FieldsV1) a set is a tree of steps, in which `.` says that the node itself belongs to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from actors.api.schema.plain import is_map
from actors.api.schema.shapes import Shape

Path = tuple[str, ...]
FieldSet = frozenset[Path]

NOTHING: Final[FieldSet] = frozenset()
_DEEPEST: Final = 200
_SELF: Final = "."


def to_fields(paths: Iterable[Path]) -> dict[str, Any]:
    """The FieldsV1 tree of a set."""
    tree: dict[str, Any] = {}
    listed = sorted(paths)
    branches = {path[:depth] for path in listed for depth in range(1, len(path))}
    for path in listed:
        node = tree
        for step in path:
            node = node.setdefault(step, {})
        if path in branches:
            node[_SELF] = {}
    return tree


def from_fields(tree: Any) -> FieldSet:
    """The set of a FieldsV1 tree; what is not well formed in it is passed over."""
    found: set[Path] = set()
    _collect(tree, (), found)
    return frozenset(found)


def _collect(tree: Any, path: Path, found: set[Path]) -> None:
    steps = {step: each for step, each in tree.items() if step[1:2] == ":"} if is_map(tree) else {}
    if path and (not steps or _SELF in tree):
        found.add(path)
    if len(path) < _DEEPEST:
        for step, each in steps.items():
            if each:
                _collect(each, (*path, step), found)
            else:
                found.add((*path, step))


def shown(path: Path) -> str:
    """A path as conflicts name it: `.spec.containers[name="web"].image`."""
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
    return f"[{','.join(f'{name}={_text(value)}' for name, value in sorted(keys.items()))}]" if is_map(keys) else rest


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def field(name: str) -> str:
    """The step to a field."""
    return f"f:{name}"


def step_of(item: Any, shape: Shape) -> str | None:
    """The step to an element of a list of type set or map; None for one that such a list cannot hold."""
    if shape.list_type == "set":
        return None if item is None or isinstance(item, dict | list) else f"v:{_text(item)}"
    if not is_map(item):
        return None
    keys: dict[str, Any] = {}
    for name in sorted(shape.keys):
        key = item.get(name)
        if key is None:
            inner = shape.item().named(name)
            key = None if inner is None else inner.default
        if key is not None:
            keys[name] = key
    return f"k:{_text(keys)}" if keys else None


def by_step(paths: Iterable[Path]) -> dict[str, set[Path]]:
    """A set's parts by first step, without it; the step itself is the empty path."""
    found: dict[str, set[Path]] = {}
    for path in paths:
        part = found.get(path[0])
        if part is None:
            part = found[path[0]] = set()
        part.add(path[1:])
    return found
