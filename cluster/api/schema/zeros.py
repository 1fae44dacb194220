# SPDX-License-Identifier: Apache-2.0
"""Absent fields and zeros that mean the same to Go, by the schema table.

A kube-apiserver keeps Go's structs, so `hostPort: 0` and no hostPort are one. A typed client leaves out one of them and
writes the other: what it read and writes back must not look like a change.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

from pumice.cluster.api.schema.table import Field, element, flat_fields, is_message, of_kind
from pumice.core.objects.metadata import Object, is_list, is_mapping

_ZEROS: Final[dict[str, tuple[Any, ...]]] = {
    "string": ("",),
    "byte": ("",),
    "boolean": (False,),
    "int32": (0,),
    "int64": (0,),
    "double": (0,),
    "Quantity": ("0", 0),
    "IntOrString": (0,),
}


def in_form_of(old: Object, new: Object, group: str, version: str, kind: str) -> Object:
    """Return the new object, with zeros present or absent as in the old one, which it shares nothing with."""
    found = of_kind(group, version, kind)
    return new if found is None else _fields(old, new, found.name)


def _value(old: Any, new: Any, type_: str) -> Any:
    # Most parts are equal, and a comparison is far faster than the walk.
    if old == new:
        return new
    if is_mapping(old) and is_mapping(new):
        if type_.startswith("{}"):
            inner = element(type_)
            return {name: _value(old[name], each, inner) if name in old else each for name, each in new.items()}
        return _fields(old, new, type_) if is_message(type_) else new
    if is_list(old) and is_list(new) and type_[0] in "[@":
        # Item by item: each stays what it means, whatever stands in its place in the old list.
        inner = element(type_)
        return [_value(before, each, inner) for before, each in zip(old, new, strict=False)] + new[len(old) :]
    return new


def _fields(old: Object, new: Object, type_: str) -> Object:
    rows = flat_fields(type_)
    made: Object = {}
    for name, value in new.items():
        row = rows.get(name)
        if row is None:
            made[name] = value
        elif name in old:
            made[name] = _value(old[name], value, row.type)
        elif not _is_absent(value, row):
            made[name] = value
    for name, value in old.items():
        if name not in new and (row := rows.get(name)) is not None and _is_absent(value, row):
            made[name] = deepcopy(value)
    return made


def _is_absent(value: object, row: Field) -> bool:
    """Return whether a value means the same as its absence."""
    if row.many:
        return value in ([], {})
    # To a pointer in Go a zero is a value.
    if "*" in row.flags:
        return False
    if is_message(row.type):
        rows = flat_fields(row.type)
        return is_mapping(value) and all(
            (inner := rows.get(name)) is not None and _is_absent(each, inner) for name, each in value.items()
        )
    return value in _ZEROS.get(row.type, ())
