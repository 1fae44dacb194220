"""Pods with volumes and devices, through the whole system: promised, written, waited for, bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from actors.ports import VirtualClock
from core.messages.commands import ApiRequest, BindPod, Create, Update
from core.messages.events import BindRefused, Bound, Outcome
from core.messages.replies import ApiReply, Refused
from storage.memory import MemoryJournal
from tests.actors.rig import QUICK, idle, journaled, placed, started, stored, three_nodes
from tests.kit.jobs import gang
from tests.kit.storage import (
    claim,
    device_claim,
    device_class,
    device_slice,
    local_class,
    storage_class,
    using,
    volume,
    with_devices,
)

pytestmark = pytest.mark.anyio
Apply = Callable[[ApiRequest, float], ApiReply]
Object = dict[str, Any]


def gang_with(name: str, dress: Callable[[Object, int], Object], *, pods: int, duration: str = "50ms") -> list[Object]:
    """A gang whose n-th pod is dressed with its claims."""
    group, *members = gang(name, pods=pods, duration=duration)
    return [group, *(dress(pod, number) for number, pod in enumerate(members))]


def named(objects: list[Object]) -> dict[str, Object]:
    return {obj["metadata"]["name"]: obj for obj in objects}


async def test_a_gang_whose_claims_wait_for_it_runs_to_its_end() -> None:
    """One claim each on a local volume, one each on a volume that is made for it."""
    volumes = [volume(f"pv{i}", node=f"n{i}") for i in range(3)]
    claims = [claim(f"local{i}") for i in range(3)] + [claim(f"made{i}", cls="cloud") for i in range(3)]
    pods = gang_with("g", lambda pod, i: using(pod, f"local{i}", f"made{i}"), pods=3)
    journal = MemoryJournal()
    async with started(journal) as system:
        for answer in await system.submit(
            [*three_nodes(), local_class(), storage_class("cloud"), *volumes, *claims, *pods]
        ):
            assert not isinstance(answer, Refused), answer
        await idle(system)
        assert [group["status"]["phase"] for group in stored(system, "PodGroup")] == ["Completed"]
        assert sorted(placed(system).values()) == ["n0", "n1", "n2"]  # where the local volumes are
        bound = named(stored(system, "PersistentVolumeClaim"))
        assert {obj["status"]["phase"] for obj in bound.values()} == {"Bound"}
        for name, pod in ((f"local{i}", f"g-{i}") for i in range(3)):
            assert bound[name]["spec"]["volumeName"] == f"pv{placed(system)[pod][1:]}"
        assert len(stored(system, "PersistentVolume")) == 6
    outcomes = await journaled(journal, "outcome", Outcome)
    assert Counter(type(outcome) for outcome in outcomes) == {Bound: 3}


async def test_a_claim_that_finds_no_volume_leaves_its_pod_pending_with_a_reason_and_blocks_nobody() -> None:
    async with started() as system:
        hopeless = gang_with("a", lambda pod, _: using(pod, "none"), pods=1)
        immediate = gang_with("b", lambda pod, _: using(pod, "now"), pods=1)
        fixed = storage_class("fixed", waits=False, provisioner="kubernetes.io/no-provisioner")
        claims = [local_class(), fixed, claim("none"), claim("now", cls="fixed")]
        await system.submit([*three_nodes(), *claims, *hopeless, *immediate, *gang("c", pods=2, duration="50ms")])
        await idle(system)
        assert sorted(placed(system)) == ["c-0", "c-1"]
        pods = named(stored(system, "Pod"))
        said = {name: pods[name]["status"]["conditions"][0]["message"] for name in ("a-0", "b-0")}
        assert "didn't find available persistent volumes to bind" in said["a-0"]
        assert "PersistentVolume had no name" in said["b-0"]
        await system.submit([volume("late", cls="fixed")])  # the controller binds it, the pod follows
        await idle(system)
        assert "b-0" in placed(system)


async def test_a_refused_bind_gives_back_what_was_written_and_is_tried_again() -> None:
    """Devices are given back at once; a volume that is bound already stays with its claim, as in Kubernetes."""
    refusals = 0
    reserved: list[int] = []

    def api(request: ApiRequest, apply: Apply, now: float) -> ApiReply:
        nonlocal refusals
        if isinstance(request, BindPod):
            reserved.append(sum("allocation" in c.get("status", {}) for c in stored(system, "ResourceClaim")))
            if refusals < 1:
                refusals += 1
                return Refused(500, "InternalError", "planted")
        return apply(request, now)

    journal = MemoryJournal()
    async with started(journal, api=api) as system:
        dressed = gang_with("g", lambda pod, _: with_devices(using(pod, "made"), "d"), pods=1)
        needed = [storage_class("cloud"), claim("made", cls="cloud"), device_class(), device_slice("n1")]
        await system.submit([*three_nodes(), *needed, device_claim("d"), *dressed])
        await idle(system)
        assert placed(system) == {"g-0": "n1"}
        assert reserved == [1, 1]
        (released,) = stored(system, "ResourceClaim")
        assert "allocation" not in released["status"]  # the pod has ended
    outcomes = await journaled(journal, "outcome", Outcome)
    assert [type(outcome) for outcome in outcomes] == [BindRefused, Bound]


async def test_two_pods_that_want_the_only_device_have_it_one_after_the_other() -> None:
    async with started() as system:
        pods = [*gang_with("a", lambda p, _: with_devices(p, "a"), pods=1)]
        pods += gang_with("b", lambda p, _: with_devices(p, "b"), pods=1)
        await system.submit([*three_nodes(), device_class(), device_slice("n2"), device_claim("a"), device_claim("b")])
        await system.submit(pods)
        await idle(system)
        assert placed(system) == {"a-0": "n2", "b-0": "n2"}
        assert [group["status"]["phase"] for group in stored(system, "PodGroup")] == ["Completed", "Completed"]


CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
  - name: predicates
    arguments:
      volumebinding.bindTimeoutSeconds: 30
  - name: nodeorder
"""


@pytest.mark.parametrize(
    "anyio_backend", [pytest.param(("trio", {"restrict_keyboard_interrupt_to_checkpoints": True}), id="trio")]
)
async def test_placeholder(anyio_backend: Any) -> None:
    del anyio_backend
    assert QUICK and VirtualClock and Create and Update and CONF
