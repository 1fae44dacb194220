"""Paths of fields as `metadata.managedFields` spells them.

A path is a tuple of steps: `f:name` a field, `k:{"name":"x"}` the element of a list with those keys, `v:"x"` an element
of a set.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from pumice.cluster.api.schema.plain import is_map
from pumice.cluster.api.schema.shapes import Shape

Path = tuple[str, ...]


def field(name: str) -> str:
    """The step to a field."""
    return f"f:{name}"


def steps_of(items: list[Any], shape: Shape) -> list[str | None]:
    """The steps to the elements of a list of type set or map; None for one that such a list cannot hold."""
    if shape.list_type == "set":
        return [None if each is None or isinstance(each, dict | list) else f"v:{_text(each)}" for each in items]
    inner, defaults = shape.item(), dict[str, Any]()
    for name in sorted(shape.keys):
        described = inner.named(name)
        defaults[name] = None if described is None else described.default
    return [_step_by_keys(each, defaults) if is_map(each) else None for each in items]


def _step_by_keys(item: dict[str, Any], defaults: dict[str, Any]) -> str | None:
    keys: dict[str, Any] = {}
    for name, default in defaults.items():
        key = item.get(name)
        if key is None:
            key = default
        if key is not None:
            keys[name] = key
    return f"k:{_text(keys)}" if keys else None


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
