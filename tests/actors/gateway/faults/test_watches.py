"""Watches and lists that are struck: late, behind, cut, expired, stale; and what Kubernetes promises of them all."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from pumice.core.objects.metadata import Object
from tests.actors.gateway.faults.test_door import code_of, label, struck_by
from tests.actors.gateway.rig import PODS, QUEUES, Web, pod_of, shown, take

pytestmark = pytest.mark.anyio

WATCH = f"{PODS}?watch=true&timeoutSeconds=20"
MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def revision(event: Object) -> int:
    return int(event["object"]["metadata"]["resourceVersion"])


@pytest.mark.parametrize("within", [False, True])
async def test_a_watch_is_cut_after_so_many_events(within: bool) -> None:
    async with struck_by({"fault": "cut-watch", "events": 2, "within": within, "times": 1}) as web:
        await web.create_pods("a", "b", "c")
        async with web.watching(WATCH) as events:
            assert shown(await take(events, 2)) == [("ADDED", "a"), ("ADDED", "b")]
            with pytest.raises(anyio.IncompleteRead):
                await anext(events)
        async with web.watching(WATCH) as events:
            assert len(await take(events, 3)) == 3


@pytest.mark.parametrize("events", [0, 1])
async def test_a_watch_expires_after_so_many_events(events: int) -> None:
    async with struck_by({"fault": "expire", "events": events}) as web:
        await web.create_pods("a", "b")
        async with web.watching(WATCH) as stream:
            told = [each async for each in stream]
        assert [each["type"] for each in told] == ["ADDED"] * events + ["ERROR"]
        assert (told[-1]["object"]["code"], told[-1]["object"]["reason"]) == (410, "Expired")


async def test_bookmarks_do_not_count_as_events() -> None:
    query = "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    async with struck_by({"fault": "cut-watch", "events": 1}) as web, web.watching(f"{PODS}?{query}") as events:
        assert (await anext(events))["type"] == "BOOKMARK"
        await web.create_pods("a")
        assert (await anext(events))["type"] == "ADDED"
        with pytest.raises(anyio.IncompleteRead):
            await anext(events)


async def test_a_delayed_watch_is_late_and_in_order() -> None:
    async with struck_by({"fault": "delay-watch", "delay_s": 0.1}) as web:
        async with web.watching(f"{WATCH}&resourceVersion={await newest(web)}") as events:
            began = anyio.current_time()
            await web.create_pods("a", "b", "c")
            told = await take(events, 3)
        assert anyio.current_time() - began >= 0.1
        assert [revision(each) for each in told] == sorted(revision(each) for each in told)


async def test_a_kind_waits_for_the_events_of_another() -> None:
    async with struck_by({"fault": "delay-watch", "delay_s": 15, "behind": "ConfigMap"}) as web:
        now = await newest(web)
        order = list[str]()

        async def follow(path: str) -> None:
            async with web.watching(f"{path}?watch=true&resourceVersion={now}") as events:
                order.append((await anext(events))["object"]["kind"])

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(follow, PODS)
                tasks.start_soon(follow, MAPS)
                await anyio.sleep(0.1)
                await web.create_pods("a")
                await anyio.sleep(0.1)
                await web.send("POST", MAPS, config_map("m"), 201)
        assert order == ["ConfigMap", "Pod"]


async def test_a_stale_list_is_a_state_that_was() -> None:
    async with struck_by({"fault": "stale", "changes": 2}) as web:
        await web.create_pods("a", "b", "c")
        await label(web, "a", x="y")
        async with web.watching(f"{WATCH}&resourceVersion={await newest(web)}"):
            pass  # the ring has come as far as the store
        old = await web.get(f"{PODS}?resourceVersion=0")
        assert [each["metadata"]["name"] for each in old["items"]] == ["a", "b"]
        assert not old["items"][0]["metadata"].get("labels")
        path = f"{WATCH}&resourceVersion={old['metadata']['resourceVersion']}"
        async with web.watching(path) as events:
            assert shown(await take(events, 2)) == [("ADDED", "c"), ("MODIFIED", "a")]
        assert len((await web.get(PODS))["items"]) == 3  # a list at the newest revision is never stale
        assert len((await web.get(f"{PODS}?resourceVersion={old['metadata']['resourceVersion']}"))["items"]) == 3


async def test_a_stale_list_of_nothing_changed_is_the_present_one() -> None:
    async with struck_by({"fault": "stale", "changes": 5, "kind": "Queue"}) as web:
        assert await code_of(web, "GET", f"{QUEUES}?resourceVersion=0") == 200


async def test_a_list_that_goes_on_expires() -> None:
    async with struck_by({"fault": "expire", "verb": "list"}) as web:
        await web.create_pods("a", "b")
        page = await web.get(f"{PODS}?limit=1")
        assert await code_of(web, "GET", f"{PODS}?limit=1&continue={page['metadata']['continue']}") == 410
        assert await code_of(web, "GET", f"{PODS}?resourceVersion=0") == 200


async def newest(web: Web) -> int:
    return int((await web.get(f"{PODS}?limit=1"))["metadata"]["resourceVersion"])


RULES: list[dict[str, Any]] = [
    {"fault": "cut-watch", "events": 2, "probability": 0.4},
    {"fault": "cut-watch", "events": 1, "within": True, "probability": 0.4},
    {"fault": "expire", "events": 3, "probability": 0.4},
    {"fault": "delay-watch", "delay_s": 0.02, "probability": 0.5},
    {"fault": "stale", "changes": 4, "probability": 0.7},
    {"fault": "refuse", "code": 429, "verb": "watch", "probability": 0.2},
]


async def test_a_client_that_keeps_to_the_rules_misses_nothing() -> None:
    """A reflector (list, watch from there, list again after 410) sees revisions that only rise, and all objects."""
    async with struck_by(*RULES) as web:
        names = [f"p{number}" for number in range(25)]
        known = set[str]()
        with anyio.fail_after(15):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(reflect, web, known, {*names}, tasks.cancel_scope)
                for name in names:
                    await code_of(web, "POST", PODS, pod_of(name))
                    await anyio.sleep(0.01)
        assert known == {*names}


async def reflect(web: Web, known: set[str], wanted: set[str], over: anyio.CancelScope) -> None:
    """Follow the pods until all that are wanted are known."""
    first = True
    while True:
        listed = await web.get(f"{PODS}?resourceVersion=0" if first else PODS)
        first = False
        known.clear()
        known.update(each["metadata"]["name"] for each in listed["items"])
        at = int(listed["metadata"]["resourceVersion"])
        while at:
            if known == wanted:
                over.cancel()
            at = await followed(web, known, at)


async def followed(web: Web, known: set[str], at: int) -> int:
    """Watch once; the revision to go on from, 0 for none."""
    try:
        async with web.watching(f"{WATCH}&resourceVersion={at}") as events:
            async for event in events:
                if event["type"] == "ERROR":
                    return 0
                assert revision(event) > at
                at = revision(event)
                known.add(event["object"]["metadata"]["name"])
                if len(known) == 25:
                    return at
    except (anyio.IncompleteRead, AssertionError) as error:
        if isinstance(error, AssertionError) and b"429" not in str(error).encode():
            raise
    return at
