"""Objects of defined kinds are selected by the fields that their definition names, and known after a restart."""

from __future__ import annotations

import anyio
import pytest

from pumice.actors.gateway.hub import TOLD, Hub, Key, OnDefinition
from pumice.storage.memory import MemoryJournal
from tests.actors.gateway.rig import PATIENCE_S, serving, shown, take
from tests.kit.definitions import definition

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"

pytestmark = pytest.mark.anyio


async def test_lists_and_watches() -> None:
    given = definition()
    spec = {"type": "object", "properties": {"port": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"host": {"type": "string"}, "spec": spec}}
    fields = [{"jsonPath": ".host"}, {"jsonPath": ".spec.port"}]
    given["spec"]["versions"][0] |= {"schema": {"openAPIV3Schema": schema}, "selectableFields": fields}
    async with serving() as web:
        await web.send("POST", DEFINITIONS, given, 201)
        with anyio.fail_after(PATIENCE_S):
            while (await web.http.get(WIDGETS)).status_code != 200:  # noqa: ASYNC110
                await anyio.sleep(0.02)

        async def make(name: str, host: str, port: int) -> None:
            made = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}}
            await web.send("POST", WIDGETS, {**made, "host": host, "spec": {"port": port}}, 201)

        await make("a", "one", 80)
        await make("b", "two", 80)
        listed = await web.get(f"{WIDGETS}?fieldSelector=host%3Done,spec.port%3D80")
        assert [each["metadata"]["name"] for each in listed["items"]] == ["a"]
        async with web.watching(f"{WIDGETS}?watch=true&fieldSelector=host%3Done") as events:
            assert shown(await take(events, 1)) == [("ADDED", "a")]
            media = {"content-type": "application/merge-patch+json"}
            await web.send("PATCH", f"{WIDGETS}/a", {"host": "two"}, 200, **media)
            await web.send("PATCH", f"{WIDGETS}/b", {"host": "one"}, 200, **media)
            assert shown(await take(events, 2)) == [("DELETED", "a"), ("ADDED", "b")]
        async with web.watching(f"{WIDGETS}/b?watch=yes&fieldSelector=host%3Done") as events:
            assert shown(await take(events, 1)) == [("ADDED", "b")]
        refused = await web.send("GET", f"{WIDGETS}?fieldSelector=spec.other%3D1", code=400)
        assert "field label not supported: spec.other" in refused["message"]


async def test_a_kind_is_there_from_the_first_request_after_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator that finds its kind gone ends."""
    journal = MemoryJournal()
    async with serving(journal) as web:
        await web.send("POST", DEFINITIONS, definition(), 201)
    learn = Hub._learn  # pyright: ignore[reportPrivateUsage]

    async def slowly(hub: Hub, kind: str, told: OnDefinition) -> dict[Key, bytes]:
        await anyio.sleep(0.1 if kind in TOLD else 0)
        return await learn(hub, kind, told)

    monkeypatch.setattr(Hub, "_learn", slowly)
    async with serving(journal) as web:
        assert (await web.get("/apis/example.com/v1"))["resources"][0]["kind"] == "Widget"
        assert (await web.get(WIDGETS))["items"] == []
