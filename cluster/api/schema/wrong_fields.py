# SPDX-License-Identifier: Apache-2.0
"""Fields that a kind does not have, that stand twice, or that have a wrong JSON type, by the schema table.

One of them in a list stops every typed client that reads it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from typing import Any, Final, NamedTuple

from pumice.cluster.api.schema.shapes import Shape, field_shape
from pumice.cluster.api.schema.table import element, flat_fields, is_message, of_kind
from pumice.core.errors import QuantityError
from pumice.core.objects.metadata import Object, is_list, is_mapping
from pumice.core.quantity import quantity_of

# --- Unknown fields

# --- Duplicate fields

# `sigs.k8s.io/json` keeps no more than a hundred strict errors either.
_MOST_DUPLICATES = 100


class _Pairs(list[tuple[str, Any]]):
    """The names and values of one JSON object in their order."""


def duplicate_fields(text: bytes) -> list[str]:
    """Return `duplicate field "spec.weight"` for each, a hundred at most, in the text's order; none for a text that is
    not JSON.
    """
    try:
        # the standard library's reader: msgspec has no hook that sees a name twice
        value: Any = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return []
    found: list[str] = []
    _look(value, "", found)
    return found[:_MOST_DUPLICATES]


def _look(value: object, path: str, found: list[str]) -> None:
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
    """Return `unknown field "spec.tasks[0].foo"` for each, in the order of the object, a hundred at most.

    In a `patch`, nulls (which remove) and the directives of strategic merges are passed over.
    """
    return [f'unknown field "{path}"' for path, _ in misplaced_fields(_without_removals(obj) if patch else obj, shape)]


def misplaced_fields(obj: Object, shape: Shape) -> list[Misplaced]:
    """Return the unknown fields as paths, each with the shape that has no such field."""
    found: list[Misplaced] = []
    _look_for_unknown(obj, shape, "", found)
    return found


def pruned(value: object, shape: Shape) -> Any:
    """Return the value without the fields that its kind does not have, as a server stores it."""
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


def _without_removals(value: object) -> Any:
    if is_list(value):
        return [_without_removals(each) for each in value]
    if not is_mapping(value):
        return value
    return {
        name: _without_removals(each)
        for name, each in value.items()
        if each is not None and not name.startswith(_DIRECTIVES)
    }


def _look_for_unknown(value: object, shape: Shape, path: str, found: list[Misplaced]) -> None:
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
# It holds itself, so that following it would not end.
_SELF_HOLDING: Final = ("apiextensions.v1.JSONSchemaProps",)


def settle_quantities(obj: Object, group: str, version: str, kind: str) -> None:
    """Write every quantity of an object of a described kind in its canonical form; other values are left as
    they are.
    """
    found = of_kind(group, version, kind)
    if found is not None and (settle := _settler(found.name)) is not None:
        settle(obj)


Settler = Callable[[Any], Any]
"""Returns a value with its quantities in canonical form: a mapping or a list is changed and returned."""


@cache
def _settler(type_: str) -> Settler | None:
    """Compile the changes of values of a type; None for a type without quantities."""
    if type_ == _QUANTITY:
        return _canonical
    inner = element(type_)
    if inner != type_:
        each = _settler(inner)
        return None if each is None else partial(_settle_values if type_.startswith("{") else _settle_items, each)
    fields = flat_fields(type_).items() if is_message(type_) and type_ not in _SELF_HOLDING else ()
    found = tuple((field, settle) for field, row in fields if (settle := _settler(row.type)) is not None)
    return partial(_settle_fields, found) if found else None


def _settle_fields(fields: Sequence[tuple[str, Settler]], holder: object) -> Any:
    if is_mapping(holder):
        for field, settle in fields:
            value: Any = holder.get(field)
            if value:
                holder[field] = settle(value)
    return holder


def _settle_values(settle: Settler, values: object) -> Any:
    if is_mapping(values):
        for name, each in values.items():
            values[name] = settle(each)
    return values


def _settle_items(settle: Settler, items: object) -> Any:
    if is_list(items):
        items[:] = [settle(each) for each in items]
    return items


def _canonical(value: object) -> Any:
    # the same few texts come again and again: reading one takes 3 µs
    return _canonical_text(value) if value.__class__ is str else _canonical_amount(value)


def _canonical_amount(value: object) -> Any:
    try:
        return quantity_of(value).canonical()
    except QuantityError:
        return value


_canonical_text = lru_cache(4096)(_canonical_amount)


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
    """A value at `path` (`spec.tasks[0].name`), with the expected and the found JSON type."""

    path: str
    expected: str
    found: str


def mistyped(value: object, shape: Shape) -> list[Mistyped]:
    """Return every value of a wrong type, a hundred at most; null is allowed everywhere, as an absent field."""
    found: list[Mistyped] = []
    _look_at(value, shape, "", found)
    return found


def _look_at(value: object, shape: Shape, path: str, found: list[Mistyped]) -> None:
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


def _fits(value: object, shape: Shape) -> bool:
    """Return whether a value is a scalar of the shape's type."""
    scalar = shape.scalar
    # the most frequent case, without asking for the type's name
    if value.__class__ is str and scalar == "string":
        return True
    return not scalar or json_type(value) in _FITS.get(scalar, (scalar,))


def json_type(value: object) -> str:
    """Return the JSON type of a value: a number without a fraction is an integer."""
    match value:
        case None:
            return "null"
        # before `int`: in Python True is an int
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
