"""A job that is not admitted says why: one Event about its PodGroup, not one a cycle."""

from __future__ import annotations

import pytest

from tests.actors.rig import idle, started, stored
from tests.kit.nodes import node
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod

pytestmark = pytest.mark.anyio


async def test_a_rejected_job_gets_one_event() -> None:
    group = pod_group("big", min_member=1, min_resources={"cpu": "64"})
    async with started() as system:
        await system.submit([node("n0"), group, pod("big-0", group="big", cpu="64")])
        await idle(system)
        await system.submit([node("n1", cpu="1")])
        await idle(system)
        said = [(event["involvedObject"]["name"], event["message"]) for event in stored(system, "Event")]
    assert said == [("big", "resource in cluster is overused: overused cpu")]
