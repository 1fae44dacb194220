"""A server that holds as much as it may: no client makes it hold more, and everything else goes on."""

from __future__ import annotations

import anyio
import pytest

from pumice.core.objects.metadata import Object
from tests.actors.gateway.rig import PATIENCE_S, Web, serving

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = {"content-type": "application/merge-patch+json"}
APPLY = {"content-type": "application/apply-patch+yaml"}

pytestmark = pytest.mark.anyio


def config_map(name: str, size: int = 10) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"x": "x" * size}}


async def fill(web: Web, size: int = 10) -> tuple[str, str]:
    """Create until one is refused: the last name that was accepted, and what the refusal says."""
    with anyio.fail_after(PATIENCE_S):
        for number in range(1_000):
            answer = await web.http.post(CONFIG_MAPS, json=config_map(f"c{number}", size))
            if answer.status_code != 201:
                assert (answer.status_code, answer.json()["reason"]) == (403, "Forbidden")
                return f"c{number - 1}", answer.json()["message"]
            await anyio.sleep(0.03)  # the hub is behind a little
    raise AssertionError("it was never full")


async def create_again(web: Web, name: str) -> None:
    """Once the hub has heard of what went."""
    with anyio.fail_after(PATIENCE_S):
        while (await web.http.post(CONFIG_MAPS, json=config_map(name))).status_code != 201:  # noqa: ASYNC110
            await anyio.sleep(0.02)


async def test_too_many_objects() -> None:
    async with serving(object_limit=60) as web:
        last, why = await fill(web)
        assert "as many as it may (--max-objects)" in why
        assert why.startswith(f'configmaps "c{int(last[1:]) + 1}" is forbidden: ')
        await web.send("PATCH", f"{CONFIG_MAPS}/new?fieldManager=m", config_map("new"), 403, **APPLY)
        await web.send("PATCH", f"{CONFIG_MAPS}/{last}?fieldManager=m&force=true", config_map(last, 9), 200, **APPLY)
        await web.send("PATCH", f"{CONFIG_MAPS}/{last}", {"data": {"y": "y" * 10_000}}, 200, **MERGE)
        await web.send("DELETE", f"{CONFIG_MAPS}/{last}")
        await create_again(web, "again")


async def test_too_many_bytes() -> None:
    async with serving(object_bytes=2_000_000) as web:
        last, why = await fill(web, 100_000)
        assert "(--max-object-bytes)" in why
        refused = await web.send("PATCH", f"{CONFIG_MAPS}/{last}", {"data": {"y": "y" * 10_000}}, 403, **MERGE)
        assert refused["message"].startswith(f'configmaps "{last}" is forbidden: the objects have')
        await web.send("PATCH", f"{CONFIG_MAPS}/{last}", {"metadata": {"finalizers": ["example.com/x"]}}, 200, **MERGE)
        await web.send("PATCH", f"{CONFIG_MAPS}/{last}", {"metadata": {"finalizers": None}}, 200, **MERGE)
        for name in ("c0", "c1"):
            await web.send("DELETE", f"{CONFIG_MAPS}/{name}")
        await create_again(web, "again")
