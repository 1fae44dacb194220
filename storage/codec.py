# SPDX-License-Identifier: Apache-2.0
"""MessagePack, and the only module that knows it.

Plain data is what JSON knows plus bytes: None, bool, int (64 bits), float, str, bytes, lists and dictionaries; a tuple
comes back as a list. Messages are msgspec Structs, stored as dictionaries with a tag, so a union of them decodes to
the right class and a field added later (with a default) does not prevent reading older records. msgspec
writes and reads them in one step, to the same bytes as the msgpack library, five times faster. Plain data is written by
the library, which refuses what is not plain, and read by msgspec, in half the time; so is written what was read.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args, overload

import msgpack  # type: ignore[import-untyped]
import msgspec

from pumice.core.messages.message import KEY, NEWEST, newer
from pumice.storage.errors import CodecError, NewerPayloadError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

_library = cast("Any", msgpack)  # it has no types
_BINARY = (bytes,)
# ValueError covers broken bytes, broken UTF-8 and depth; TypeError a dictionary or list as key; OverflowError 65 bits;
# RecursionError is msgspec's word for depth.
_REFUSALS = (ValueError, TypeError, OverflowError, RecursionError, _library.exceptions.UnpackException)
_read_plain = msgspec.msgpack.Decoder().decode
_write_plain = msgspec.msgpack.Encoder().encode


class _Packer(threading.local):
    """One packer a thread: making one costs more than packing a small message, sharing one is not safe."""

    def __init__(self) -> None:
        self.pack: Callable[[Any], bytes] = _library.Packer(use_bin_type=True, strict_types=False).pack


_packer = _Packer()


def pack(data: object) -> bytes:
    """Return plain data as MessagePack. Raises CodecError for other types."""
    try:
        return _packer.pack(data)
    except _REFUSALS as problem:
        raise CodecError(f"cannot pack {type(data).__name__}: {problem}") from problem


def repack(data: object) -> bytes:
    """Pack data from `unpack`, or data made of it and of plain data: the check for other types is skipped.

    It takes half the time. Raises CodecError.
    """
    try:
        return _write_plain(data)
    except _REFUSALS as problem:
        raise CodecError(f"cannot pack {type(data).__name__}: {problem}") from problem


def unpack(data: bytes) -> Any:
    """Return the plain data in `data`, which must hold one value and nothing after it. Raises CodecError."""
    try:
        return _read_plain(data)
    except _REFUSALS as problem:
        raise CodecError(_cannot_unpack(data, problem)) from problem


def encode(message: msgspec.Struct) -> bytes:
    """Return a Struct as MessagePack: a dictionary by field name, with its tag. Raises CodecError."""
    try:
        return msgspec.msgpack.encode(message)
    except _REFUSALS as problem:
        raise CodecError(f"cannot encode {type(message).__name__}: {problem}") from problem


def encode_many(messages: Sequence[msgspec.Struct]) -> list[bytes]:
    """Encode each of several, in order. Raises CodecError for the first that cannot be encoded."""
    try:
        return list(map(msgspec.msgpack.encode, messages))
    except _REFUSALS:
        return list(map(encode, messages))  # which says what is wrong


@overload
def decode(data: bytes, type: type[T]) -> T: ...
@overload
def decode(data: bytes, type: object) -> Any: ...
def decode(data: bytes, type: object) -> Any:  # noqa: A002
    """Return the message in `data`, which must be of `type`: a Struct, a union of tagged Structs, or any type msgspec
    reads.

    Raises CodecError naming the field that does not fit.
    """
    return decoder(type)(data)


@lru_cache(maxsize=256)
def decoder(type: object) -> Callable[[bytes], Any]:  # noqa: A002
    """Return a decoder for one type, such as a union of tagged Structs, which is analysed once and not at every
    call.
    """
    read = msgspec.msgpack.Decoder(type).decode

    def decode_one(data: bytes) -> Any:
        try:
            return read(data)
        except msgspec.ValidationError as problem:
            raise _not_a(type, problem, data) from problem
        except _REFUSALS as problem:
            raise CodecError(_cannot_unpack(data, problem)) from problem

    return decode_one


@lru_cache(maxsize=256)
def decoder_of_many(type: object) -> Callable[[Sequence[bytes]], list[Any]]:  # noqa: A002
    """Decode messages that came together, in order. Raises the error of the first that does not fit."""
    read, read_one = msgspec.msgpack.Decoder(type).decode, decoder(type)

    def decode_each(frames: Sequence[bytes]) -> list[Any]:
        try:
            return list(map(read, frames))
        except _REFUSALS:
            return list(map(read_one, frames))  # which says what is wrong

    return decode_each


def convert(value: object, type: object) -> Any:  # noqa: A002
    """Convert plain data to `type`. Raises CodecError naming the field that does not fit."""
    try:
        return msgspec.convert(value, _class_of(value, type), builtin_types=_BINARY)
    except msgspec.ValidationError as problem:
        raise _not_a(type, problem) from problem


def _class_of(value: object, type: object) -> Any:  # noqa: A002
    """Return the member of a tagged union that `value` names: msgspec analyses a union on every call (6 µs), a class
    once.
    """
    # A struct's tag picks the class; what has no known tag goes to msgspec, whose error names it.
    members = _members(type)
    if members is None or not isinstance(value, dict):
        return type
    field, by_tag = members
    tag: Any = value.get(field)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return by_tag.get(tag, type) if isinstance(tag, str | int) else type


@lru_cache(maxsize=256)
def _members(type: object) -> tuple[str, dict[Any, Any]] | None:  # noqa: A002
    """Return tag field and classes by tag of a union of tagged Structs; None for every other type."""
    configs = [getattr(member, "__struct_config__", None) for member in get_args(type)]
    fields = {config.tag_field if config else None for config in configs}
    field = fields.pop() if len(fields) == 1 else None
    if field is None:
        return None
    return field, dict(zip((config.tag for config in configs if config), get_args(type), strict=True))


def _not_a(type: object, problem: Exception, data: bytes = b"") -> CodecError:  # noqa: A002
    plain = unpack(data) if data else None
    tag = cast("Any", plain).get(KEY) if isinstance(plain, dict) else None
    wire = newer(tag)
    if wire is not None:
        return NewerPayloadError(wire.name, wire.version, NEWEST[wire.name])
    return CodecError(f"not a {getattr(type, '__name__', str(type))}: {problem}")


def _cannot_unpack(data: bytes, problem: Exception) -> str:
    reason = str(problem) or type(problem).__name__
    return f"cannot unpack {len(data)} bytes: {reason}"
