"""/openapi/v3: enough for kubectl to create, apply, replace and edit, and schemas for `kubectl explain`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from pumice.actors.gateway.discovery.groups import groups
from pumice.actors.gateway.discovery.openapi_schemas import COMPONENTS, reference, schema_name, schemas_of
from pumice.actors.gateway.forms import encode
from pumice.cluster.api.kind_table import KindTable
from pumice.cluster.api.kinds import Kind
from pumice.cluster.api.schema.table import message, of_kind
from pumice.cluster.kube.release import RELEASE
from pumice.core.objects.metadata import Object, section

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
    schemas |= schemas_of([message(METADATA)])
    for row in defined:
        name, schema = defined_schema(kinds, row, version)
        schemas[name] = schema
        paths |= _paths(row, version, name)
    return _text(paths, schemas)


def built_in_schemas(rows: Sequence[Kind], version: str) -> dict[str, Object]:
    """The schemas of built-in kinds of a version, and of all that they are made of, by name."""
    return _parts(rows, version)[1]


def defined_schema(kinds: KindTable, row: Kind, version: str) -> tuple[str, Object]:
    """What a kind's definition says, with what every object has; by a name in which the group's labels are turned
    round, as Kubernetes has it.
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
    """Paths and schemas of built-in kinds; one that nobody described has no schema."""
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


def _content(schema: str, media: tuple[str, ...]) -> dict[str, Any]:
    return {each: {"schema": {"$ref": COMPONENTS + schema}} if schema else {} for each in media}
