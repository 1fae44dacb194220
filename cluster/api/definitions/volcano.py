# SPDX-License-Identifier: Apache-2.0
"""Volcano's own CustomResourceDefinitions, made from the schema table (source: Volcano `config/crd`).

Each kind has them twice. `schema_of` holds only what goes beyond types (defaults, and rules of single fields): types
have been judged by then (`pumice.cluster.api.schema.field_types`). `definitions` are the objects that a served cluster
lists, so that clients which wait for them find them established; the kinds themselves are built in.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec

from pumice.cluster.api import schema
from pumice.cluster.api.definitions.values import value_problems
from pumice.cluster.api.definitions.work import TooDearError, Work
from pumice.cluster.api.kinds import KINDS, Kind
from pumice.cluster.api.refusals import Cause
from pumice.cluster.api.schema.table import Field, element, flat_fields, is_message
from pumice.core.objects.metadata import Object, is_list, is_mapping

Schema = Object
_OWN: Final = "volcano."


@cache
def schema_of(group: str, version: str, kind: str) -> Schema | None:
    """Return the schema of a Volcano kind; None for any other. All readers share it, so it must not be changed."""
    found = schema.of_kind(group, version, kind)
    return _of_type(found.name) if found is not None and found.name.startswith(_OWN) else None


@cache
def _of_type(type_: str) -> Schema:
    """Return the schema of a type; empty for a type that the definitions do not describe."""
    inner = element(type_)
    if inner != type_:
        below = _of_type(inner)
        return {("additionalProperties" if type_.startswith("{") else "items"): below} if below else {}
    if not is_message(type_) or not type_.startswith(_OWN):
        return {}
    fields = flat_fields(type_)
    made: Schema = {}
    if required := [name for name, field in fields.items() if field.required]:
        made["required"] = required
    if properties := {name: below for name, field in fields.items() if (below := _of_field(field))}:
        made["properties"] = properties
    return made


def _of_field(field: Field) -> Schema:
    rules = field.rules
    found: Schema = {
        "default": rules.default,
        "enum": list(rules.enum) or None,
        "minimum": _whole(rules.minimum),
        "maximum": _whole(rules.maximum),
        "minLength": rules.min_length,
        "maxLength": rules.max_length,
        "minItems": rules.min_items,
        "pattern": rules.pattern or None,
    }
    return {name: value for name, value in found.items() if value is not None} | _of_type(field.type)


# --- Asked at every write


def fill_in_defaults(obj: Object, kind: Kind) -> None:
    """Fill in what the definition of a Volcano kind says where the object leaves it out."""
    found = schema.of_kind(kind.group, kind.version, kind.kind)
    if found is not None:
        _fill_in(obj, found.name)


def _fill_in(holder: Object, name: str) -> None:
    # fields that lead to no default, like the pod templates of a Job, are never walked through
    for field, type_, default in _leading(name):
        value: Any = holder.get(field)
        if value is not None:
            _fill_in_below(value, type_)
        elif default is not None:
            holder[field] = default


def _fill_in_below(value: object, type_: str) -> None:
    inner = element(type_)
    if inner == type_:
        if is_message(type_) and is_mapping(value):
            _fill_in(value, type_)
    elif is_mapping(value) or is_list(value):
        for each in value.values() if is_mapping(value) else value:
            _fill_in_below(each, inner)


@cache
def _leading(name: str) -> tuple[tuple[str, str, Any], ...]:
    """Return the fields of a message that have a default or contain one, each with its type and default."""
    fields = flat_fields(name).items() if name.startswith(_OWN) else ()
    return tuple(
        (field, each.type, each.rules.default)
        for field, each in fields
        if each.rules.default is not None or _leads(each.type)
    )


def _leads(type_: str) -> bool:
    inner = element(type_)
    return _leads(inner) if inner != type_ else is_message(type_) and bool(_leading(type_))


def volcano_problems(obj: Object, kind: Kind) -> list[Cause]:
    """Return the problems of an object, whose fields have the right types, by the definition of its kind."""
    found = schema_of(kind.group, kind.version, kind.kind)
    # most objects are as they should be, which takes a tenth of the time to see
    if found is None or schema.is_allowed(obj, kind.group, kind.version, kind.kind):
        return []
    try:
        return value_problems(obj, found, Work(obj))
    except TooDearError as error:
        return [Cause("", "FieldValueInvalid", f"Invalid value: {error}")]


def _whole(bound: float | None) -> float | None:
    """Return a bound as it is written: 1, not 1.0."""
    return int(bound) if bound is not None and bound.is_integer() else bound


# --- As objects

_ANYTHING: Final[Schema] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_NUMBER_OR_TEXT: Final[Schema] = {"x-kubernetes-int-or-string": True}
_TYPES: Final[dict[str, Schema]] = {
    "string": {"type": "string"},
    "boolean": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "double": {"type": "number"},
    "Quantity": _NUMBER_OR_TEXT,
    "IntOrString": _NUMBER_OR_TEXT,
    "Time": {"type": "string", "format": "date-time"},
    "Duration": {"type": "string"},
}


def definitions() -> list[Object]:
    """Return a CustomResourceDefinition for each of Volcano's kinds, as its installer creates it. Parts that Kubernetes
    defines (pod templates, metadata) may hold anything there.
    """
    return [_definition(row) for row in KINDS.values() if row.group.endswith(".volcano.sh")]


def _definition(row: Kind) -> Object:
    names: Object = {"plural": row.plural, "singular": row.singular, "kind": row.kind, "listKind": f"{row.kind}List"}
    if row.short_names:
        names["shortNames"] = list(row.short_names)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": row.resource},
        "spec": {
            "group": row.group,
            "scope": "Namespaced" if row.namespaced else "Cluster",
            "names": names,
            "versions": [_version(row, version) for version in row.served_versions],
        },
    }


def _version(row: Kind, version: str) -> Object:
    found = schema.of_kind(row.group, row.version, row.kind)
    whole = _ANYTHING if found is None else _structure(found.name)
    made: Object = {"name": version, "served": True, "storage": version == row.version}
    made["schema"] = {"openAPIV3Schema": {**whole, "properties": {**whole.get("properties", {}), **_ROOT}}}
    if row.columns:
        made["additionalPrinterColumns"] = msgspec.to_builtins(row.columns)
    if row.status:
        made["subresources"] = {"status": {}}
    return made


_ROOT: Final[Schema] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object"},
}


def _structure(type_: str) -> Schema:
    """Return the structural schema of a type."""
    inner = element(type_)
    if inner != type_:
        below = _structure(inner)
        is_map = type_.startswith("{")
        return {"type": "object", "additionalProperties": below} if is_map else {"type": "array", "items": below}
    if not is_message(type_) or not type_.startswith(_OWN):
        return _TYPES.get(type_, _ANYTHING)
    rules = _of_type(type_)
    properties = {name: _field(field, rules) for name, field in flat_fields(type_).items()}
    required = {"required": rules["required"]} if "required" in rules else {}
    return {"type": "object", "properties": properties, **required}


def _field(field: Field, rules: Schema) -> Schema:
    said = rules.get("properties", {}).get(field.name, {})
    own = {name: value for name, value in said.items() if name not in ("properties", "items", "additionalProperties")}
    own.pop("required", None)
    return {**_structure(field.type), **own}
