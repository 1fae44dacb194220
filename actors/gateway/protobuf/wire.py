"""Protobuf's wire format: a run of bytes as values by field number, not knowing what they mean."""

from __future__ import annotations

import struct
from typing import Final

from pumice.actors.gateway.protobuf.errors import MalformedBodyError

Value = int | float | memoryview
Fields = dict[int, list[Value]]

_VARINT: Final = 0
_FIXED64: Final = 1
_BYTES: Final = 2
_FIXED32: Final = 5
_LONGEST_VARINT: Final = 10
_WIDTHS: Final = {_FIXED64: struct.Struct("<d"), _FIXED32: struct.Struct("<f")}


def fields(data: memoryview) -> Fields:
    """Every value by field number, in order: varints as unsigned integers, fixed ones as floats, the rest as bytes.

    Raises MalformedBodyError for a truncated run, an unknown wire type or the field number 0.
    """
    found: Fields = {}
    at, end = 0, len(data)
    while at < end:
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise MalformedBodyError("field number 0 is not allowed")
        if wire == _VARINT:
            value: Value
            value, at = varint(data, at)
        elif wire == _BYTES:
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
    """The unsigned number at `at`, and where the next value stands."""
    value = shift = 0
    for place in range(at, min(at + _LONGEST_VARINT, len(data))):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, place + 1
        shift += 7
    raise MalformedBodyError("unexpected end of a number")


def text_of(data: memoryview) -> str:
    """The text of UTF-8 bytes."""
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        raise MalformedBodyError("a string is not UTF-8") from None


def _slice(data: memoryview, at: int, size: int) -> memoryview:
    if size > len(data) - at:
        raise MalformedBodyError("unexpected end of the message")
    return data[at : at + size]
