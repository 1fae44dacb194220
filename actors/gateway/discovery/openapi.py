"""/openapi/v3: enough for kubectl to create, apply, replace and edit, and schemas for `kubectl explain`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from actors.api.kind_table import KindTable
from actors.api.kinds import Kind
from actors.api.schema.table import of_kind
from actors.gateway.discovery.groups import groups
from actors.gateway.discovery.openapi_schemas import schema_name, schemas_of
from actors.gateway.forms import encode
from actors.kube.release import RELEASE
from core.objects.metadata import Object, section

_VALIDATION: Final = {
    "name": "fieldValidation",
    "in": "query",
    "description": "What becomes of fields that the kind does not have: Ignore, Warn or Strict.",
    "schema": {"type": "string", "uniqueItems": True},
}
_PATCHES: Final = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
)
_STRATEGIC: Final = "application/strategic-merge-patch+json"
"""Built-in kinds take it, custom ones do not: kubectl asks here before it patches."""


def index(kinds: KindTable) -> Object:
    """/openapi/v3: where the document of each group and version is."""
    paths: Object = {}
    for group, versions in groups(kinds).items():
        for version in versions:
            name = f"apis/{group}/{version}" if group else f"api/{version}"
            text = document(kinds, group, version) or b""
            digest = hashlib.sha256(text).hexdigest()[:16].upper()
            paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={digest}"}
    return {"paths": paths}


def document(kinds: KindTable, group: str, version: str) -> bytes | None:
    """The document of a group and version, as JSON; None when there is none."""
    rows = groups(kinds).get(group, {}).get(version)
    if rows is None:
        return None
    own = [row for row in rows if kinds.definition(row.key) is None]
    defined = [row for row in rows if kinds.definition(row.key) is not None]
    if not defined:
        return _built_in(tuple(own), version)
    paths, schemas = _parts(own, version)
    for row in defined:
        schemas[_defined_name(row, version)] = _defined(kinds, row, version)
        paths |= _paths(row, version, _defined_name(row, version))
    return _text(paths, schemas)


@lru_cache(maxsize=128)
def _built_in(rows: tuple[Kind, ...], version: str) -> bytes:
    return _text(*_parts(rows, version))


def _text(paths: Object, schemas: Object) -> bytes:
    info = {"title": "Pumice", "version": RELEASE}
    return encode({"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}})


def _parts(rows: Sequence[Kind], version: str) -> tuple[Object, Object]:
    """Paths and schemas of built-in kinds; one that nobody described has no schema."""
    paths: Object = {}
    described = {row: found for row in rows if (found := of_kind(row.group, version, row.kind))}
    schemas: Object = schemas_of(described.values())
    for row in rows:
        found = described.get(row)
        name = schema_name(found.name) if found else ""
        if found:
            schemas[name]["x-kubernetes-group-version-kind"] = [_gvk(row, version)]
        paths |= _paths(row, version, name)
    return paths, schemas


def _gvk(row: Kind, version: str) -> Object:
    return {"group": row.group, "version": version, "kind": row.kind}


def _defined_name(row: Kind, version: str) -> str:
    """The name of a defined kind's schema: the group's labels turned round, as Kubernetes has it."""
    return f"{'.'.join(reversed(row.group.split('.')))}.{version}.{row.kind}"


def _defined(kinds: KindTable, row: Kind, version: str) -> Object:
    """The schema that a kind's definition gives, with what every object has."""
    definition = kinds.definition(row.key) or {}
    listed: list[Object] = section(definition, "spec").get("versions") or []
    found = next((each for each in listed if each.get("name") == version), Object())
    schema = section(section(found, "schema"), "openAPIV3Schema")
    properties = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    gvk = {"x-kubernetes-group-version-kind": [_gvk(row, version)]}
    return {"type": "object", **schema, "properties": {**properties, **section(schema, "properties")}, **gvk}


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
            "x-kubernetes-group-version-kind": gvk,
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


def _content(schema: str, media: tuple[str, ...]) -> dict[str, Any]:
    return {each: {"schema": {"$ref": f"#/components/schemas/{schema}"}} if schema else {} for each in media}
