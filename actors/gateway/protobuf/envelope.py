"""The envelope of a protobuf body: four bytes, then runtime.Unknown with the type's name and the object's message."""

from __future__ import annotations

from typing import Final

from pumice.actors.gateway.protobuf.errors import MalformedBodyError, UnknownProtobufKindError
from pumice.actors.gateway.protobuf.messages import read_message
from pumice.actors.gateway.protobuf.wire import Fields, fields, text_of
from pumice.cluster.api.schema.model import SchemaMessage
from pumice.cluster.api.schema.table import flat_fields, of_kind, of_type
from pumice.core.objects.metadata import Object

MAGIC: Final = b"k8s\x00"
_TYPE: Final = 1
_RAW: Final = 2
_ENCODING: Final = 3


def decode(body: bytes) -> Object:
    """The object of a body as its JSON would be, nulls left out.

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
