# SPDX-License-Identifier: Apache-2.0
"""Request bodies as plain data: JSON, YAML, protobuf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import anyio.to_thread
import msgspec

from pumice.actors.gateway.problems import BODY_TYPES, ApiError, bad_request, unsupported_media
from pumice.actors.gateway.protobuf import reading
from pumice.actors.gateway.request.exchange import Exchange
from pumice.actors.gateway.request.negotiation import PROTOBUF
from pumice.config.errors import ConfigError, DuplicateKeyError
from pumice.config.scalars import resolve_for_api
from pumice.config.yaml_tree import read_documents
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object, is_mapping
from pumice.core.objects.soundness import MOST_DEPTH, unsound
from pumice.storage import codec
from pumice.storage.errors import CodecError

JSON: Final = "application/json"
YAML: Final = ("application/yaml", "text/yaml", "application/apply-patch+yaml")
QUICK: Final = 2_048
"""Bytes of YAML or protobuf that are read on the loop; more goes to a thread, for it takes its time."""


def media_type(exchange: Exchange) -> str:
    """Return the media type of the body, without parameters; JSON by default."""
    return exchange.header("content-type").partition(";")[0].strip().lower() or JSON


async def read_object(exchange: Exchange, limit: int) -> Object:
    """Return the body as a mapping. Raises ApiError (400, 413, 415)."""
    value = await read_value(exchange, limit)
    if not is_mapping(value):
        raise bad_request(f"expected an object, found {_sort(value)}")
    return value


async def read_value(exchange: Exchange, limit: int, known: Sequence[str] = BODY_TYPES) -> Any:
    """Return the body as plain data, by its content type."""
    media = media_type(exchange)
    body = await exchange.body(limit)
    if media == JSON or media.endswith("+json"):
        exchange.json_text = body
        return parse_json(body)
    if media in YAML:
        if _is_json(body):  # which is YAML too, and what most clients apply
            exchange.json_text = body
        return await parse_yaml(body)
    if media == PROTOBUF:
        return await parse_protobuf(body)
    raise unsupported_media(media, known)


def parse_json(body: bytes) -> Any:
    """Return the JSON value. Raises ApiError (400)."""
    try:
        found = msgspec.json.decode(body)
    except RecursionError as error:
        raise bad_request(f"the object provided cannot be kept: nested deeper than {MOST_DEPTH} levels") from error
    except (msgspec.DecodeError, ValueError) as error:
        raise bad_request(f"the object provided is not JSON: {error}") from error
    # A body with fewer opening brackets than levels allowed cannot be too deep: it needs no walk.
    if body.count(b"{") + body.count(b"[") > MOST_DEPTH and (problem := unsound({"": found})):
        raise bad_request(f"the object provided cannot be kept: {problem.removeprefix('.')}")
    return found


async def parse_yaml(body: bytes) -> Any:
    """Return one document of YAML, or of JSON. Raises ApiError (400)."""
    if _is_json(body):
        return parse_json(body)
    if len(body) <= QUICK:
        return _yaml(body)
    # A megabyte of YAML takes half a second, in which no other client would be served.
    return await anyio.to_thread.run_sync(_yaml, body)


def _is_json(body: bytes) -> bool:
    return body.lstrip()[:1] in (b"{", b"[")


def _yaml(body: bytes) -> Any:
    try:
        documents = read_documents(body.decode(), "body", plain=resolve_for_api)
    except DuplicateKeyError as error:
        why = f'line {error.line}: key "{error.key}" already set in map'
        raise bad_request(f"strict decoding error: yaml: unmarshal errors:\n  {why}") from error
    except (ConfigError, ValueError) as error:
        raise bad_request(f"the object provided is not YAML: {error}") from error
    if len(documents) != 1:
        raise bad_request(f"expected one YAML document, found {len(documents)}")
    return documents[0].data


async def parse_protobuf(body: bytes) -> Object:
    """Return an object in Kubernetes' protobuf envelope. Raises ApiError (400, 415)."""
    return _protobuf(body) if len(body) <= QUICK else await anyio.to_thread.run_sync(_protobuf, body)


def _protobuf(body: bytes) -> Object:
    try:
        return reading.decode(body)
    except reading.UnknownProtobufKindError as error:
        raise ApiError(Refused(error.code, error.reason, str(error))) from error
    except reading.MalformedBodyError as error:
        raise bad_request(f"the object provided is unrecognized: {error}") from error


def packed(value: object) -> bytes:
    """Return the bytes for a message to the api. Raises ApiError for a value that cannot be stored, such as a number of
    more than 64 bits: 422 with the field, 400 without one.
    """
    try:
        return codec.pack(value)
    except CodecError as error:
        problem = unsound(value) if is_mapping(value) else ""
        field, _, why = problem.partition(": ")
        if not why:
            raise bad_request(f"the object provided cannot be stored: {error}") from error
        causes = [{"reason": "FieldValueInvalid", "message": f"Invalid value: {why}", "field": field}]
        message = f"the object provided is invalid: {field}: Invalid value: {why}"
        raise ApiError(Refused(422, "Invalid", message, {"causes": causes})) from error


def _sort(value: Any) -> str:
    if value is None:
        return "nothing"
    return {list: "a list", str: "a text", bool: "a boolean"}.get(type(value), "a number")  # pyright: ignore[reportUnknownArgumentType]
