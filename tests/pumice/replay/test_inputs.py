"""What people asked of a recorded run, apart from what the system asked of itself."""

from __future__ import annotations

from typing import Any

import pytest

from core.messages.commands import Create
from pumice.replay.inputs import read_inputs
from storage import codec
from storage.memory import MemoryJournal
from tests.actors.rig import idle, placed, started
from tests.kit.nodes import node

DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "schedulerName": "volcano",
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
            },
        },
    },
}


@pytest.mark.anyio
async def test_the_pods_of_a_deployment_are_made_by_the_system_and_no_input() -> None:
    journal = MemoryJournal()
    async with started(journal) as system:
        await system.submit([node("n0"), DEPLOYMENT])
        await idle(system)
        assert len(placed(system)) == 2
    asked = [each.request for each in (await read_inputs(journal)).requests]
    created = [codec.unpack(request.blob)["kind"] for request in asked if isinstance(request, Create)]
    assert created == ["Queue", "Queue", "Node", "Deployment"]
