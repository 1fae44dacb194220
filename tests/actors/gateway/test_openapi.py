"""What the kinds look like, as clients ask for it."""

from __future__ import annotations

import json
import re
from typing import Any

import anyio
import pytest

from tests.actors.gateway.rig import PATIENCE_S, Web, serving


@pytest.mark.anyio
async def test_openapi() -> None:
    async with serving() as web:
        paths = (await web.get("/openapi/v3"))["paths"]
        document = await web.get(paths["apis/scheduling.volcano.sh/v1beta1"]["serverRelativeURL"])
        path = document["paths"]["/apis/scheduling.volcano.sh/v1beta1/queues/{name}"]
        assert path["patch"]["x-kubernetes-group-version-kind"]["kind"] == "Queue"
        assert [each["name"] for each in path["patch"]["parameters"]] == ["fieldValidation"]
        core = await web.get(paths["api/v1"]["serverRelativeURL"])
        schemas = core["components"]["schemas"]
        containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
        assert (containers["x-kubernetes-patch-merge-key"], containers["x-kubernetes-patch-strategy"]) == (
            "name", "merge",
        )  # fmt: skip
        for schema in schemas.values():
            for found in references(schema):
                assert found in schemas
        await web.send("GET", "/openapi/v3/apis/nonsense/v1", code=404)


@pytest.mark.anyio
async def test_the_second_openapi_names_every_kind_and_follows_definitions() -> None:
    async with serving() as web:
        first = await web.http.get("/openapi/v2")
        definitions = first.json()["definitions"]
        assert definitions["io.k8s.api.core.v1.Pod"]["properties"]["spec"]["$ref"].endswith("PodSpec")
        for found in re.findall(r'"#/definitions/([^"]+)"', first.text):
            assert found in definitions
        tag = first.headers["etag"]
        assert (await web.http.get("/openapi/v2", headers={"if-none-match": tag})).status_code == 304
        await web.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", WIDGETS, 201)
        await until_defined(web)
        second = await web.http.get("/openapi/v2", headers={"if-none-match": tag})
        widget = second.json()["definitions"]["dev.example.v1.Widget"]
        told = widget["properties"]["spec"]
        assert widget["properties"]["metadata"]["$ref"] == "#/definitions/io.k8s.api.meta.v1.ObjectMeta"
        assert told["required"] == ["size"], "what may be null is not required where there is no null"
        assert told["properties"] == {
            "size": {"type": "integer"},
            "open": {"x-kubernetes-preserve-unknown-fields": True},
            "either": {"x-kubernetes-int-or-string": True},
            "maybe": {},
            "rows": {"type": "array", "items": {"type": "string"}},
        }
        third = await web.get("/openapi/v3/apis/example.dev/v1")
        for found in references(third):
            assert found in third["components"]["schemas"]


@pytest.mark.anyio
async def test_the_second_openapi_says_no_fields_of_what_takes_any() -> None:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "string"}}}
    async with serving() as web:
        made = definition_of(anything)
        await web.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", made, 201)
        await until_defined(web)
        widget = (await web.get("/openapi/v2"))["definitions"]["dev.example.v1.Widget"]
        assert widget.keys() == {"type", "x-kubernetes-group-version-kind"}


async def until_defined(web: Web) -> None:
    """The gateway sees definitions as every watcher does."""
    with anyio.fail_after(PATIENCE_S):
        while (await web.http.get("/apis/example.dev/v1")).status_code == 404:  # noqa: ASYNC110
            await anyio.sleep(0.01)


def definition_of(schema: dict[str, Any]) -> dict[str, Any]:
    """A definition of widgets that look like this."""
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "kind": "Widget"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.dev"},
        "spec": {"group": "example.dev", "scope": "Namespaced", "names": names, "versions": [version]},
    }


PRESERVE = "x-kubernetes-preserve-unknown-fields"
OF_SPEC: dict[str, Any] = {
    "size": {"type": "integer"},
    "open": {"type": "object", PRESERVE: True, "properties": {"b": {"type": "string"}}},
    "either": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
    "maybe": {"type": "object", "nullable": True, "properties": {"c": {"type": "string"}}},
    "rows": {"type": "array", "items": {"type": "string"}},
}
WIDGETS = definition_of(
    {
        "type": "object",
        "properties": {"spec": {"type": "object", "required": ["size", "maybe"], "properties": OF_SPEC}},
    }
)


def references(schema: Any) -> list[str]:
    """Names of the schemas that this one refers to, however deep."""
    text = json.dumps(schema)
    return re.findall(r'"#/components/schemas/([^"]+)"', text)


@pytest.mark.anyio
async def test_objects_from_before_a_default_have_it_when_they_are_read() -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    widgets = "/apis/example.dev/v1/namespaces/default/widgets"
    plain = {"type": "object", "properties": {"colour": {"type": "string"}, "size": {"type": "integer"}}}
    async with serving() as web:
        await web.send("POST", definitions, definition_of(plain), 201)
        await until_defined(web)
        made = await web.send("POST", widgets, {"metadata": {"name": "a"}}, 201)
        assert "colour" not in made
        place = "/spec/versions/0/schema/openAPIV3Schema/properties/colour/default"
        patch = [{"op": "add", "path": place, "value": "red"}]
        media = {"content-type": "application/json-patch+json"}
        await web.send("PATCH", f"{definitions}/widgets.example.dev", patch, 200, **media)
        with anyio.fail_after(PATIENCE_S):
            while "colour" not in (found := await web.get(f"{widgets}/a")):  # noqa: ASYNC110 - heard of in its time
                await anyio.sleep(0.01)
        assert (found["colour"], found["metadata"]) == ("red", made["metadata"])
        (listed,) = (await web.get(widgets))["items"]
        assert listed["colour"] == "red"
        async with web.watching(f"{widgets}?watch=true&resourceVersion=0") as events:
            assert (await anext(events))["object"]["colour"] == "red"
