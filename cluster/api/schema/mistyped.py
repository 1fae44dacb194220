"""Values whose JSON type is not that of their field. One of them in a list stops every typed client that reads it."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from pumice.cluster.api.schema.plain import is_list, is_map
from pumice.cluster.api.schema.shapes import Shape, field_shape

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
    _look(value, shape, "", found)
    return found


def _look(value: Any, shape: Shape, path: str, found: list[Mistyped]) -> None:
    if value is None or len(found) >= _MOST or shape.sort == "any":
        return
    if shape.sort == "scalar":
        if not _fits(value, shape):
            found.append(Mistyped(path, shape.scalar, json_type(value)))
    elif is_map(value) and shape.sort == "map":
        for name, each in value.items():
            inner = field_shape(shape, name)
            if inner.sort != "scalar" or not _fits(each, inner):  # most are scalars that fit: no path is made for them
                _look(each, inner, f"{path}.{name}" if path else name, found)
    elif is_list(value) and shape.sort == "list":
        item = shape.item()
        for at, each in enumerate(value):
            _look(each, item, f"{path}[{at}]", found)
    else:
        found.append(Mistyped(path, "object" if shape.sort == "map" else "array", json_type(value)))


def _fits(value: Any, shape: Shape) -> bool:
    """Whether a value is a scalar of the shape's type."""
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
