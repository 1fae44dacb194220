# SPDX-License-Identifier: Apache-2.0
"""Answers in Kubernetes' protobuf encoding: the inverse of `reading`, by the same schema table.

Only fields that an object has are written. Go also writes empty ones, but a reader cannot tell the difference.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, Final

import msgspec

from pumice.actors.gateway.problems import unwritable
from pumice.actors.gateway.protobuf.reading import BYTES, FIXED64, MAGIC, VARINT
from pumice.cluster.api.schema.table import Field, flat_fields, is_message, message, of_kind, of_type
from pumice.config.durations import parse_duration_ns
from pumice.core.objects.metadata import Object, section

_UINT64: Final = 0xFFFF_FFFF_FFFF_FFFF

Write = Callable[[Any], bytes]
"""Returns a value as a field of a message, with the field's number before it."""


# --- The wire format


def varint(number: int) -> bytes:
    """Return a number from 0 to 2⁶⁴-1, seven bits in each byte."""
    if number < 0x80:
        return _SMALL[number]
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


# Nearly all lengths and most numbers: a look in a table takes a fifth of the time.
_SMALL: Final = [bytes((number,)) for number in range(0x80)]


def _key(number: int, wire: int) -> bytes:
    return varint(number << 3 | wire)


def field(number: int, data: bytes) -> bytes:
    """Return bytes as a field: its number, their length, and they."""
    return _key(number, BYTES) + varint(len(data)) + data


# --- Values of JSON on the wire


# `typed`: 1 and 1.0 are one key otherwise, and the text would be that of whichever came first.
@lru_cache(maxsize=4_096, typed=True)
def _quantity(value: Any) -> bytes:
    # A manifest may have a number, which Kubernetes reads as its text.
    return field(1, str(value).encode())


def _int_or_string(value: Any) -> bytes:
    if isinstance(value, str):
        return b"\x08\x01" + field(3, value.encode())
    return b"\x08\x00\x10" + varint(int(value) & _UINT64)


# The moments of one cycle are the same in many objects.
@lru_cache(maxsize=4_096)
def _moment(value: str) -> bytes:
    at = datetime.fromisoformat(value.upper())  # RFC 3339 allows a small "t" and "z"
    seconds = b"\x08" + varint(int(at.timestamp() // 1) & _UINT64)
    return seconds + b"\x10" + varint(at.microsecond * 1000) if at.microsecond else seconds


def _duration(value: Any) -> bytes:
    return b"\x08" + varint(parse_duration_ns(value) & _UINT64)


def _json(value: Any) -> bytes:
    return field(1, msgspec.json.encode(value))


_NUMBERS: Final = ("int32", "int64", "boolean")
_PIECES: Final[dict[str, Callable[[Any], bytes]]] = {
    "string": str.encode,
    "byte": base64.b64decode,
    "Quantity": _quantity,
    "IntOrString": _int_or_string,
    "Time": _moment,
    "MicroTime": _moment,
    "Duration": _duration,
    "FieldsV1": _json,
    "RawExtension": _json,
    "JSON": _json,
}
"""Values that stand on the wire as bytes, without the number of their field."""


# --- Messages


def write_message(name: str, obj: Object) -> bytes:
    """Return an object as the named message; nulls and fields that the message does not have are left out.

    Raises TypeError, ValueError or AttributeError for a value that its field cannot hold.
    """
    fields, embedded = _plan(name)
    parts = [write(value) for key, value in obj.items() if value is not None and (write := fields.get(key)) is not None]
    # Embedded in Go: their fields stand among the others in JSON, but in a message of their own on the wire.
    parts += [write(obj) for names, write in embedded if not names.isdisjoint(obj)]
    return b"".join(parts)


@cache
def _plan(name: str) -> tuple[dict[str, Write], list[tuple[frozenset[str], Write]]]:
    """Return the writers of a message's fields by their names in JSON, and of embedded messages with their names."""
    fields, embedded = dict[str, Write](), list[tuple[frozenset[str], Write]]()
    for each in message(name).fields:
        if "i" in each.flags:
            embedded.append((frozenset(flat_fields(each.type)), _run(each.number, _piece(each.type))))
        elif each.number:
            fields[each.name] = _field(each)
    return fields, embedded


def _field(each: Field) -> Write:
    if each.type.startswith("[]"):
        return _all(_single(each.number, each.type[2:]))
    if each.type.startswith("{}"):
        return _map(each.number, each.type[2:])
    return _single(each.number, each.type)


def _single(number: int, type_: str) -> Write:
    if type_ in _NUMBERS:
        return _number(number)
    if type_ == "string":
        return _text_run(number)
    if type_ == "double":
        key, pack = _key(number, FIXED64), struct.Struct("<d").pack
        return lambda value: key + pack(value)
    return _run(number, _piece(type_))


def _piece(type_: str) -> Callable[[Any], bytes]:
    """Return a function that writes values of a type as bytes."""
    if type_ in _PIECES:
        return _PIECES[type_]
    if type_.startswith("@"):  # a list that is a message of its own
        return _all(_single(1, type_[1:]))
    if type_.startswith("SchemaOr"):
        return _SCHEMA_OR[type_]
    assert is_message(type_), type_
    # Looked up when it is used: messages of schemas contain each other.
    return lambda value: write_message(type_, value)


def _number(number: int) -> Write:
    key = _key(number, VARINT)
    # A negative int32 takes ten bytes, too.
    return lambda value: key + varint(int(value) & _UINT64)


def _run(number: int, piece: Callable[[Any], bytes]) -> Write:
    key = _key(number, BYTES)

    def write(value: Any) -> bytes:
        data = piece(value)
        size = len(data)
        return key + (_SMALL[size] if size < 0x80 else varint(size)) + data

    return write


# Most fields are texts: without a call in between they take two thirds of the time.
def _text_run(number: int) -> Write:
    key = _key(number, BYTES)

    def write(value: str) -> bytes:
        data = value.encode()
        size = len(data)
        return key + (_SMALL[size] if size < 0x80 else varint(size)) + data

    return write


def _all(write: Write) -> Write:
    return lambda values: b"".join([write(value) for value in values])


def _map(number: int, type_: str) -> Write:
    key, name, content = _key(number, BYTES), _text_run(1), _single(2, type_)

    def write(entries: Object) -> bytes:
        parts = [name(each) + content(value) for each, value in entries.items() if value is not None]
        return b"".join([key + varint(len(part)) + part for part in parts])

    return write


# --- Schemas of a CRD, and what may stand in their place

_schema: Final = _piece("apiextensions.v1.JSONSchemaProps")
_schemas: Final = _all(_run(2, _schema))
_names: Final = _all(_text_run(2))


def _schema_or_bool(value: Any) -> bytes:
    return b"\x08\x01" + field(2, _schema(value)) if isinstance(value, dict) else b"\x08" + varint(bool(value))


def _schema_or_array(value: Any) -> bytes:
    return field(1, _schema(value)) if isinstance(value, dict) else _schemas(value)


def _schema_or_strings(value: Any) -> bytes:
    return field(1, _schema(value)) if isinstance(value, dict) else _names(value)


_SCHEMA_OR: Final = {
    "SchemaOrBool": _schema_or_bool,
    "SchemaOrArray": _schema_or_array,
    "SchemaOrStrings": _schema_or_strings,
}


# --- Whole answers

_META: Final = "meta.k8s.io/"
_PARTIAL: Final = "PartialObjectMetadata"


def knows(api_version: str, kind: str) -> bool:
    """Return whether objects of a kind can be written."""
    return _message_of(api_version, kind) is not None


@cache
def _message_of(api_version: str, kind: str) -> str | None:
    # A Status has the version "v1", and its message is one of meta.
    found = of_type(api_version, kind) or of_kind("meta.k8s.io", "v1", kind)
    return found.name if found is not None and any(each.number for each in flat_fields(found.name).values()) else None


def encode(obj: Object) -> bytes:
    """Return an object, or a whole list of objects, as a body. Raises ApiError (406)."""
    api_version, kind = obj["apiVersion"], obj["kind"]
    if "items" not in obj:
        return envelope(api_version, kind, [item(api_version, kind, obj)])
    items = [list_item(api_version, kind.removesuffix("List"), each) for each in obj["items"]]
    return envelope(api_version, kind, [list_metadata(obj["metadata"]), *items])


def item(api_version: str, kind: str, obj: Object) -> bytes:
    """Return an object without the envelope. Raises ApiError (406) for one that was loaded with a value that its field
    cannot hold.
    """
    try:
        if kind == _PARTIAL and api_version.startswith(_META):
            return field(1, write_message("meta.v1.ObjectMeta", obj["metadata"]))
        name = _message_of(api_version, kind)
        assert name is not None, kind  # no other kinds are negotiated
        return write_message(name, obj)
    except (TypeError, ValueError, AttributeError, OverflowError, struct.error, msgspec.MsgspecError) as error:
        raise unwritable(kind, section(obj, "metadata").get("name") or "", str(error)) from error


def list_item(api_version: str, kind: str, obj: Object) -> bytes:
    """Return an object as an item of a list of its kind. Raises ApiError (406)."""
    return field(2, item(api_version, kind, obj))


def list_metadata(metadata: Object) -> bytes:
    """Return the metadata of a list, as a field of it."""
    return field(1, write_message("meta.v1.ListMeta", metadata))


def envelope(api_version: str, kind: str, parts: Collection[bytes]) -> bytes:
    """Return a body: runtime.Unknown with the type and an object's message, which comes in parts."""
    return b"".join([*opening(api_version, kind, sum(map(len, parts))), *parts])


def opening(api_version: str, kind: str, size: int) -> Iterable[bytes]:
    """Return the beginning of a body whose message has so many bytes."""
    return MAGIC, field(1, field(1, api_version.encode()) + field(2, kind.encode())), _key(2, BYTES), varint(size)
