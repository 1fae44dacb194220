"""Pods with volumes and devices, through the whole system: promised, written, waited for, bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import anyio
import pytest

from pumice.actors.runtime.mailbox import expected
from pumice.core.messages.commands import BindPod, Create, Pull, Pulled, Restart, StoreRequest, Update
from pumice.core.messages.events import BindRefused, Bound, Mutation, Outcome
from pumice.core.messages.replies import ApiReply, Refused
from pumice.core.objects.metadata import Object
from pumice.questions.replay.verify import verify
from pumice.storage import codec
from pumice.storage.memory import MemoryJournal
from tests.actors.rig import QUICK, idle, journaled, placed, started, stored, three_nodes
from tests.kit.jobs import gang
from tests.kit.storage import (
    claim,
    csi_node,
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
Apply = Callable[[StoreRequest, float], ApiReply]
NODE = "volume.kubernetes.io/selected-node"


def equipped() -> list[Object]:
    """Three nodes that can use the volumes of both kinds of classes."""
    drivers = ("csi.example.com", "kubernetes.io/no-provisioner")
    return [*(csi_node(f"n{number}", *drivers) for number in range(3)), *three_nodes()]


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
            [*equipped(), local_class(), storage_class("cloud"), *volumes, *claims, *pods]
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
    assert [isinstance(outcome, Bound) for outcome in outcomes] == [True] * 3
    assert (await verify(journal)).identical


async def test_a_claim_that_finds_no_volume_leaves_its_pod_pending_with_a_reason_and_blocks_nobody() -> None:
    async with started() as system:
        hopeless = gang_with("a", lambda pod, _: using(pod, "none"), pods=1)
        immediate = gang_with("b", lambda pod, _: using(pod, "now"), pods=1)
        fixed = storage_class("fixed", waits=False, provisioner="kubernetes.io/no-provisioner")
        claims = [local_class(), fixed, claim("none"), claim("now", cls="fixed")]
        await system.submit([*equipped(), *claims, *hopeless, *immediate, *gang("c", pods=2, duration="50ms")])
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
    """Devices are given back immediately; a volume that is bound already stays with its claim, as in Kubernetes."""
    refusals = 0
    reserved: list[int] = []

    def api(request: StoreRequest, apply: Apply, now: float) -> ApiReply:
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
        await system.submit([*equipped(), *needed, device_claim("d"), *dressed])
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
        await system.submit([*equipped(), device_class(), device_slice("n2"), device_claim("a"), device_claim("b")])
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


def without_provisioner(request: StoreRequest, apply: Apply, now: float) -> ApiReply:
    """The volume controller never gets a volume made."""
    if isinstance(request, Create) and request.user == "volume-controller":
        return Refused(503, "ServiceUnavailable", "planted")
    return apply(request, now)


async def heard_of(journal: MemoryJournal, pod: str) -> list[Outcome]:
    with anyio.fail_after(10):
        while True:
            found: list[Outcome] = [o for o in await journaled(journal, "outcome", Outcome) if o.name == pod]
            if found:
                return found
            await anyio.sleep(0.05)


async def test_a_volume_that_never_comes_is_given_up_and_nothing_of_it_stays() -> None:
    journal = MemoryJournal()
    settings = replace(QUICK, config_text=CONF.replace("30", "1"))
    async with started(journal, settings=settings, api=without_provisioner) as system:
        stuck = gang_with("a", lambda pod, _: using(pod, "never"), pods=1)
        await system.submit([*equipped(), storage_class("cloud"), claim("never", cls="cloud"), *stuck])
        with anyio.fail_after(10):
            while not placed(system):  # others are bound while it waits
                await system.submit(gang("c", pods=2, duration="0"))
                await anyio.sleep(0.05)
        outcomes = await heard_of(journal, "a-0")
        with anyio.fail_after(10):  # the outcome may be in the journal before the status is written
            seen = 0
            while not (said := named(stored(system, "Pod"))["a-0"]["status"].get("conditions")):
                seen = expected(await system.api.ask(Pull("test", seen, ("Pod",))), Pulled).revision
        (why,) = [(each["reason"], each["message"]) for each in said if each["type"] == "PodScheduled"]
        failed = "execute preBind for pod default/a-0 failed: its volumes were not bound in time, resync the task"
        assert why == ("SchedulerError", failed)
    assert isinstance(outcomes[0], BindRefused)
    assert outcomes[0].reason == "PreBindFailed"
    writes = [m for m in await journaled(journal, "api", Mutation) if m.user == "pre-bind-worker"]
    marks = [NODE in codec.unpack(each.blob)["metadata"].get("annotations", {}) for each in writes]
    assert marks[:2] == [True, False]  # written, and taken back


@pytest.mark.parametrize("crashing", ["", "cache", "pre-bind-worker"])
async def test_a_volume_on_its_way_to_one_pod_is_not_given_to_another(crashing: str) -> None:
    """While the first waits for the binding of the only volume, cycles go on and the second finds nothing.

    The promise outlives those who keep it.
    """
    released = False
    met = anyio.Event()

    def api(request: StoreRequest, apply: Apply, now: float) -> ApiReply:
        if isinstance(request, Update) and request.user == "volume-controller" and not released:
            changed = codec.unpack(request.blob)
            if changed["kind"] == "PersistentVolume" and changed["status"]["phase"] == "Bound":
                met.set()
                return Refused(503, "ServiceUnavailable", "planted")
        return apply(request, now)

    journal = MemoryJournal()
    async with started(journal, api=api) as system:
        await system.submit([*equipped(), local_class(), volume("pv", node="n1"), claim("a"), claim("b")])
        await system.submit(gang_with("a", lambda pod, _: using(pod, "a"), pods=1))
        with anyio.fail_after(10):
            await met.wait()
        await system.submit(gang_with("b", lambda pod, _: using(pod, "b"), pods=1))
        if crashing:
            await system.supervisor.mailbox.tell(Restart(crashing))
        for _ in range(3):
            await system.run_cycle()
        assert placed(system) == {}
        released = True
        await idle(system)
        assert placed(system) == {"a-0": "n1"}
        pods = named(stored(system, "Pod"))
        assert "didn't find available persistent volumes" in pods["b-0"]["status"]["conditions"][0]["message"]
    assert (await verify(journal)).identical


async def test_a_restart_while_volumes_are_waited_for_starts_over_and_ends_well() -> None:
    """What was written stays; the next process finds it, and binds the pod where the volume is kept for it."""
    journal, met = MemoryJournal(), anyio.Event()

    def api(request: StoreRequest, apply: Apply, now: float) -> ApiReply:
        if isinstance(request, Update | Create) and request.user == "volume-controller" and b"claimRef" in request.blob:
            met.set()
            return Refused(503, "ServiceUnavailable", "planted")
        return apply(request, now)

    with anyio.CancelScope() as scope:
        async with started(journal, api=api) as system:
            await system.submit([*equipped(), local_class(), storage_class("cloud"), volume("pv", node="n1")])
            pods = gang_with("g", lambda pod, _: using(pod, "a", "b"), pods=1)
            await system.submit([claim("a"), claim("b", cls="cloud"), *pods])
            await met.wait()
            await anyio.sleep(0.1)
            scope.cancel()
    async with started(journal) as system:
        await idle(system)
        assert placed(system) == {"g-0": "n1"}
        assert [group["status"]["phase"] for group in stored(system, "PodGroup")] == ["Completed"]
    assert (await verify(journal)).identical
