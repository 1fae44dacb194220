"""/openapi/v2: what the served kinds look like, as JSON for tools that read the second version only.

The protobuf form describes nothing. kubectl asks for it where the third version has no answer: for `kind: List`, and
for group versions that do not exist. From an empty document it concludes that there is nothing to check, and the server
checks what it is sent anyway; without a document it gives up with an error that says nothing about the cause.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any, Final

import msgspec

from pumice.actors.gateway.discovery.openapi import GVK, built_in_schemas, defined_schema
from pumice.actors.gateway.discovery.openapi_schemas import COMPONENTS, PRESERVE
from pumice.actors.gateway.forms import encode
from pumice.cluster.api.fields import is_mapping
from pumice.cluster.api.kind_table import KindTable
from pumice.cluster.api.kinds import Kind
from pumice.cluster.kube.release import RELEASE
from pumice.core.objects.metadata import Object, section

ASKED: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""What is answered: Go cannot read the name by which it asks."""

_SWAGGER: Final = "2.0"
_TITLE: Final = "Pumice"
_TEXT: Final = 2
"""The wire type of texts and messages."""

_DEFINITIONS: Final = "#/definitions/"
_INT_OR_STRING: Final = "int-or-string"
_THIRD: Final = ("allOf", "anyOf", "oneOf", "not", "nullable")
"""What there is in the third version only."""


def as_protobuf() -> bytes:
    """gnostic's Document: swagger is field 1, info 2, paths 8; of info, title is 1 and version 2."""
    info = _field(1, _TITLE.encode()) + _field(2, RELEASE.encode())
    return _field(1, _SWAGGER.encode()) + _field(2, info) + _field(8, b"")


def as_json(kinds: KindTable) -> tuple[bytes, str]:
    """The document with the schemas of all kinds by name, and its entity tag."""
    rows = [(row, version) for row in kinds.rows() for version in row.served_versions]
    definitions: dict[str, Any] = dict(_built_in(tuple(each for each in rows if not each[0].defined)))
    for row, version in rows:
        if row.defined:
            name, schema = defined_schema(kinds, row, version)
            definitions[name] = _whole(schema)
    info = {"title": _TITLE, "version": RELEASE}
    text = encode({"swagger": _SWAGGER, "info": info, "paths": {}, "definitions": definitions})
    return text, f'"{hashlib.sha256(text).hexdigest()[:32].upper()}"'


@lru_cache(maxsize=2)
def _built_in(rows: tuple[tuple[Kind, str], ...]) -> dict[str, msgspec.Raw]:
    found: Object = {}
    for version in sorted({version for _, version in rows}):
        found |= built_in_schemas([row for row, served in rows if served == version], version)
    return {name: msgspec.Raw(encode(_second(found[name]))) for name in sorted(found)}


def _whole(schema: Object) -> Object:
    """The schema of a kind; of one that takes anything nothing more is said than that it is an object."""
    if schema.get(PRESERVE):
        return {"type": "object", GVK: schema[GVK]}
    return _second(schema)


def _second(schema: Object) -> Object:
    """A schema of the third version as one of the second, which has no alternatives and no null (source:
    ToStructuralOpenAPIV2 of Kubernetes' apiextensions).
    """
    made: Object = {name: value for name, value in schema.items() if name not in _THIRD}
    if reference := _reference(schema):
        return made | {"$ref": reference}
    if schema.get("format") == _INT_OR_STRING:
        made["type"] = "string"
    untyped = bool(schema.get("nullable"))
    if untyped or schema.get(PRESERVE):
        untyped = untyped or made.get("type") in ("object", "array")
        made = {name: value for name, value in made.items() if name not in ("items", "properties")}
    if untyped:
        made.pop("type", None)
    return made | _inside(made)


def _inside(schema: Object) -> Object:
    """What is below a schema, in the second version; what may be null is not required."""
    found: Object = {}
    properties: dict[str, Object] = section(schema, "properties")
    if properties:
        found["properties"] = {name: _second(each) for name, each in properties.items()}
    for name in ("items", "additionalProperties"):
        if is_mapping(schema.get(name)):
            found[name] = _second(schema[name])
    if "required" in schema:
        nullable = {name for name, each in properties.items() if each.get("nullable")}
        found["required"] = [name for name in schema["required"] if name not in nullable]
    return found


def _reference(schema: Object) -> str:
    """Of a schema that is another one, with words of its own or without."""
    inner: list[Object] = schema.get("allOf") or [schema]
    found = inner[0].get("$ref") if len(inner) == 1 else None
    return found.replace(COMPONENTS, _DEFINITIONS) if isinstance(found, str) else ""


def _field(number: int, value: bytes) -> bytes:
    return bytes((number << 3 | _TEXT, len(value))) + value
