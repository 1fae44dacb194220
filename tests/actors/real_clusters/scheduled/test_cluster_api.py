"""The scheduler of a cluster elsewhere: what it decides comes true there, and nothing else is touched."""

from dataclasses import replace

import anyio
import pytest

from pumice.core.messages.commands import Delete
from pumice.core.messages.decisions import Decision
from pumice.storage.memory import MemoryJournal
from tests.actors.gateway.rig import Web
from tests.actors.real_clusters.mirror.rig import cycles_of
from tests.actors.real_clusters.scheduled.rig import (
    PATIENCE_S,
    KilledError,
    condition,
    ends_with,
    is_bound,
    phase_is,
    scheduler,
    settings_for,
    unscheduled,
    until,
    way_to,
)
from tests.actors.rig import PREEMPTING, journaled, placed, started
from tests.kit.jobs import job_task, vcjob
from tests.kit.pods import pod
from tests.kit.priority_classes import priority_class
from tests.kit.storage import (
    claim,
    device_claim,
    device_class,
    device_slice,
    using,
    with_devices,
)

pytestmark = pytest.mark.anyio

DEVICES = """actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
    arguments:
      predicate.DynamicResourceAllocationEnable: true
"""


async def events(web: Web) -> set[tuple[str, str, str]]:
    found = await web.system.listed("Event")
    return {(each["reason"], each["involvedObject"]["kind"], each["message"]) for each in found}


async def test_a_job_runs_to_its_end_and_the_journal_has_every_cycle() -> None:
    journal = MemoryJournal()
    async with unscheduled() as web, way_to(web) as way, scheduler(way, journal):
        await web.system.submit([vcjob("train", job_task("worker", replicas=3, duration="0.1s"))])
        await until(web, "Job", "train", phase_is("Completed"))
        bound = [each for each in await web.system.listed("Pod") if is_bound(each)]
        assert len(bound) == 3
        places = [(each["metadata"]["name"], each["spec"]["nodeName"]) for each in bound]
        said = {("Scheduled", "Pod", f"Successfully assigned default/{name} to {node}") for name, node in places}
        with anyio.fail_after(PATIENCE_S):
            while not said <= await events(web):  # noqa: ASYNC110 - nobody waits for events
                await anyio.sleep(0.02)
    cycles = await cycles_of(journal)
    decided = {each.name: each.node for cycle in cycles for each in cycle.decisions}
    assert decided == {each["metadata"]["name"]: each["spec"]["nodeName"] for each in bound}
    assert not any(cycle.record.observed for cycle in cycles)


async def test_a_pod_of_another_scheduler_is_left_alone() -> None:
    async with unscheduled() as web, way_to(web) as way, scheduler(way):
        await web.system.submit([pod("theirs", scheduler="default-scheduler"), pod("others", scheduler="mine")])
        await web.system.submit([pod("ours")])
        await until(web, "Pod", "ours", is_bound)
        await anyio.sleep(0.3)
        assert [each["metadata"]["name"] for each in await web.system.listed("Pod") if is_bound(each)] == ["ours"]
    assert [path for path in way.sent if "theirs" in path or "others" in path] == []


async def test_a_pod_that_finds_no_node_says_why() -> None:
    async with unscheduled() as web, way_to(web) as way, scheduler(way):
        await web.system.submit([pod("big", cpu="64")])
        found = await until(web, "Pod", "big", lambda each: condition(each, "PodScheduled"))
        said = condition(found, "PodScheduled")
        assert (said["status"], said["reason"]) == ("False", "Unschedulable")
        group = found["metadata"]["annotations"]["scheduling.k8s.io/group-name"]
        await until(web, "PodGroup", group, lambda each: condition(each, "Unschedulable").get("status") == "True")
        with anyio.fail_after(5.0):
            while ("FailedScheduling", "Pod", said["message"]) not in await events(web):  # noqa: ASYNC110
                await anyio.sleep(0.02)


async def test_a_pod_that_makes_room_has_the_reasons_and_goes() -> None:
    jobs = [
        vcjob(name, job_task("w", replicas=number, cpu="8", duration="0"), min_available=1, priority_class=name)
        for name, number in (("low", 3), ("high", 1))
    ]
    async with unscheduled() as web, way_to(web) as way, scheduler(way, config=PREEMPTING):
        await web.system.submit([priority_class("low", 1), priority_class("high", 100), jobs[0]])
        for number in range(3):
            await until(web, "Pod", f"low-w-{number}", is_bound)
        await web.system.submit([jobs[1]])
        await until(web, "Pod", "high-w-0", is_bound)
        said = await events(web)
    assert any(reason == "Evict" and "Pod is evicted, because of" in message for reason, _, message in said)


async def test_what_an_unfinished_decision_came_to_is_read_from_the_cluster() -> None:
    """The process ends after it has sent its binds, before it has heard of them."""
    journal = MemoryJournal()
    async with unscheduled() as web, way_to(web) as way:
        with ends_with(KilledError):
            async with scheduler(way, journal):
                way.lost = "/binding"
                await web.system.submit([vcjob("train", job_task("w", replicas=2, duration="0"))])
                for number in range(2):
                    await until(web, "Pod", f"train-w-{number}", is_bound)
                raise KilledError
        way.lost = ""
        async with scheduler(way, journal):
            await web.system.submit([pod("next")])
            await until(web, "Pod", "next", is_bound)
    cycles = await cycles_of(journal)
    outcomes = [(type(outcome).__name__, outcome.name) for cycle in cycles for outcome in cycle.outcomes]
    told = sorted(each for each in outcomes if each[1] != "next")
    assert told == [("Bound", "train-w-0"), ("Bound", "train-w-1")]


async def test_what_became_of_a_bind_is_asked_where_it_was_sent() -> None:
    """The answer is lost, and the watch late: what is known here would have the pod wait for a node still."""
    journal = MemoryJournal()
    async with unscheduled() as web, way_to(web) as way:
        settings = replace(settings_for(way), answer_timeout_s=0.1)
        async with started(journal, settings=settings) as here:
            await until(web, "Queue", "default", bool)
            way.lost = "/binding"
            way.is_late = lambda: "POST /api/v1/namespaces/default/pods/ours/binding" in way.sent
            await web.system.submit([pod("ours")])
            with anyio.fail_after(5.0):
                while not placed(here):  # noqa: ASYNC110
                    await anyio.sleep(0.02)
            await anyio.sleep(0.1)
    assert [each.name for each in await journaled(journal, "decision", Decision)] == ["ours"]


async def test_what_was_not_answered_is_asked_again() -> None:
    async with unscheduled() as web, way_to(web) as way, scheduler(way):
        await until(web, "Queue", "default", bool)
        way.cut = True
        await web.system.submit([pod("later")])
        await anyio.sleep(0.2)
        way.cut = False
        await until(web, "Pod", "later", is_bound)


async def test_a_deleted_pod_is_gone_here_too() -> None:
    async with unscheduled() as web, way_to(web) as way, scheduler(way) as here:
        await web.system.submit([pod("short")])
        await until(web, "Pod", "short", is_bound)
        await web.system.api.ask(Delete("Pod", "default", "short", grace_period_s=0))
        with anyio.fail_after(5.0):
            while await here.listed("Pod"):  # noqa: ASYNC110
                await anyio.sleep(0.02)


async def test_a_volume_is_made_on_the_node_of_its_pod_before_that_is_bound() -> None:
    async with unscheduled() as web, way_to(web) as way, scheduler(way, config=DEVICES):
        await web.system.submit([claim("data", cls="standard"), using(pod("reader"), "data")])
        found = await until(web, "Pod", "reader", is_bound)
        data = await until(web, "PersistentVolumeClaim", "data", lambda each: each["status"]["phase"] == "Bound")
    assert data["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == found["spec"]["nodeName"]
    assert "PUT /api/v1/namespaces/default/persistentvolumeclaims/data" in way.sent


async def test_devices_are_given_to_a_claim_before_its_pod_is_bound() -> None:
    async with unscheduled() as web, way_to(web) as way, scheduler(way, config=DEVICES):
        await web.system.submit([device_class(), device_slice("n2"), device_claim("gpu")])
        await web.system.submit([with_devices(pod("trainer"), "gpu")])
        found = await until(web, "Pod", "trainer", is_bound)
        given = await until(web, "ResourceClaim", "gpu", lambda each: "allocation" in each.get("status", {}))
    assert found["spec"]["nodeName"] == "n2"
    assert given["status"]["reservedFor"][0]["name"] == "trainer"
    assert "PUT /apis/resource.k8s.io/v1/namespaces/default/resourceclaims/gpu/status" in way.sent
