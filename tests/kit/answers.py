"""Answers of a server as plain objects, whatever they came as."""

from __future__ import annotations

import json

import httpx

from pumice.actors.gateway.protobuf.reading import MAGIC, decode, fields, inside, object_in, raw, read_message
from pumice.actors.gateway.protobuf.writing import encode, envelope
from pumice.core.objects.metadata import Object

PROTOBUF = "application/vnd.kubernetes.protobuf"


def object_of(answer: httpx.Response) -> Object:
    """The object or list in an answer."""
    if answer.headers["content-type"].startswith(PROTOBUF):
        return decoded(answer.content)
    found: Object = json.loads(answer.content)
    return found


def decoded(body: bytes) -> Object:
    """The object or list in protobuf; of items, as the client knows them, with kind and apiVersion."""
    api_version, kind = (inside(body[len(MAGIC) :], 1, number).decode() for number in (1, 2))
    head: Object = {"apiVersion": api_version, "kind": kind}
    if kind == "PartialObjectMetadata":
        return head | {"metadata": read_message("meta.v1.ObjectMeta", memoryview(inside(object_in(body), 1)))}
    if not kind.endswith("List"):
        return decode(body)
    parts = [bytes(raw(part)) for part in fields(object_in(body)).get(2, [])]
    items = [decoded(envelope(api_version, kind.removesuffix("List"), [part])) for part in parts]
    return head | {"metadata": read_message("meta.v1.ListMeta", memoryview(inside(object_in(body), 1))), "items": items}


def completed(found: Object) -> Object:
    """JSON as it is read from protobuf: Go prints some fields that an object does not have."""
    return decoded(encode(found))


def events_in(data: bytes) -> tuple[list[tuple[str, Object]], bytes]:
    """Types and objects of the whole events of a watch in protobuf, and the bytes that are left."""
    found: list[tuple[str, Object]] = []
    while len(data) >= 4 and len(data) >= (end := 4 + int.from_bytes(data[:4])):
        event, data = data[4:end], data[end:]
        found.append((inside(event, 1).decode(), decoded(inside(event, 2, 1))))
    return found, data
