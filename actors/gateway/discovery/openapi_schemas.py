"""OpenAPI v3 schemas of the built-in kinds, made from the schema table.

They carry what clients merge by: patch strategies and keys, types of lists and maps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pumice.cluster.api.schema.model import Field, SchemaMessage, element
from pumice.cluster.api.schema.table import flat_fields, is_message, message
from pumice.core.objects.metadata import Object

PREFIX: Final = "io.k8s.api."
COMPONENTS: Final = "#/components/schemas/"
_DATE: Final[Object] = {"type": "string", "format": "date-time"}
PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_ANYTHING: Final[Object] = {PRESERVE: True}
_TYPES: Final[dict[str, Object]] = {
    "string": {"type": "string"},
    "boolean": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "double": {"type": "number", "format": "double"},
    "byte": {"type": "string", "format": "byte"},
    "Quantity": {"type": "string"},
    "IntOrString": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    "Time": _DATE,
    "MicroTime": _DATE,
    "Duration": {"type": "string"},
    "FieldsV1": {"type": "object"},
    "RawExtension": {"type": "object", **_ANYTHING},
}


def reference(name: str) -> Object:
    """A reference to a message's schema."""
    return {"$ref": COMPONENTS + schema_name(name)}


def schema_name(name: str) -> str:
    """The name of a message's schema."""
    return f"{PREFIX}{name}"


def schemas_of(roots: Iterable[SchemaMessage]) -> dict[str, Object]:
    """The schemas of messages, and of all that they are made of, by name."""
    made: dict[str, Object] = {}
    waiting = [root.name for root in roots]
    while waiting:
        name = waiting.pop()
        if schema_name(name) in made:
            continue
        fields = flat_fields(name)
        made[schema_name(name)] = _schema(message(name), fields)
        waiting += [item for field in fields.values() if is_message(item := _innermost(field.type))]
    return made


def _innermost(type_: str) -> str:
    while type_[0] in "[{@":
        type_ = element(type_)
    return type_


def _schema(described: SchemaMessage, fields: dict[str, Field]) -> Object:
    made: Object = {"type": "object"}
    if described.doc:
        made["description"] = described.doc
    made["properties"] = {name: _property(field) for name, field in fields.items()}
    if required := [name for name, field in fields.items() if field.required]:
        made["required"] = required
    if described.atomic:
        made["x-kubernetes-map-type"] = "atomic"
    if described.open:
        made |= _ANYTHING
    return made


def _property(field: Field) -> Object:
    rules = field.rules
    made: Object = _typed(field.type)
    if "$ref" in made and (rules.doc or "a" in field.flags):
        made = {"allOf": [made]}
    if rules.doc:
        made["description"] = rules.doc
    if "a" in field.flags and field.many != "list":
        made["x-kubernetes-map-type"] = "atomic"
    if field.many == "list":
        made |= _list_rules(field)
    return made | _value_rules(field)


def _list_rules(field: Field) -> Object:
    rules = field.rules
    made: Object = {}
    if rules.merge_key:
        made["x-kubernetes-patch-merge-key"] = rules.merge_key
    if rules.strategy:
        made["x-kubernetes-patch-strategy"] = ",".join(rules.strategy)
    if rules.list_type:
        made["x-kubernetes-list-type"] = rules.list_type
    if rules.keys:
        made["x-kubernetes-list-map-keys"] = list(rules.keys)
    return made


def _value_rules(field: Field) -> Object:
    rules = field.rules
    found: dict[str, Any] = {
        "default": rules.default,
        "enum": list(rules.enum) or None,
        "minimum": rules.minimum,
        "maximum": rules.maximum,
        "minLength": rules.min_length,
        "maxLength": rules.max_length,
        "minItems": rules.min_items,
        "pattern": rules.pattern or None,
    }
    if field.many != "list" and rules.strategy:
        found["x-kubernetes-patch-strategy"] = ",".join(rules.strategy)
    return {name: value for name, value in found.items() if value is not None}


def _typed(type_: str) -> Object:
    mark = type_[0]
    if mark == "{":
        return {"type": "object", "additionalProperties": _typed(element(type_))}
    if mark in "[@":
        return {"type": "array", "items": _typed(element(type_))}
    if is_message(type_):
        return reference(type_)
    return dict(_TYPES.get(type_, _ANYTHING))
