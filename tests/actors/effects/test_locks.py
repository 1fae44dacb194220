"""Locks of nodes through the whole system: written before the bind, and in the way of the next pod."""

from __future__ import annotations

import json
from dataclasses import replace

import anyio
import pytest

from pumice.core.messages.events import Bound, Outcome
from pumice.core.objects.metadata import Object
from pumice.core.objects.node_devices import ANNOTATION as DEVICES
from pumice.questions.replay.verify import verify
from pumice.storage.memory import MemoryJournal
from tests.actors.rig import PATIENCE_S, QUICK, cycles, idle, journaled, placed, started, stored
from tests.core.devices.cards import vgpu_node
from tests.kit import node
from tests.kit.jobs import gang

pytestmark = pytest.mark.anyio

CONFIG = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: deviceshare
    arguments:
      deviceshare.VGPUEnable: true
      deviceshare.NodeLockEnable: true
"""


def two_pods() -> list[Object]:
    """In jobs of their own, each with a share of a card."""
    pods = [each for name in "ab" for each in gang(name, pods=1, duration="50ms")]
    for pod in pods[1::2]:
        limits = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "10"}
        pod["spec"]["containers"][0]["resources"] = {"limits": limits, "requests": limits}
    return pods


async def test_a_device_plugin_unlocks_the_node_once_the_pod_has_its_cards() -> None:
    cards = node("n0", annotations={DEVICES: json.dumps({"vgpu": {"cards": 1, "memory": 100, "split": 3}})})
    async with started(settings=replace(QUICK, config_text=CONFIG)) as system:
        await system.submit([cards, *two_pods()])
        await idle(system)
        assert placed(system) == {"a-0": "n0", "b-0": "n0"}
        assert "hamivgpu" not in stored(system, "Node")[0]["metadata"]["annotations"]


async def test_a_node_takes_one_pod_with_devices_until_it_is_unlocked() -> None:
    journal = MemoryJournal()
    async with started(journal, settings=replace(QUICK, config_text=CONFIG)) as system:
        await system.submit([vgpu_node("n0", [(9, 100, "NVIDIA-A100")]), *two_pods()])
        with anyio.fail_after(PATIENCE_S):
            while not (placed(system) and await waits(journal)):  # noqa: ASYNC110 - nobody says when
                await anyio.sleep(0.01)
        assert len(placed(system)) == 1
        assert "hamivgpu" in stored(system, "Node")[0]["metadata"]["annotations"]
        text = (await system.metrics_text()).decode()
        assert 'volcano_vgpu_device_memory_limit{NodeName="n0",devID="n0-0"} 100.0' in text
    assert [isinstance(each, Bound) for each in await journaled(journal, "outcome", Outcome)] == [True]
    assert (await verify(journal)).identical


async def waits(journal: MemoryJournal) -> bool:
    """Whether a cycle has ended that knows when the lock counts no longer, and whose bind is not its own."""
    return any(each.wake_at is not None and not each.decisions for each in await cycles(journal))
