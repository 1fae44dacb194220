"""/openapi/v3: enough for kubectl to create, apply, replace and edit, and schemas for `kubectl explain`."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from actors.api.kind_table import KindTable
from actors.api.kinds import Kind
from actors.gateway.discovery import groups
from actors.gateway.forms import encode
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
    "application/strategic-merge-patch+json",
)


def index(kinds: KindTable) -> Object:
    """/openapi/v3: where the document of each group and version is."""
    paths: Object = {}
    for group, versions in groups(kinds).items():
        for version in versions:
            name = f"apis/{group}/{version}" if group else f"api/{version}"
            digest = hashlib.sha256(encode(document(kinds, group, version))).hexdigest()[:16].upper()
            paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={digest}"}
    return {"paths": paths}


def document(kinds: KindTable, group: str, version: str) -> Object | None:
    """The document of a group and version; None when there is none."""
    rows = groups(kinds).get(group, {}).get(version)
    if rows is None:
        return None
    paths: Object = {}
    schemas: Object = {}
    for row in rows:
        name = schema_name(row, version)
        schema = schema_of(kinds, row, version)
        if schema is not None:
            schemas[name] = schema
        paths.update(_paths(row, version, name if schema else ""))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Pumice", "version": "v1.35.3"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def schema_name(row: Kind, version: str) -> str:
    """The name of a kind's schema: the group's labels turned round, as Kubernetes names those of CRDs."""
    turned = ".".join(reversed(row.group.split("."))) if row.group else "io.k8s.api.core"
    return f"{turned}.{version}.{row.kind}"


def schema_of(kinds: KindTable, row: Kind, version: str) -> Object | None:
    """The schema of a kind as its definition has it; None when there is none."""
    definition = kinds.definition(row.key)
    if definition is None:
        return None
    listed: list[Object] = section(definition, "spec").get("versions") or []
    found: Object = next((each for each in listed if each.get("name") == version), Object())
    schema = section(section(found, "schema"), "openAPIV3Schema")
    gvk = {"group": row.group, "version": version, "kind": row.kind}
    return {**schema, "x-kubernetes-group-version-kind": [gvk]}


def _paths(row: Kind, version: str, schema: str) -> Object:
    root = f"/apis/{row.group}/{version}" if row.group else f"/api/{version}"
    collection = f"{root}/namespaces/{{namespace}}/{row.plural}" if row.namespaced else f"{root}/{row.plural}"
    gvk = {"group": row.group, "version": version, "kind": row.kind}

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
            "patch": operation("patch", _PATCHES),
            "delete": operation("delete"),
        },
    }


def _content(schema: str, media: tuple[str, ...]) -> dict[str, Any]:
    return {each: {"schema": {"$ref": f"#/components/schemas/{schema}"}} if schema else {} for each in media}
