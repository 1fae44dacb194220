"""Values of the wire as JSON has them: numbers, texts, and the types to which Kubernetes gives a JSON of their own."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pumice.actors.gateway.protobuf.errors import MalformedBodyError
from pumice.actors.gateway.protobuf.wire import Value, fields, text_of
from pumice.config.durations import format_duration

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def whole(value: Value, bits: int = 64) -> int:
    """A signed whole number of so many bits."""
    if not isinstance(value, int):
        raise MalformedBodyError("expected a number")
    low = value & ((1 << bits) - 1)
    return low - (1 << bits) if low >> (bits - 1) else low


def raw(value: Value) -> memoryview:
    """The bytes of a text, of bytes or of a message."""
    if not isinstance(value, memoryview):
        raise MalformedBodyError("expected bytes, found a number")
    return value


def _double(value: Value) -> float:
    if not isinstance(value, float):
        raise MalformedBodyError("expected a floating-point number")
    return value


def _quantity(value: Value) -> str:
    found = fields(raw(value))
    return text_of(raw(found[1][-1])) or "0" if 1 in found else "0"


def _int_or_string(value: Value) -> int | str:
    found = fields(raw(value))
    if 1 in found and whole(found[1][-1]):
        return text_of(raw(found[3][-1])) if 3 in found else ""
    return whole(found[2][-1], 32) if 2 in found else 0


def _moment(value: Value) -> tuple[datetime, int] | None:
    """The time to the second and its nanoseconds; None for Go's zero time."""
    found = fields(raw(value))
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
    return None if found is None else f"{found[0].isoformat()[:19]}Z"


def _micro_time(value: Value) -> str | None:
    found = _moment(value)
    return None if found is None else f"{found[0].isoformat()[:19]}.{found[1] // 1000:06d}Z"


def _duration(value: Value) -> str:
    found = fields(raw(value))
    return format_duration(whole(found[1][-1]) if 1 in found else 0)


def _json(value: Value) -> Any:
    """JSON text inside a message."""
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
"""How a value of each scalar type of the schema table is read; None is a null."""
