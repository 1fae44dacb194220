"""What Volcano's definitions say of its own kinds beyond the types, as a schema: defaults, and rules of single fields.

Made from the schema table (source: Volcano `config/crd`). Types are left out: `cluster.api.registry` has judged them.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from pumice.cluster.api import schema
from pumice.cluster.api.schema.table import Field, element, flat_fields, is_message

Schema = dict[str, Any]
_OWN: Final = "volcano."


@cache
def schema_of(group: str, version: str, kind: str) -> Schema | None:
    """The schema of one of Volcano's kinds; None for any other. Not to be changed: everybody shares it."""
    found = schema.of_kind(group, version, kind)
    return _of_type(found.name) if found is not None and found.name.startswith(_OWN) else None


@cache
def _of_type(type_: str) -> Schema:
    """Empty for a type of which the definitions say nothing."""
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


def _whole(bound: float | None) -> float | None:
    """A bound as it is written: 1, not 1.0."""
    return int(bound) if bound is not None and bound.is_integer() else bound
