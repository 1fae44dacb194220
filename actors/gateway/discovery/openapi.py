# SPDX-License-Identifier: Apache-2.0
"""OpenAPI: the schemas of the served kinds, in version 3 (/openapi/v3) and as JSON in version 2 (/openapi/v2).

Enough for kubectl to create, apply, replace, edit and explain.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from pumice.actors.gateway.discovery.groups import groups
from pumice.actors.gateway.forms import encode
from pumice.cluster import RELEASE
from pumice.cluster.api.kind_table import KindTable
from pumice.cluster.api.kinds import Kind
from pumice.cluster.api.schema.table import Field, SchemaMessage, element, flat_fields, is_message, message, of_kind
from pumice.core.objects.metadata import Object, is_mapping, section

# --- Schemas of the built-in kinds
# They carry what clients merge by: patch strategies and keys, types of lists and maps.

PREFIX: Final = "io.k8s.api."
COMPONENTS: Final = "#/components/schemas/"
_DATE: Final[Object] = {"type": "string", "format": "date-time"}
PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_ANYTHING: Final[Object] = {PRESERVE: True}
_TYPES: Final[dict[str, Object]] = {
    "string": {"type": "string"},
    "boolean": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "double": {"type": "number", "format": "double"},
    "byte": {"type": "string", "format": "byte"},
    "Quantity": {"type": "string"},
    "IntOrString": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    "Time": _DATE,
    "MicroTime": _DATE,
    "Duration": {"type": "string"},
    "FieldsV1": {"type": "object"},
    "RawExtension": {"type": "object", **_ANYTHING},
}


def reference(name: str) -> Object:
    """Return a reference to a message's schema."""
    return {"$ref": COMPONENTS + schema_name(name)}


def schema_name(name: str) -> str:
    """Return the name of a message's schema."""
    return f"{PREFIX}{name}"


def schemas_of(roots: Iterable[SchemaMessage]) -> dict[str, Object]:
    """Return the schemas of messages, and of all that they are made of, by name."""
    made: dict[str, Object] = {}
    waiting = [root.name for root in roots]
    while waiting:
        name = waiting.pop()
        # Messages may hold themselves, as JSONSchemaProps does.
        if schema_name(name) in made:
            continue
        fields = flat_fields(name)
        made[schema_name(name)] = _schema(message(name), fields)
        waiting += [item for field in fields.values() if is_message(item := _innermost(field.type))]
    return made


def _innermost(type_: str) -> str:
    while type_[0] in "[{@":
        type_ = element(type_)
    return type_


def _schema(described: SchemaMessage, fields: dict[str, Field]) -> Object:
    made: Object = {"type": "object"}
    if described.doc:
        made["description"] = described.doc
    made["properties"] = {name: _property(field) for name, field in fields.items()}
    if required := [name for name, field in fields.items() if field.required]:
        made["required"] = required
    if described.atomic:
        made["x-kubernetes-map-type"] = "atomic"
    if described.open:
        made |= _ANYTHING
    return made


def _property(field: Field) -> Object:
    rules = field.rules
    made: Object = _typed(field.type)
    if "$ref" in made and (rules.doc or "a" in field.flags):
        # OpenAPI 3.0 ignores fields beside a `$ref`, so a reference with words of its own is wrapped.
        made = {"allOf": [made]}
    if rules.doc:
        made["description"] = rules.doc
    if "a" in field.flags and field.many != "list":
        made["x-kubernetes-map-type"] = "atomic"
    if field.many == "list":
        made |= _list_rules(field)
    return made | _value_rules(field)


def _list_rules(field: Field) -> Object:
    rules = field.rules
    made: Object = {}
    if rules.merge_key:
        made["x-kubernetes-patch-merge-key"] = rules.merge_key
    if rules.strategy:
        made["x-kubernetes-patch-strategy"] = ",".join(rules.strategy)
    if rules.list_type:
        made["x-kubernetes-list-type"] = rules.list_type
    if rules.keys:
        made["x-kubernetes-list-map-keys"] = list(rules.keys)
    return made


def _value_rules(field: Field) -> Object:
    rules = field.rules
    found: Object = {
        "default": rules.default,
        "enum": sorted(rules.enum) or None,
        "minimum": rules.minimum,
        "maximum": rules.maximum,
        "minLength": rules.min_length,
        "maxLength": rules.max_length,
        "minItems": rules.min_items,
        "pattern": rules.pattern or None,
    }
    if field.many != "list" and rules.strategy:
        found["x-kubernetes-patch-strategy"] = ",".join(rules.strategy)
    return {name: value for name, value in found.items() if value is not None}


def _typed(type_: str) -> Object:
    mark = type_[0]
    if mark == "{":
        return {"type": "object", "additionalProperties": _typed(element(type_))}
    if mark in "[@":
        return {"type": "array", "items": _typed(element(type_))}
    if is_message(type_):
        return reference(type_)
    return dict(_TYPES.get(type_, _ANYTHING))


_VALIDATION: Final = {
    "name": "fieldValidation",
    "in": "query",
    "description": "What becomes of fields that the kind does not have: Ignore, Warn or Strict.",
    "schema": {"type": "string", "uniqueItems": True},
}
GVK: Final = "x-kubernetes-group-version-kind"
METADATA: Final = "meta.v1.ObjectMeta"
_OF_ALL: Final[Object] = {
    "apiVersion": {"type": "string", "description": "APIVersion defines the group and version of what this describes."},
    "kind": {"type": "string", "description": "Kind is the name of the type of this object."},
    "metadata": {"description": "Standard object's metadata.", "allOf": [reference(METADATA)]},
}
_PATCHES: Final = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
)
_STRATEGIC: Final = "application/strategic-merge-patch+json"
"""Built-in kinds take it, custom ones do not: kubectl asks here before it patches."""


def index(kinds: KindTable) -> Object:
    """Return /openapi/v3: the places of the documents of groups and versions."""
    paths: Object = {}
    for group, versions in groups(kinds).items():
        for version in versions:
            name = f"apis/{group}/{version}" if group else f"api/{version}"
            text = document(kinds, group, version) or b""
            digest = hashlib.sha256(text).hexdigest()[:16].upper()
            paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={digest}"}
    return {"paths": paths}


def document(kinds: KindTable, group: str, version: str) -> bytes | None:
    """Return the document of a group and version, as JSON; None without one."""
    rows = groups(kinds).get(group, {}).get(version)
    if rows is None:
        return None
    own = [row for row in rows if kinds.definition(row.key) is None]
    defined = [row for row in rows if kinds.definition(row.key) is not None]
    if not defined:
        # Only a document without defined kinds is cached: definitions come and go.
        return _built_in(tuple(own), version)
    paths, schemas = _parts(own, version)
    # Every defined kind refers to it, and a group may have no built-in kind that brings it along.
    schemas |= schemas_of([message(METADATA)])
    for row in defined:
        name, schema = defined_schema(kinds, row, version)
        schemas[name] = schema
        paths |= _paths(row, version, name)
    return _text(paths, schemas)


def built_in_schemas(rows: Sequence[Kind], version: str) -> dict[str, Object]:
    """Return the schemas of built-in kinds of a version, and of all that they are made of, by name."""
    return _parts(rows, version)[1]


def defined_schema(kinds: KindTable, row: Kind, version: str) -> tuple[str, Object]:
    """Return the schema in a kind's definition, with the fields of every object. Its name has the labels of the group
    in reverse order, as in Kubernetes.
    """
    definition = kinds.definition(row.key) or {}
    listed: list[Object] = section(definition, "spec").get("versions") or []
    found = next((each for each in listed if each.get("name") == version), Object())
    schema = section(section(found, "schema"), "openAPIV3Schema")
    properties = {**section(schema, "properties"), **_OF_ALL}
    name = f"{'.'.join(reversed(row.group.split('.')))}.{version}.{row.kind}"
    return name, {"type": "object", **schema, "properties": properties, GVK: [_gvk(row, version)]}


@lru_cache(maxsize=128)
def _built_in(rows: tuple[Kind, ...], version: str) -> bytes:
    return _text(*_parts(rows, version))


def _text(paths: Object, schemas: Object) -> bytes:
    info = {"title": "Pumice", "version": RELEASE}
    return encode({"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}})


def _parts(rows: Sequence[Kind], version: str) -> tuple[Object, Object]:
    """Return paths and schemas of built-in kinds; a kind without a description has no schema."""
    paths: Object = {}
    described = {row: found for row in rows if (found := of_kind(row.group, version, row.kind))}
    schemas: Object = schemas_of(described.values())
    for row in rows:
        found = described.get(row)
        name = schema_name(found.name) if found else ""
        if found:
            schemas[name][GVK] = [_gvk(row, version)]
        paths |= _paths(row, version, name)
    return paths, schemas


def _gvk(row: Kind, version: str) -> Object:
    return {"group": row.group, "version": version, "kind": row.kind}


def _paths(row: Kind, version: str, schema: str) -> Object:
    root = f"/apis/{row.group}/{version}" if row.group else f"/api/{version}"
    collection = f"{root}/namespaces/{{namespace}}/{row.plural}" if row.namespaced else f"{root}/{row.plural}"
    gvk = _gvk(row, version)

    def operation(action: str, bodies: tuple[str, ...] = ()) -> Object:
        told: Object = {
            "operationId": f"{action}{row.group}{version}{row.kind}",
            "parameters": [_VALIDATION] if bodies else [],
            "responses": {"200": {"description": "OK", "content": _content(schema, ("application/json",))}},
            "x-kubernetes-action": action,
            GVK: gvk,
        }
        if bodies:
            told["requestBody"] = {"content": _content(schema, bodies)}
        return told

    whole = ("application/json", "application/yaml")
    return {
        collection: {"get": operation("list"), "post": operation("post", whole)},
        f"{collection}/{{name}}": {
            "get": operation("get"),
            "put": operation("put", whole),
            "patch": operation("patch", _PATCHES if row.is_custom else (*_PATCHES, _STRATEGIC)),
            "delete": operation("delete"),
        },
    }


def _content(schema: str, media: tuple[str, ...]) -> Object:
    return {each: {"schema": {"$ref": COMPONENTS + schema}} if schema else {} for each in media}


# --- Version 2
# The protobuf form describes nothing. kubectl asks for it where the third version has no answer: for `kind: List`,
# and for group versions that do not exist. From an empty document it concludes that there is nothing to check, and
# the server checks what it is sent anyway; without a document it gives up with an error that says nothing about the
# cause.

V2_ASKED: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
V2_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""Content type of the answer: Go cannot parse the name that it asks for."""

_SWAGGER: Final = "2.0"
_TITLE: Final = "Pumice"
_TEXT: Final = 2
"""The wire type of texts and messages."""

_DEFINITIONS: Final = "#/definitions/"
_INT_OR_STRING: Final = "int-or-string"
_THIRD: Final = ("allOf", "anyOf", "oneOf", "not", "nullable")
"""Fields that exist in the third version only."""


def v2_protobuf() -> bytes:
    """Return gnostic's Document: swagger is field 1, info 2, paths 8; of info, title is 1 and version 2."""
    info = _field(1, _TITLE.encode()) + _field(2, RELEASE.encode())
    return _field(1, _SWAGGER.encode()) + _field(2, info) + _field(8, b"")


def v2_json(kinds: KindTable) -> tuple[bytes, str]:
    """Return the document_v2 with the schemas of all kinds by name, and its entity tag."""
    rows = [(row, version) for row in kinds.rows() for version in row.served_versions]
    definitions: Object = dict(_built_in_v2(tuple(each for each in rows if not each[0].defined)))
    for row, version in rows:
        if row.defined:
            name, schema = defined_schema(kinds, row, version)
            definitions[name] = _whole(schema)
    info = {"title": _TITLE, "version": RELEASE}
    text = encode({"swagger": _SWAGGER, "info": info, "paths": {}, "definitions": definitions})
    return text, f'"{hashlib.sha256(text).hexdigest()[:32].upper()}"'


@lru_cache(maxsize=2)
def _built_in_v2(rows: tuple[tuple[Kind, str], ...]) -> dict[str, msgspec.Raw]:
    found: Object = {}
    for version in sorted({version for _, version in rows}):
        found |= built_in_schemas([row for row, served in rows if served == version], version)
    # As bytes: a request encodes only the schemas of definitions anew.
    return {name: msgspec.Raw(encode(_second(found[name]))) for name in sorted(found)}


def _whole(schema: Object) -> Object:
    """Return the schema of a kind; of one that takes any field only that it is an object."""
    if schema.get(PRESERVE):
        return {"type": "object", GVK: schema[GVK]}
    return _second(schema)


def _second(schema: Object) -> Object:
    """Return a schema of the third version as one of the second, which has no alternatives and no null (source:
    ToStructuralOpenAPIV2 of Kubernetes' apiextensions).
    """
    made: Object = {name: value for name, value in schema.items() if name not in _THIRD}
    if reference := _reference(schema):
        return made | {"$ref": reference}
    if schema.get("format") == _INT_OR_STRING:
        # A schema of version 2 has one type; Kubernetes' own documents say string here.
        made["type"] = "string"
    untyped = bool(schema.get("nullable"))
    if untyped or schema.get(PRESERVE):
        untyped = untyped or made.get("type") in ("object", "array")
        made = {name: value for name, value in made.items() if name not in ("items", "properties")}
    if untyped:
        # Version 2 has no null: against a type kubectl would refuse it.
        made.pop("type", None)
    return made | _inside(made)


def _inside(schema: Object) -> Object:
    """Return the schemas inside a schema, in the second version; fields that may be null are not required."""
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
    """Return the reference of a schema to another one, with words of its own or without."""
    inner: list[Object] = schema.get("allOf") or [schema]
    found = inner[0].get("$ref") if len(inner) == 1 else None
    return found.replace(COMPONENTS, _DEFINITIONS) if isinstance(found, str) else ""


def _field(number: int, value: bytes) -> bytes:
    # A length of one byte: no part of this document has more than 127.
    return bytes((number << 3 | _TEXT, len(value))) + value
