"""What was heard, put in order before it is taken in."""

from typing import Any

import anyio
import pytest

from pumice.actors.errors import CredentialsError, RemoteError
from pumice.actors.real_clusters.mirror import intake as module
from pumice.actors.real_clusters.mirror.changes import Key, change_of
from pumice.actors.real_clusters.mirror.intake import Intake
from pumice.actors.real_clusters.remote.reflector import RemoteListing, RemoteResource

pytestmark = pytest.mark.anyio
NODES = RemoteResource("Node", "v1", "Node", "/api/v1/nodes")
CLAIMS = RemoteResource("PersistentVolumeClaim", "v1", "PersistentVolumeClaim", "/api/v1/persistentvolumeclaims")
PODS = RemoteResource("Pod", "v1", "Pod", "/api/v1/pods")


def obj(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def listing(*names: str, kind: str = "Pod") -> RemoteListing:
    return RemoteListing([change_of(kind, obj(name)) for name in names], "1")


def taken(intake: Intake, *known: Key) -> list[tuple[str, str]]:
    found = intake.take(lambda kind: [key for key in known if key[0] == kind])
    return [("-" if each.gone else "+", f"{each.kind} {each.name}") for each in found]


async def test_nothing_is_handed_out_before_everything_was_listed_once() -> None:
    intake = Intake([NODES, PODS])
    await intake.listed(PODS, listing("p"))
    assert taken(intake) == []
    with anyio.move_on_after(0.01) as early:
        await intake.wait()
    assert early.cancelled_caught
    await intake.listed(NODES, listing("n", kind="Node"))
    await intake.wait()
    assert taken(intake) == [("+", "Node n"), ("+", "Pod p")]
    assert taken(intake) == []


@pytest.mark.parametrize(("code", "waits"), [(403, False), (404, False), (405, False), (500, True), (0, True)])
async def test_what_is_not_there_is_not_waited_for(code: int, waits: bool) -> None:
    intake = Intake([CLAIMS])
    intake.failed(CLAIMS, RemoteError("no", code))
    assert intake.whole is not waits


@pytest.mark.parametrize("resource", [NODES, PODS])
async def test_without_nodes_and_pods_there_is_no_look_at_a_cluster(resource: RemoteResource) -> None:
    intake = Intake([resource])
    intake.failed(resource, RemoteError("forbidden", 403))
    assert not intake.whole
    await intake.listed(resource, listing())
    assert intake.whole


async def test_a_new_list_says_who_is_gone_and_replaces_what_was_heard_before_it() -> None:
    intake = Intake([PODS])
    await intake.changed(PODS, "ADDED", obj("early"))
    await intake.listed(PODS, listing("a"))
    await intake.changed(PODS, "DELETED", obj("a"))
    assert taken(intake, ("Pod", "", "old"), ("Node", "", "n")) == [("-", "Pod old"), ("+", "Pod a"), ("-", "Pod a")]


async def test_who_waits_is_woken_although_somebody_else_has_taken_meanwhile() -> None:
    intake = Intake([PODS])
    await intake.listed(PODS, listing())
    taken(intake)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(intake.wait)
            await anyio.wait_all_tasks_blocked()
            taken(intake)
            await intake.changed(PODS, "ADDED", obj("a"))


async def test_a_failure_that_goes_on_is_said_once_and_its_end_too(caplog: pytest.LogCaptureFixture) -> None:
    intake = Intake([NODES, PODS])
    for resource in (NODES, PODS, NODES):
        intake.failed(resource, RemoteError("no answer"))
    intake.failed(PODS, RemoteError("forbidden", 403))
    for error in (CredentialsError("no token"), RemoteError("who?", 401)):
        for resource in (PODS, NODES):
            intake.failed(resource, error)
    await intake.listed(NODES, listing())
    assert [record.message for record in caplog.records] == [
        "the cluster: no answer; tried again",
        "Pod: forbidden; tried again",
        "the cluster: no token; tried again",
        "the cluster: who?; tried again",
        "the cluster: followed again",
    ]


async def test_a_cluster_without_volcano_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    groups = RemoteResource("PodGroup", "v1", "PodGroup", "/podgroups")
    intake = Intake([groups, CLAIMS])
    for resource in (groups, CLAIMS, groups):
        intake.failed(resource, RemoteError("not found", 404))
    await intake.listed(groups, listing(kind="PodGroup"))
    assert [record.message for record in caplog.records] == [
        "PodGroup: not found: Volcano is not installed there; looked for again",
        "PodGroup: followed again",
    ]


@pytest.mark.parametrize(("most", "most_bytes"), [(3, 1 << 20), (1000, 60)])
async def test_watch_waits_while_the_intake_is_full(
    monkeypatch: pytest.MonkeyPatch, most: int, most_bytes: int
) -> None:
    monkeypatch.setattr(module, "MOST", most)
    monkeypatch.setattr(module, "MOST_BYTES", most_bytes)
    intake = Intake([PODS])
    await intake.listed(PODS, listing())
    taken(intake)
    names = [f"p{number}" for number in range(10)]

    async def watch() -> None:
        for name in names:
            await intake.changed(PODS, "ADDED", obj(name))

    found, looks = list[tuple[str, str]](), list[int]()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            while len(found) < len(names):
                await anyio.wait_all_tasks_blocked()
                assert await intake.is_full(0.0) or len(found) + most >= len(names)
                now = taken(intake)
                looks.append(len(now))
                found += now
    assert found == [("+", f"Pod {name}") for name in names]
    assert 1 < max(looks) <= 3


async def test_lists_that_come_again_replace_each_other_before_the_first_look() -> None:
    intake = Intake([NODES, PODS])
    for name in ("a", "b", "c"):
        await intake.listed(PODS, listing(name))
        await intake.changed(PODS, "MODIFIED", obj(name))
    await intake.listed(NODES, listing("n", kind="Node"))
    assert taken(intake) == [("+", "Node n"), ("+", "Pod c"), ("+", "Pod c")]
