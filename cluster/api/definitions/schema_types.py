"""Types of a definition's schema in expressions (source: apiserver's `pkg/cel/common/schemas.go`).

Fields whose schema says no type are not known to expressions; unknown fields that are kept are not either.
"""

from __future__ import annotations

import re
from typing import Any, Final

from pumice.cluster.api.fields import is_mapping
from pumice.core.kube.cel.reading import RESERVED
from pumice.core.kube.cel.scopes import object_of
from pumice.core.kube.cel.types import BOOL, BYTES, DYN, INT, STRING, CelType, list_of, map_of

Schema = dict[str, Any]

_DOUBLE: Final = CelType("double", reading="double")
_TIME: Final = "timestamp"
_FORMATS: Final = {
    "byte": CelType(BYTES.name, reading="byte"),
    "duration": CelType("duration", reading="duration"),
    "date": CelType(_TIME, reading="date"),
    "date-time": CelType(_TIME, reading="date-time"),
}
_SIMPLE: Final = {"boolean": BOOL, "integer": INT, "number": _DOUBLE}
_RESERVED: Final = RESERVED | {"true", "false", "null"}
_NAME: Final = re.compile(r"[A-Za-z_.\-/][A-Za-z0-9_.\-/]*")
_MARKED: Final = re.compile(r"__|[./-]")
_MARKS: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


def escaped(name: str) -> str:
    """Return a field's name as expressions have it, "" for one that they cannot name."""
    if name in _RESERVED:
        return f"__{name}__"
    return _MARKED.sub(lambda match: _MARKS[match[0]], name) if _NAME.fullmatch(name) else ""


def schema_type(schema: Schema, *, root: bool = False) -> CelType | None:
    """Return the type of values of a schema, None where expressions do not know them. `root`: a whole object."""
    if schema.get("x-kubernetes-int-or-string"):
        return DYN
    match schema.get("type"):
        case "array":
            return _array_type(schema)
        case "object":
            return _object_type(schema, root=root or bool(schema.get("x-kubernetes-embedded-resource")))
        case "string":
            return _FORMATS.get(schema.get("format") or "", STRING)
        case simple:
            return _SIMPLE.get(simple or "")


def _array_type(schema: Schema) -> CelType | None:
    items: Any = schema.get("items")
    element = schema_type(items) if is_mapping(items) else None
    if element is None:
        return None
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return CelType("list", (element,), reading="set")
        case "map":
            keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
            return CelType("list", (element,), reading="keyed", keys=keys)
        case _:
            return list_of(element)


def _object_type(schema: Schema, *, root: bool) -> CelType | None:
    more: Any = schema.get("additionalProperties")
    if is_mapping(more) and not root:
        value = schema_type(more)
        return None if value is None else map_of(STRING, value)
    properties: dict[str, Schema] = schema.get("properties") or {}
    fields: dict[str, CelType] = {}
    for name, below in properties.items():
        kind, known = schema_type(below) if is_mapping(below) else None, escaped(name)
        if kind is not None and known:
            fields[known] = kind
    if root:
        fields |= {"apiVersion": STRING, "kind": STRING, "metadata": _METADATA}
    return object_of(fields)


_METADATA: Final = object_of({"name": STRING, "generateName": STRING})
