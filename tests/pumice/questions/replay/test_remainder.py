"""What came from outside after two runs have parted, apart from what the system asked of itself."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.core.messages.commands import Create, Delete, LoadObject, Patch
from pumice.core.messages.events import Mutation
from pumice.questions.replay.remainder import Reader, Remainder, requests_of
from pumice.storage import codec
from pumice.storage.memory import MemoryJournal
from tests.actors.rig import idle, placed, started
from tests.kit.nodes import node
from tests.kit.pods import pod

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


async def remainder_of(journal: MemoryJournal) -> Remainder:
    reader = Reader({})
    for stored in await journal.read():
        reader.follow(stored)
    return reader.remainder


@pytest.mark.anyio
async def test_the_pods_of_a_deployment_are_made_by_the_system_and_no_input() -> None:
    journal = MemoryJournal()
    async with started(journal) as system:
        await system.submit([node("n0"), DEPLOYMENT])
        await idle(system)
        assert len(placed(system)) == 2
    asked = [each.request for each in (await remainder_of(journal)).arrivals]
    brought = [(type(each), codec.unpack(each.blob)["kind"]) for each in asked if isinstance(each, Create | LoadObject)]
    assert brought == [(Create, "Queue"), (Create, "Queue"), (LoadObject, "Node"), (Create, "Deployment")]


@pytest.mark.anyio
async def test_what_was_carried_out_and_what_came_to_its_end() -> None:
    journal = MemoryJournal()
    async with started(journal) as system:
        plain = pod("p")
        plain["metadata"]["annotations"] = {"pumice.dev/duration": "50ms"}
        await system.submit([node("n0"), plain])
        await idle(system)
    found = await remainder_of(journal)
    (decision,) = await journal.read(kinds=("decision",))
    assert found.done == {decision.sequence}
    assert len(found.ended) == 1


def changed(kind: str, after: dict[str, Any], before: dict[str, Any]) -> list[Any]:
    mutation = Mutation(7, kind, "Pod", "default", "p", codec.pack(after), "kubectl")
    return requests_of(mutation, before, after)


def test_a_change_is_asked_for_as_such_whatever_the_object_is_now() -> None:
    """A label that somebody set, and not where the pod was at that time."""
    before = pod("p", node="n0")
    after = {**before, "metadata": {**before["metadata"], "labels": {"a": "b"}, "resourceVersion": "9"}}
    (patch,) = changed("MODIFIED", after, before)
    assert isinstance(patch, Patch)
    assert codec.unpack(patch.blob) == {"metadata": {"labels": {"a": "b"}}}
    status = {**before, "status": {**before["status"], "message": "m"}}
    (patch,) = changed("MODIFIED", status, before)
    assert (patch.subresource, codec.unpack(patch.blob)) == ("status", {"status": {"message": "m"}})


def test_objects_come_with_their_uid_and_go_with_their_grace() -> None:
    there = pod("p", node="n0")
    (create,) = changed("ADDED", there, {})
    assert isinstance(create, Create)
    assert create.uid == there["metadata"]["uid"]
    going = {"deletionTimestamp": "2026-01-02T03:04:05Z", "deletionGracePeriodSeconds": 30}
    leaving = {**there, "metadata": {**there["metadata"], **going}}
    assert changed("MODIFIED", leaving, there) == [Delete("Pod", "default", "p", grace_period_s=30, user="kubectl")]
    assert changed("DELETED", leaving, leaving) == [Delete("Pod", "default", "p", grace_period_s=0, user="kubectl")]
