"""A message by its description in the schema table: JSON as Go would print what it had read.

Go writes every field that is no pointer, empty ones too, and leaves out of JSON what is empty and marked so; structs
are never empty to it. Where nothing is on the wire, nothing but such structs and always printed zeros appear.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from pumice.actors.gateway.protobuf.errors import MalformedBodyError
from pumice.actors.gateway.protobuf.scalars import READERS, raw, whole
from pumice.actors.gateway.protobuf.wire import Value, fields, text_of, varint
from pumice.cluster.api.schema.model import Field, element
from pumice.cluster.api.schema.plain import is_map
from pumice.cluster.api.schema.table import is_message, message
from pumice.core.objects.metadata import Object

_DEEPEST: Final = 64
_MOST_MESSAGES: Final = 3_000
_BYTES_EACH: Final = 64
"""A body may have so many messages, and one more for so many bytes: an empty one stands for many defaults."""
_ZEROS: Final[dict[str, Any]] = {
    "string": "",
    "boolean": False,
    "int32": 0,
    "int64": 0,
    "double": 0.0,
    "Quantity": "0",
    "IntOrString": 0,
    "Duration": "0s",
}
_VARINTS: Final = ("int32", "int64", "boolean")
_SCHEMA: Final = "apiextensions.v1.JSONSchemaProps"


class Depth:
    """How deep a message stands in its body, and how many of them there may be yet."""

    __slots__ = ("_left", "_level")

    def __init__(self, size: int, level: int = 0, left: list[int] | None = None) -> None:
        self._level = level
        self._left = [_MOST_MESSAGES + size // _BYTES_EACH] if left is None else left

    def deeper(self) -> Depth:
        """Where a message inside this one stands. Raises MalformedBodyError."""
        self._left[0] -= 1
        if self._level >= _DEEPEST:
            raise MalformedBodyError(f"the message is nested more than {_DEEPEST} deep")
        if self._left[0] < 0:
            raise MalformedBodyError("the body is of very many small messages: send it as application/json")
        return Depth(0, self._level + 1, self._left)


def read_message(name: str, data: memoryview, depth: Depth | None = None) -> Object:
    """The message's fields as JSON. Raises MalformedBodyError."""
    depth = depth or Depth(len(data))
    found = fields(data)
    result: Object = {}
    for field, absent in _plan(name):
        values = found.get(field.number)
        if values is None:
            if absent is not None:
                result.update(_copied(absent))
        elif "i" in field.flags:
            result.update(read_message(field.type, joined(values), depth.deeper()))
        else:
            value = _read_field(field, values, depth)
            if value is not None and not _left_out(field, value):
                result[field.name] = value
    return result


@cache
def _plan(name: str) -> tuple[tuple[Field, Object | None], ...]:
    """The fields of a message, each with what it puts into the JSON when it is not on the wire."""
    return tuple((field, _absent(field)) for field in message(name).fields)


def _absent(field: Field) -> Object | None:
    if "i" in field.flags:
        return _empty(field.type) or None
    value = zero(field.type) if "*" not in field.flags else None
    return {field.name: value} if value is not None and not _left_out(field, value) else None


def _left_out(field: Field, value: Any) -> bool:
    if "*" in field.flags:
        return False
    if is_message(field.type):
        return "z" in field.flags and value == zero(field.type)
    if field.type in ("IntOrString", "Quantity", "Duration"):  # structs in Go: never empty
        return False
    return bool({"o", "z"} & set(field.flags)) and value in ("", 0, False, [], {})


def _read_field(field: Field, values: list[Value], depth: Depth) -> Any:
    type_ = field.type
    if type_.startswith("[]"):
        return _read_list(type_[2:], values, depth)
    if type_.startswith("{}"):
        entries = dict(_entry(type_[2:], value, depth) for value in values)
        return {key: value for key, value in entries.items() if value is not None} or None
    if is_message(type_):
        return read_message(type_, joined(values), depth.deeper())
    return read_value(type_, values[-1], depth)


def _read_list(type_: str, values: list[Value], depth: Depth) -> list[Any]:
    if type_ in _VARINTS:
        values = [single for value in values for single in unpacked(value)]
    return [read_value(type_, value, depth) for value in values]


def read_value(type_: str, value: Value, depth: Depth) -> Any:
    """One value of a type; None for a null."""
    if type_.startswith("@"):
        return [read_value(type_[1:], each, depth) for each in fields(raw(value)).get(1, [])]
    if type_ in READERS:
        return READERS[type_](value)
    if type_.startswith("SchemaOr"):
        return _schema_or(type_, value, depth)
    return read_message(type_, raw(value), depth.deeper())


def _entry(type_: str, value: Value, depth: Depth) -> tuple[str, Any]:
    """One entry of a map: a message of a key and a value."""
    found = fields(raw(value))
    key = text_of(raw(found[1][-1])) if 1 in found else ""
    return key, read_value(type_, found[2][-1], depth) if 2 in found else zero(type_)


def _schema_or(type_: str, value: Value, depth: Depth) -> Any:
    """A schema of a CRD, or what may stand in its place: a boolean, a list of schemas, a list of names."""
    found = fields(raw(value))
    other: Any
    if type_ == "SchemaOrBool":
        schema, other = found.get(2, []), bool(whole(found[1][-1])) if 1 in found else False
    elif type_ == "SchemaOrArray":
        schema, other = (
            found.get(1, []),
            [read_message(_SCHEMA, raw(each), depth.deeper()) for each in found.get(2, [])],
        )
    else:
        schema, other = found.get(1, []), [text_of(raw(each)) for each in found.get(2, [])]
    return read_message(_SCHEMA, joined(schema), depth.deeper()) if schema else other


def unpacked(value: Value) -> list[Value]:
    """The numbers of a list that came packed into one run of bytes; a single one as it is."""
    if not isinstance(value, memoryview):
        return [value]
    found: list[Value] = []
    at = 0
    while at < len(value):
        number, at = varint(value, at)
        found.append(number)
    return found


def joined(values: list[Value]) -> memoryview:
    """A message that came in several parts: they merge as if they were one."""
    return raw(values[0]) if len(values) == 1 else memoryview(b"".join(raw(value) for value in values))


@cache
def _empty(name: str) -> Object:
    return read_message(name, memoryview(b""))


def zero(type_: str) -> Any:
    """What Go prints for a value that nobody set; None for a null."""
    if is_message(type_) and element(type_) == type_:
        return _copied(_empty(type_))
    return _ZEROS.get(type_)


def _copied(value: Object) -> Object:
    return {key: _copied(each) if is_map(each) else each for key, each in value.items()}
