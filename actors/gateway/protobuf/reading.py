# SPDX-License-Identifier: Apache-2.0
"""Request bodies in Kubernetes' protobuf encoding, read by field numbers from the schema table.

Go clients send Kubernetes' own kinds so, and some give no way to stop them. A body is an envelope: four bytes, then
runtime.Unknown with the type's name and the object's message.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

from pumice.cluster.api.schema.table import (
    Field,
    SchemaMessage,
    element,
    flat_fields,
    is_message,
    message,
    of_kind,
    of_type,
)
from pumice.config.durations import format_duration
from pumice.config.errors import RequestError
from pumice.core.objects.metadata import Object, is_mapping

# --- Errors


class MalformedBodyError(RequestError):
    """The bytes are not a message of that kind."""


class UnknownProtobufKindError(RequestError):
    """The kind's messages have no description; the text names the kind."""

    code = 415
    reason = "UnsupportedMediaType"


# --- The wire format: bytes as values by field number

Value = int | float | memoryview
Fields = dict[int, list[Value]]

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
FIXED32: Final = 5
# 64 bits, seven in each byte.
_LONGEST_VARINT: Final = 10
_WIDTHS: Final = {FIXED64: struct.Struct("<d"), FIXED32: struct.Struct("<f")}


def fields(data: memoryview) -> Fields:
    """Return every value by field number, in order: varints as unsigned integers, fixed ones as floats, the rest as
    bytes.

    Raises MalformedBodyError for a truncated run, an unknown wire type or the field number 0.
    """
    found: Fields = {}
    at, end = 0, len(data)
    while at < end:
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise MalformedBodyError("field number 0 is not allowed")
        if wire == VARINT:
            value: Value
            value, at = varint(data, at)
        elif wire == BYTES:
            size, at = varint(data, at)
            value, at = _slice(data, at, size), at + size
        elif wire in _WIDTHS:
            width = _WIDTHS[wire]
            value, at = width.unpack(_slice(data, at, width.size))[0], at + width.size
        else:
            raise MalformedBodyError(f"wire type {wire} of field {number} is not supported")
        found.setdefault(number, []).append(value)
    return found


def varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return the unsigned number at `at`, and where the next value stands."""
    value = shift = 0
    for place in range(at, min(at + _LONGEST_VARINT, len(data))):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            # Ten bytes have room for 70 bits; Go's uint64 loses those beyond 64.
            return value & 0xFFFF_FFFF_FFFF_FFFF, place + 1
        shift += 7
    raise MalformedBodyError("unexpected end of a number")


def text_of(data: memoryview) -> str:
    """Return the text of UTF-8 bytes."""
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        raise MalformedBodyError("a string is not UTF-8") from None


def _slice(data: memoryview, at: int, size: int) -> memoryview:
    if size > len(data) - at:
        raise MalformedBodyError("unexpected end of the message")
    return data[at : at + size]


# --- Messages by the schema table, as JSON that Go would print
# Go writes every field that is not a pointer, empty ones too, and leaves out of JSON what is empty and marked so;
# structs are never empty to it. Where nothing is on the wire, nothing but such structs and always printed zeros
# appear.

# --- Values of the wire as JSON

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def whole(value: Value, bits: int = 64) -> int:
    """Return a signed whole number of so many bits."""
    if not isinstance(value, int):
        raise MalformedBodyError("expected a number")
    # A negative int32 comes as ten bytes: its low 32 bits are the number.
    low = value & ((1 << bits) - 1)
    return low - (1 << bits) if low >> (bits - 1) else low


def raw(value: Value) -> memoryview:
    """Return the bytes of a text, of bytes or of a message."""
    if not isinstance(value, memoryview):
        raise MalformedBodyError("expected bytes, found a number")
    return value


def _double(value: Value) -> float:
    if not isinstance(value, float):
        raise MalformedBodyError("expected a floating-point number")
    return value


def _quantity(value: Value) -> str:
    found = fields(raw(value))
    # `[-1]`: where a single field comes several times, a reader of protobuf must take the last value.
    return text_of(raw(found[1][-1])) or "0" if 1 in found else "0"


def _int_or_string(value: Value) -> int | str:
    found = fields(raw(value))
    # Field 1 is the type (0 for a number), 2 the number, 3 the text (`util/intstr/generated.proto`).
    if 1 in found and whole(found[1][-1]):
        return text_of(raw(found[3][-1])) if 3 in found else ""
    return whole(found[2][-1], 32) if 2 in found else 0


def _moment(value: Value) -> tuple[datetime, int] | None:
    """Return the time to the second and its nanoseconds; None for Go's zero time."""
    found = fields(raw(value))
    # Go writes its zero time as a message without fields.
    if not found:
        return None
    seconds = whole(found[1][-1]) if 1 in found else 0
    nanos = whole(found[2][-1], 32) if 2 in found else 0
    try:
        return _EPOCH + timedelta(seconds=seconds), nanos
    except OverflowError:
        raise MalformedBodyError(f"a time lies out of range: {seconds} seconds") from None


def _time(value: Value) -> str | None:
    found = _moment(value)
    # The fraction goes, as in `time_proto.go` of apimachinery: the JSON form of Time has whole seconds.
    return None if found is None else f"{found[0].isoformat()[:19]}Z"


def _micro_time(value: Value) -> str | None:
    found = _moment(value)
    return None if found is None else f"{found[0].isoformat()[:19]}.{found[1] // 1000:06d}Z"


def _duration(value: Value) -> str:
    found = fields(raw(value))
    return format_duration(whole(found[1][-1]) if 1 in found else 0)


def _json(value: Value) -> Any:
    """Return the value of JSON text inside a message."""
    found = fields(raw(value))
    text = bytes(raw(found[1][-1])) if 1 in found else b""
    if not text:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise MalformedBodyError("a field that carries JSON text carries something else") from None


def _text(value: Value) -> str:
    return text_of(raw(value))


def _base64(value: Value) -> str:
    return base64.b64encode(raw(value)).decode("ascii")


READERS: Final[dict[str, Callable[[Value], Any]]] = {
    "string": _text,
    "boolean": lambda value: whole(value) != 0,
    "int32": lambda value: whole(value, 32),
    "int64": whole,
    "double": _double,
    "byte": _base64,
    "Quantity": _quantity,
    "IntOrString": _int_or_string,
    "Time": _time,
    "MicroTime": _micro_time,
    "Duration": _duration,
    "FieldsV1": _json,
    "RawExtension": _json,
    "JSON": _json,
}
"""Readers of the value of each scalar type of the schema table; None is a null."""


# A level takes up to seven Python frames: 64 levels stay below the interpreter's limit of 1,000.
_DEEPEST: Final = 64
_MOST_MESSAGES: Final = 3_000
_BYTES_EACH: Final = 64
"""A body may have so many messages, and one more for so many bytes: an empty one stands for many defaults."""
_ZEROS: Final[Object] = {
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
    """Depth of a message in its body, and the number of messages that may still follow."""

    __slots__ = ("_left", "_level")

    def __init__(self, size: int, level: int = 0, left: list[int] | None = None) -> None:
        self._level = level
        # In a list, so that all levels of a body count the same number down.
        self._left = [_MOST_MESSAGES + size // _BYTES_EACH] if left is None else left

    def deeper(self) -> Depth:
        """Return the depth of a message inside this one. Raises MalformedBodyError."""
        self._left[0] -= 1
        if self._level >= _DEEPEST:
            raise MalformedBodyError(f"the message is nested more than {_DEEPEST} deep")
        if self._left[0] < 0:
            raise MalformedBodyError("the body is of very many small messages: send it as application/json")
        return Depth(0, self._level + 1, self._left)


def read_message(name: str, data: memoryview, depth: Depth | None = None) -> Object:
    """Return the message's fields as JSON. Raises MalformedBodyError."""
    depth = depth or Depth(len(data))
    found = fields(data)
    result: Object = {}
    for field, absent in _plan(name):
        values = found.get(field.number)
        if values is None:
            if absent is not None:
                # A copy: the plan is cached, and handlers change the objects that they get.
                result.update(_copied(absent))
        # Embedded in Go: a message of its own on the wire, but in JSON its fields stand among the others.
        elif "i" in field.flags:
            result.update(read_message(field.type, joined(values), depth.deeper()))
        else:
            value = _read_field(field, values, depth)
            if value is not None and not _left_out(field, value):
                result[field.name] = value
    return result


# Worked out once a kind: a body leaves most fields of its messages out.
@cache
def _plan(name: str) -> tuple[tuple[Field, Object | None], ...]:
    """Return the fields of a message, each with its JSON value when it is not on the wire."""
    return tuple((field, _absent(field)) for field in message(name).fields)


def _absent(field: Field) -> Object | None:
    if "i" in field.flags:
        return _empty(field.type) or None
    value = zero(field.type) if "*" not in field.flags else None
    return {field.name: value} if value is not None and not _left_out(field, value) else None


def _left_out(field: Field, value: object) -> bool:
    # A pointer in Go: what is on the wire is shown, even an empty value.
    if "*" in field.flags:
        return False
    if is_message(field.type):
        # omitzero leaves an empty struct out; Go's omitempty never does.
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
    # Go does not pack these lists, but other writers may, and a reader must take both.
    if type_ in _VARINTS:
        values = [single for value in values for single in unpacked(value)]
    return [read_value(type_, value, depth) for value in values]


def read_value(type_: str, value: Value, depth: Depth) -> Any:
    """Return one value of a type; None for a null."""
    if type_.startswith("@"):
        return [read_value(type_[1:], each, depth) for each in fields(raw(value)).get(1, [])]
    if type_ in READERS:
        return READERS[type_](value)
    if type_.startswith("SchemaOr"):
        return _schema_or(type_, value, depth)
    return read_message(type_, raw(value), depth.deeper())


def _entry(type_: str, value: Value, depth: Depth) -> tuple[str, Any]:
    """Return one entry of a map: a message of a key and a value."""
    found = fields(raw(value))
    key = text_of(raw(found[1][-1])) if 1 in found else ""
    if 2 in found:
        return key, read_value(type_, found[2][-1], depth)
    # Go writes no value for nil bytes, and the reader's are empty.
    return key, "" if type_ == "byte" else zero(type_)


def _schema_or(type_: str, value: Value, depth: Depth) -> Any:
    """Return a schema of a CRD, or what may stand in its place: a boolean, a list of schemas, a list of names."""
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
    """Return the numbers of a list that came packed into one run of bytes; a single one as it is."""
    if not isinstance(value, memoryview):
        return [value]
    found: list[Value] = []
    at = 0
    while at < len(value):
        number, at = varint(value, at)
        found.append(number)
    return found


def joined(values: list[Value]) -> memoryview:
    """Return a message that came in several parts: they merge as if they were one."""
    return raw(values[0]) if len(values) == 1 else memoryview(b"".join(raw(value) for value in values))


@cache
def _empty(name: str) -> Object:
    return read_message(name, memoryview(b""))


def zero(type_: str) -> Any:
    """Return the value that Go prints for an unset field; None for a null."""
    if is_message(type_) and element(type_) == type_:
        return _copied(_empty(type_))
    return _ZEROS.get(type_)


def _copied(value: Object) -> Object:
    return {key: _copied(each) if is_mapping(each) else each for key, each in value.items()}


MAGIC: Final = b"k8s\x00"
_TYPE: Final = 1
_RAW: Final = 2
_ENCODING: Final = 3


def inside(data: bytes | memoryview, *path: int) -> bytes:
    """Return the bytes at a path of field numbers; b"" where there are none."""
    part = memoryview(data)
    for number in path:
        part = _bytes(fields(part), number)
    return bytes(part)


def object_in(body: bytes) -> memoryview:
    """Return the message of an object without its envelope."""
    return _bytes(fields(memoryview(body)[len(MAGIC) :]), _RAW)


def decode(body: bytes) -> Object:
    """Return the object of a body as its JSON would be, nulls left out.

    Raises MalformedBodyError (400), and UnknownProtobufKindError (415) for a kind that is not in the schema table.
    """
    if not body.startswith(MAGIC):
        raise MalformedBodyError("the body is not Kubernetes protobuf: it does not start with the bytes 'k8s\\0'")
    outer = fields(memoryview(body)[len(MAGIC) :])
    inner = fields(_bytes(outer, _TYPE))
    api_version, kind = text_of(_bytes(inner, 1)), text_of(_bytes(inner, 2))
    if _bytes(outer, _ENCODING):
        raise MalformedBodyError(f"unknown content encoding {text_of(_bytes(outer, _ENCODING))!r}")
    message = _message_of(api_version, kind)
    return {"apiVersion": api_version, "kind": kind, **read_message(message.name, _bytes(outer, _RAW))}


def _message_of(api_version: str, kind: str) -> SchemaMessage:
    # options come with the apiVersion of whatever they are about
    message = of_type(api_version, kind) or of_kind("meta.k8s.io", "v1", kind)
    if message is None or not any(field.number for field in flat_fields(message.name).values()):
        raise UnknownProtobufKindError(
            f"the body's kind, {api_version or '(no apiVersion)'} {kind or '(no kind)'}, is not known in protobuf:"
            " send it as application/json"
        )
    return message


def _bytes(found: Fields, number: int) -> memoryview:
    value = found[number][-1] if number in found else memoryview(b"")
    if not isinstance(value, memoryview):
        raise MalformedBodyError("the envelope is broken: a number stands where bytes belong")
    return value
