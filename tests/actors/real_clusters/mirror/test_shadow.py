"""A shadow beside the cluster's own scheduler: the same configuration agrees, another one is said to differ."""

from dataclasses import replace
from typing import Any

import anyio
import pytest
from msgspec import UNSET

from pumice.actors.real_clusters.mirror.intake import Burst
from pumice.actors.real_clusters.mirror.settings import ShadowSettings
from pumice.actors.system.system import System
from pumice.core.configuration import parse_scheduler_config
from pumice.core.messages.commands import BindPod, Delete
from pumice.core.messages.decisions import Evict
from pumice.core.messages.events import Mutation, ShadowCompared, ShadowTold
from pumice.storage.journal import API, SHADOW
from pumice.storage.memory import MemoryJournal
from tests.actors.real_clusters.mirror.rig import (
    CLUSTER,
    PATIENCE_S,
    cluster,
    config_map,
    cycles_of,
    mirror,
    same,
    way_to,
)
from tests.actors.rig import idle, journaled
from tests.kit.jobs import gang, job_task, vcjob
from tests.kit.nodes import node
from tests.kit.pods import pod
from tests.kit.priority_classes import priority_class

pytestmark = pytest.mark.anyio
ALL = ("Node", "Queue", "PodGroup", "Pod", "Job")
SHADOW_OF_ITS_OWN = ShadowSettings(look_s=0.05)
TIERS = """actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
- plugins:
  - name: predicates
"""
BINPACK = TIERS + "  - name: binpack\n"
SPREAD = TIERS + "  - name: nodeorder\n"


def other(text: str) -> ShadowSettings:
    config = parse_scheduler_config(text, source="other.conf")
    return replace(SHADOW_OF_ITS_OWN, other=config, source="other.conf", digest="d")


async def shadow_of(here: System) -> ShadowTold:
    found = (await here.summary()).shadow
    assert found is not UNSET
    return found


async def settled(here: System) -> ShadowTold:
    """What is known once a look has found nothing new."""
    with anyio.fail_after(PATIENCE_S):
        for _ in range(3):  # two looks see what stands, and another that nothing came
            await anyio.sleep(0.07)
            while "groups" not in await shadow_of(here):  # noqa: ASYNC110
                await anyio.sleep(0.05)
    return await shadow_of(here)


async def test_by_its_own_configuration_it_agrees_and_that_is_told_everywhere() -> None:
    journal = MemoryJournal()
    async with cluster() as web, way_to(web) as way, mirror(way, journal, shadow=SHADOW_OF_ITS_OWN) as here:
        await web.system.submit([node("n0"), node("n1", cpu="6"), node("n2", cpu="5")])
        await same(here, web.system, *ALL)
        big = vcjob("big", job_task(replicas=3, cpu="8"), min_available=1)
        for job in (vcjob("fits", job_task(replicas=3, duration="0")), big):
            await web.system.submit([job])
            await idle(web.system)
            await same(here, web.system, *ALL)
        found = await settled(here)
        text = (await here.metrics_text()).decode()
    assert (found["decisions"], found["same"], found["share"]) == (3, 3, 1.0)
    assert (found.get("groups"), found.get("other_phases"), found.get("other_conditions")) == (2, 0, 0)
    assert (found.get("waiting"), found.get("other_reasons"), found["differences"]) == (3, 0, [])
    assert 'pumice_shadow_decisions_total{result="same"} 3.0' in text
    assert "pumice_shadow_agreement 1.0" in text
    assert 'pumice_shadow_reasons{result="same"} 3.0' in text
    told: list[ShadowCompared] = await journaled(journal, SHADOW, ShadowCompared)
    assert sum(each.same for each in told) == 3
    assert {each.source for each in told} == {"default.conf"}


async def test_another_configuration_is_said_to_decide_otherwise(caplog: pytest.LogCaptureFixture) -> None:
    """The cluster packs, the other one spreads."""
    journal = MemoryJournal()
    async with (
        cluster(replace(CLUSTER, config_text=BINPACK)) as web,
        way_to(web) as way,
        mirror(way, journal, shadow=other(SPREAD)) as here,
    ):
        await web.system.submit([node("n0"), node("n1")])
        await web.system.submit([vcjob("one", job_task(duration="0"))])
        await idle(web.system)
        await same(here, web.system, *ALL)
        await web.system.submit([vcjob("two", job_task(duration="0"))])
        await idle(web.system)
        await same(here, web.system, *ALL)
        found = await settled(here)
    told: list[ShadowCompared] = await journaled(journal, SHADOW, ShadowCompared)
    assert {(each.source, each.config, each.other) for each in told} == {("other.conf", "d", True)}
    (difference,) = [each for each in found["differences"] if each["name"] == "default/two-worker-0"]
    assert (difference["what"], difference["there"], difference["here"]) == ("bind", "n0", "n1")
    assert "n1 scores" in difference["why_here"]
    assert "bind of default/two-worker-0: there n0" in caplog.text
    assert "; other.conf: n1 (n1 scores" in caplog.text


async def test_what_it_would_bind_and_the_cluster_does_not_is_said_once_it_stays() -> None:
    """There is nobody there who schedules."""
    async with (
        cluster(replace(CLUSTER, scheduler=False)) as web,
        way_to(web) as way,
        mirror(way, shadow=SHADOW_OF_ITS_OWN) as here,
    ):
        await web.system.submit([node("n0"), vcjob("one", job_task(duration="0"))])
        await same(here, web.system, *ALL)
        with anyio.fail_after(PATIENCE_S):
            while not (await shadow_of(here))["differences"]:  # noqa: ASYNC110
                await anyio.sleep(0.05)
        found = await settled(here)
    assert found["decisions"] == 0
    assert {(each["what"], each["name"].rpartition("-")[0] or each["name"]) for each in found["differences"]}
    phases = [each for each in found["differences"] if each["what"] == "phase"]
    assert [(each["there"], each["here"]) for each in phases] == [("Pending", "Inqueue")]


async def test_which_of_equal_nodes_a_pod_is_held_for_is_no_difference() -> None:
    """Two of three would find room, on nodes that are alike; the cluster has held them crosswise."""
    words = "Pod default/{} can possibly be assigned to {}, once minAvailable is satisfied"
    held = {"g-0": words.format("g-0", "n1"), "g-1": words.format("g-1", "n0")}
    group, *pods = gang("g", pods=3, phase="Inqueue", cpu="8")
    for each in pods:
        message = held.get(each["metadata"]["name"])
        told = {"type": "PodScheduled", "status": "False", "reason": "Schedulable", "message": message}
        each["status"] = {"phase": "Pending", "conditions": [told] if message else []}
    async with (
        cluster(replace(CLUSTER, scheduler=False)) as web,
        way_to(web) as way,
        mirror(way, shadow=SHADOW_OF_ITS_OWN) as here,
    ):
        await web.system.submit([node("n0"), node("n1"), group, *pods])
        await same(here, web.system, *ALL)
        with anyio.fail_after(PATIENCE_S):
            while not (await shadow_of(here))["differences"]:  # noqa: ASYNC110
                await anyio.sleep(0.05)
        found = await settled(here)
    assert {each["name"] for each in found["differences"] if each["what"] == "reason"} == {"default/g-2"}


@pytest.mark.parametrize(("settings", "differ"), [(SHADOW_OF_ITS_OWN, 0), (other(SPREAD), 1)])
async def test_room_that_was_made_after_it_had_looked_counts_as_not_seen(
    settings: ShadowSettings, differ: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pod was gone before the mirror heard of the bind, but not when the scheduler looked: then `small` was the
    emptier node. Another configuration is asked what it would do with all that is there.
    """
    amid, journal = False, MemoryJournal()
    monkeypatch.setattr(Burst, "left_s", lambda burst, now: 0.01 if amid else 0.0)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    waits, fills = pod("waits", uid="u-w"), pod("fills", uid="u-f", node="large", cpu="14")
    async with (
        cluster(replace(CLUSTER, scheduler=False)) as web,
        way_to(web) as way,
        mirror(way, journal, shadow=settings) as here,
    ):
        await web.system.submit([node("small", cpu="8"), node("large", cpu="16"), waits, fills])
        await same(here, web.system, *ALL)
        amid = True
        await web.system.api.ask(Delete("Pod", "default", "fills", grace_period_s=0))
        await web.system.api.ask(BindPod("default", "waits", "u-w", "small"))
        await anyio.sleep(0.2)
        amid = False
        await same(here, web.system, *ALL)
        found = await settled(here)
    assert (found["decisions"], found["other_node"]) == (1, differ)
    (cycle,) = [each for each in await cycles_of(journal) if each.decisions]
    changes: list[Mutation] = await journaled(journal, API, Mutation)
    (gone,) = [each.revision for each in changes if (each.name, each.type) == ("fills", "DELETED")]
    assert (gone > cycle.record.revision) is (not differ)


PREEMPTING = """actions: "enqueue, allocate, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: predicates
  - name: nodeorder
"""


async def preempting(web: Any, here: System) -> None:
    """Two gangs of a high class take the room of single pods of a low one, on nodes of 3 cpu."""
    nodes = [node(f"n{number}", cpu="3") for number in range(3)]
    classes = [priority_class(name, value) for name, value in (("low", 1), ("high", 9))]
    await web.system.submit([*nodes, *classes])
    for name, replicas, least in (("low", 9, 1), ("high", 2, 2), ("higher", 2, 2)):
        task = job_task("w", replicas=replicas, duration="0", cpu="1")
        await web.system.submit([vcjob(name, task, min_available=least, priority_class=name.removesuffix("er"))])
        await idle(web.system)
        await same(here, web.system, *ALL)


async def test_cycles_that_evict_agree_for_their_own_nominations_are_no_input() -> None:
    journal = MemoryJournal()
    async with (
        cluster(replace(CLUSTER, config_text=PREEMPTING)) as web,
        way_to(web) as way,
        mirror(way, journal, shadow=replace(SHADOW_OF_ITS_OWN, other=None)) as here,
    ):
        await web.system.submit([config_map(PREEMPTING)])
        await preempting(web, here)
        found = await settled(here)
    evicted = [each for cycle in await cycles_of(journal) for each in cycle.decisions if isinstance(each, Evict)]
    assert len(evicted) >= 4
    assert found["same"] == found["decisions"]


async def test_the_reason_of_an_eviction_that_is_not_made_here_is_the_preemptors() -> None:
    journal = MemoryJournal()
    async with (
        cluster(replace(CLUSTER, config_text=PREEMPTING)) as web,
        way_to(web) as way,
        mirror(way, journal, shadow=other(PREEMPTING.replace(", preempt", ""))) as here,
    ):
        await preempting(web, here)
        await settled(here)
    told: list[ShadowCompared] = await journaled(journal, SHADOW, ShadowCompared)
    evictions = [each for one in told for each in one.differences if each.what == "evict" and each.there]
    assert evictions
    for each in evictions:
        assert each.name.startswith("default/low-w-")
        assert each.why_there.startswith("preempt for default/high")
        assert each.why_here.startswith("default/high")
        assert "low" not in each.why_here
