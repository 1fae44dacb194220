"""A mirror of a cluster: the same objects, the same decisions, and nothing written there."""

from dataclasses import replace

import httpx
import pytest

from pumice.actors.gateway.settings import GatewaySettings, listen
from pumice.core.messages.boards import ReadBoard
from pumice.core.messages.commands import Delete, Patch
from pumice.core.messages.decisions import Bind, Evict
from pumice.core.messages.events import ConfigLoaded
from pumice.core.objects.metadata import Object
from pumice.storage import codec
from pumice.storage.journal import CONFIG
from pumice.storage.memory import MemoryJournal
from tests.actors.real_clusters.mirror.rig import (
    CLUSTER,
    ReadingOnly,
    cluster,
    config_map,
    cycles_of,
    decided,
    mirror,
    mirror_settings,
    names,
    same,
    way_to,
)
from tests.actors.rig import PREEMPTING, idle, started, three_nodes
from tests.kit.jobs import job_task, vcjob
from tests.kit.priority_classes import priority_class

pytestmark = pytest.mark.anyio
ALL = ("Node", "Queue", "PodGroup", "Pod", "Job", "Namespace", "PriorityClass")
TRAIN = vcjob("train", job_task("worker", replicas=3, duration="0"))
WORKERS = ["train-worker-0", "train-worker-1", "train-worker-2"]


async def test_it_has_what_the_cluster_has_and_the_binds_that_its_scheduler_made() -> None:
    journal = MemoryJournal()
    async with cluster() as web, way_to(web) as way, mirror(way, journal) as here:
        await web.system.submit(three_nodes())
        await same(here, web.system, *ALL)
        await web.system.submit([TRAIN])
        await idle(web.system)
        await same(here, web.system, *ALL)
        pods = await here.listed("Pod")
    cycles = await cycles_of(journal)
    assert names(await decided(journal), Bind) == WORKERS
    assert {each.name: each.node for cycle in cycles for each in cycle.decisions} == {
        pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods
    }
    assert all(cycle.record.observed for cycle in cycles)
    assert len([outcome for cycle in cycles for outcome in cycle.outcomes]) == 3


async def test_evictions_have_their_reason_and_cycles_the_configuration_of_the_cluster() -> None:
    journal = MemoryJournal()
    small = [{**each, "status": {**each["status"], "allocatable": {"cpu": "3", "memory": "8Gi", "pods": "9"}}}
             for each in three_nodes()[:1]]  # fmt: skip
    low, high = (
        vcjob(name, job_task("w", replicas=number, duration="0"), min_available=least, priority_class=name)
        for name, number, least in (("low", 3, 1), ("high", 2, 2))
    )
    async with (
        cluster(replace(CLUSTER, config_text=PREEMPTING)) as web,
        way_to(web) as way,
        mirror(way, journal) as here,
    ):
        classes = [priority_class(name, value) for name, value in (("low", 1), ("high", 9))]
        await web.system.submit([config_map(PREEMPTING), *small, *classes, low])
        await idle(web.system)
        await same(here, web.system, *ALL)
        await web.system.submit([high])
        await idle(web.system)
        await same(here, web.system, *ALL)
    evicted = [each for each in await decided(journal) if isinstance(each, Evict)]
    assert evicted
    assert {(each.job.split("-")[0], each.reason, each.action) for each in evicted} == {
        ("default/low", "preempt", "preempt")
    }
    told = [codec.decode(each.payload, ConfigLoaded) for each in await journal.read(0, (CONFIG,), 100)]
    assert [each.source for each in told] == ["default.conf", "configmap volcano-system/volcano-scheduler-configmap"]
    assert (await cycles_of(journal))[-1].record.config_digest == told[-1].digest


async def test_secrets_are_not_even_asked_for() -> None:
    async with cluster() as web, way_to(web) as way, mirror(way) as here:
        await web.system.submit(three_nodes())
        await same(here, web.system, "Node")
    assert "/api/v1/pods" in way.reads
    assert not [path for path in way.reads if "secret" in path]
    assert {path for path in way.reads if "configmap" in path} == {"/api/v1/namespaces/volcano-system/configmaps"}


async def test_after_a_restart_it_learns_what_it_missed() -> None:
    """A bind, a deletion, and another object of the same name."""
    journal = MemoryJournal()
    async with cluster() as web, way_to(web) as way:
        cordoned: list[Object] = [{**each, "spec": {**each["spec"], "unschedulable": True}} for each in three_nodes()]
        await web.system.submit([*cordoned, TRAIN, vcjob("gone", job_task(duration="0"))])
        await idle(web.system)
        async with mirror(way, journal) as here:
            await same(here, web.system, *ALL)
            assert await decided(journal) == []
        journal.reopen()
        await web.system.api.ask(Delete("Job", "default", "gone"))
        for each in cordoned:
            uncordon = codec.pack({"spec": {"unschedulable": False}})
            await web.system.api.ask(Patch("Node", "", str(each["metadata"]["name"]), uncordon))
        await idle(web.system)
        async with mirror(way, journal) as here:
            await same(here, web.system, *ALL)
    numbers = [cycle.record.cycle for cycle in await cycles_of(journal)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert names(await decided(journal), Bind) == WORKERS


async def test_a_server_that_is_replaced_by_another_is_mirrored_on() -> None:
    """None of its revisions is known to the new one; what the new one does not have is gone."""
    way = ReadingOnly()
    async with mirror(way) as here:  # of nothing yet: nobody listens there
        async with cluster() as first:
            way.port = first.settings.address[1]
            await first.system.submit([*three_nodes(), TRAIN])
            await idle(first.system)
            await same(here, first.system, *ALL)
        async with cluster() as second:
            way.port = second.settings.address[1]
            await second.system.submit(three_nodes()[:1])
            await same(here, second.system, *ALL)
    await way.close()
    assert way.writes == []


async def test_the_copy_can_be_looked_at_and_not_changed() -> None:
    with listen("127.0.0.1", 0) as listener:
        copy = GatewaySettings(listener, grace_s=0.1, reads_only=True)
        async with cluster() as web, way_to(web) as way:
            settings = replace(mirror_settings(way), gateway=copy)
            async with started(settings=settings) as here, httpx.AsyncClient(base_url=copy.url, timeout=20.0) as http:
                await web.system.submit(three_nodes())
                await same(here, web.system, "Node", "Namespace")
                found = (await http.get("/api/v1/nodes")).json()["items"]
                assert [each["metadata"]["name"] for each in found] == ["n0", "n1", "n2"]
                refused = await http.delete("/api/v1/nodes/n0")
                assert (refused.status_code, refused.json()["reason"]) == (403, "Forbidden")
                assert "send changes to that cluster itself" in refused.json()["message"]
                board = await here.switchboard.mailboxes["cache"].ask(ReadBoard())
                assert board.layout.nodes == ["n0", "n1", "n2"]
                await same(here, web.system, "Node")
