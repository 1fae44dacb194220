"""Fields that a kind does not have, that stand twice, or whose JSON type is not theirs, by the schema table.

One of them in a list stops every typed client that reads it.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final, NamedTuple

from pumice.cluster.api.fields import is_list, is_mapping
from pumice.cluster.api.schema.shapes import Shape, field_shape
from pumice.cluster.api.schema.table import element, flat_fields, is_message, of_kind
from pumice.core.errors import QuantityError
from pumice.core.objects.metadata import Object
from pumice.core.quantity import quantity_of

# --- Unknown fields

# --- Duplicate fields

_MOST_DUPLICATES = 100


class _Pairs(list[tuple[str, Any]]):
    """The names and values of one JSON object in their order."""


def duplicate_fields(text: bytes) -> list[str]:
    """`duplicate field "spec.weight"` for each, a hundred at most, in the text's order; none for a text that is not
    JSON.
    """
    try:
        value: Any = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return []
    found: list[str] = []
    _look(value, "", found)
    return found[:_MOST_DUPLICATES]


def _look(value: Any, path: str, found: list[str]) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, each in value:
            inner = f"{path}.{name}" if path else name
            if name in seen:
                message = f'duplicate field "{inner}"'
                if message not in found:
                    found.append(message)
            seen.add(name)
            _look(each, inner, found)
    elif is_list(value):
        for at, each in enumerate(value):
            _look(each, f"{path}[{at}]", found)


_INSIDE: Final = frozenset(("map", "list"))
"""Sorts of values that can hold an unknown field."""
Misplaced = tuple[str, Shape]
_DIRECTIVES: Final = ("$patch", "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/")


def unknown_fields(obj: Object, shape: Shape, *, patch: bool = False) -> list[str]:
    """`unknown field "spec.tasks[0].foo"` for each, in the order of the object, a hundred at most.

    In a `patch`, nulls (which remove) and the directives of strategic merges are passed over.
    """
    return [f'unknown field "{path}"' for path, _ in misplaced_fields(_without_removals(obj) if patch else obj, shape)]


def misplaced_fields(obj: Object, shape: Shape) -> list[Misplaced]:
    """The unknown fields as paths, each with the shape that has no such field."""
    found: list[Misplaced] = []
    _look_for_unknown(obj, shape, "", found)
    return found


def pruned(value: Any, shape: Shape) -> Any:
    """The value without the fields that its kind does not have, as a server stores it."""
    if is_list(value) and shape.sort == "list":
        item = shape.item()
        return [pruned(each, item) for each in value] if item.sort in _INSIDE else value
    if not is_mapping(value) or shape.sort != "map":
        return value
    return {
        name: pruned(each, field_shape(shape, name))
        for name, each in value.items()
        if not shape.closed or shape.named(name) is not None or name.startswith(_DIRECTIVES)
    }


def _without_removals(value: Any) -> Any:
    if is_list(value):
        return [_without_removals(each) for each in value]
    if not is_mapping(value):
        return value
    return {
        name: _without_removals(each)
        for name, each in value.items()
        if each is not None and not name.startswith(_DIRECTIVES)
    }


def _look_for_unknown(value: Any, shape: Shape, path: str, found: list[Misplaced]) -> None:
    if len(found) >= _MOST:
        return
    if is_list(value) and shape.sort == "list":
        item = shape.item()
        if item.sort in _INSIDE:
            for at, each in enumerate(value):
                if each:
                    _look_for_unknown(each, item, f"{path}[{at}]", found)
    elif is_mapping(value) and shape.sort == "map":
        for name, each in value.items():
            inner = shape.named(name)
            if inner is None and shape.closed:
                if len(found) < _MOST:
                    found.append((_joined(path, name), shape))
            elif each and (inner or shape.item()).sort in _INSIDE:  # most are scalars: no path is made for them
                _look_for_unknown(each, inner or shape.item(), _joined(path, name), found)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


# --- Quantities in canonical form
# What is written as `1024Mi` is stored, and read back, as `1Gi`. Only those fields are looked at that lead to a
# quantity, by the schema table: a kind without any costs nothing.

_QUANTITY: Final = "Quantity"
_SELF_HOLDING: Final = ("apiextensions.v1.JSONSchemaProps",)


def settle_quantities(obj: dict[str, Any], group: str, version: str, kind: str) -> None:
    """Write every quantity of an object of a described kind in its canonical form; what is none is left as it is."""
    found = of_kind(group, version, kind)
    if found is not None:
        _settle(obj, found.name)


@cache
def _leading(name: str) -> tuple[tuple[str, str], ...]:
    """The fields of a message under which there are quantities, each with its type."""
    return tuple((field, each.type) for field, each in flat_fields(name).items() if _leads(each.type))


@cache
def _leads(type_: str) -> bool:
    inner = element(type_)
    if inner != type_:
        return _leads(inner)
    if not is_message(type_) or type_ in _SELF_HOLDING:
        return type_ == _QUANTITY
    return bool(_leading(type_))


def _settle(holder: dict[str, Any], name: str) -> None:
    for field, type_ in _leading(name):
        value = holder.get(field)
        if value:
            holder[field] = _settled(value, type_)


def _settled(value: Any, type_: str) -> Any:
    if type_ == _QUANTITY:
        return _canonical(value)
    inner = element(type_)
    if inner == type_:
        if is_mapping(value):
            _settle(value, type_)
    elif is_mapping(value):
        for name, each in value.items():
            value[name] = _settled(each, inner)
    elif is_list(value):
        value[:] = [_settled(each, inner) for each in value]
    return value


def _canonical(value: Any) -> Any:
    try:
        return quantity_of(value).canonical()
    except QuantityError:
        return value


_MOST: Final = 100
_FITS: Final[dict[str, tuple[str, ...]]] = {
    "string": ("string",),
    "boolean": ("boolean",),
    "integer": ("integer",),
    "number": ("integer", "number"),
    "quantity": ("string", "integer", "number"),
    "integer or string": ("integer", "string"),
}


class Mistyped(NamedTuple):
    """A value at `path` (`spec.tasks[0].name`), what it should be and what it is, both as JSON types."""

    path: str
    expected: str
    found: str


def mistyped(value: Any, shape: Shape) -> list[Mistyped]:
    """Every value of the wrong type, a hundred at most; null fits anywhere, as it means an absent field."""
    found: list[Mistyped] = []
    _look_at(value, shape, "", found)
    return found


def _look_at(value: Any, shape: Shape, path: str, found: list[Mistyped]) -> None:
    if value is None or len(found) >= _MOST or shape.sort == "any":
        return
    if shape.sort == "scalar":
        if not _fits(value, shape):
            found.append(Mistyped(path, shape.scalar, json_type(value)))
    elif is_mapping(value) and shape.sort == "map":
        for name, each in value.items():
            inner = field_shape(shape, name)
            if inner.sort != "scalar" or not _fits(each, inner):  # most are scalars that fit: no path is made for them
                _look_at(each, inner, f"{path}.{name}" if path else name, found)
    elif is_list(value) and shape.sort == "list":
        item = shape.item()
        for at, each in enumerate(value):
            _look_at(each, item, f"{path}[{at}]", found)
    else:
        found.append(Mistyped(path, "object" if shape.sort == "map" else "array", json_type(value)))


def _fits(value: Any, shape: Shape) -> bool:
    """Return whether a value is a scalar of the shape's type."""
    scalar = shape.scalar
    if value.__class__ is str and scalar == "string":
        return True
    return not scalar or json_type(value) in _FITS.get(scalar, (scalar,))


def json_type(value: Any) -> str:
    """The JSON type of a value: a number without a fraction is an integer."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case list():
            return "array"
        case _:
            return "object"
