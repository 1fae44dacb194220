"""GET with watch=true."""

import socket
from typing import Any

import anyio
import anyio.to_thread
import pytest

from pumice.actors.gateway.request.exchange import Exchange
from tests.actors.gateway.rig import PODS, Web, pod_of, serving, shown, take

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
INITIAL = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

pytestmark = pytest.mark.anyio


async def revision(web: Web) -> str:
    return str((await web.get(PODS))["metadata"]["resourceVersion"])


async def label(web: Web, name: str, **labels: str | None) -> None:
    body = {"metadata": {"labels": labels}}
    await web.send("PATCH", f"{PODS}/{name}", body, 200, **{"content-type": "application/merge-patch+json"})


async def test_what_changes_after_a_list() -> None:
    async with serving() as web:
        await web.create_pods("a")
        since = await revision(web)
        async with web.watching(f"/api/v1/pods?watch=true&resourceVersion={since}") as events:
            await web.create_pods("b")
            await label(web, "b", x="y")
            await web.send("DELETE", f"{PODS}/b")
            seen = await take(events, 3)
            assert shown(seen) == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "b")]
            revisions = [int(event["object"]["metadata"]["resourceVersion"]) for event in seen]
            assert revisions == sorted(set(revisions))
            assert {event["object"]["kind"] for event in seen} == {"Pod"}


@pytest.mark.parametrize("query", ["watch=true", "watch=1&resourceVersion=0"])
async def test_without_a_revision_what_is_there_comes_first(query: str) -> None:
    async with serving() as web:
        await web.create_pods("a", "b")
        async with web.watching(f"{PODS}?{query}") as events:
            assert shown(await take(events, 2)) == [("ADDED", "a"), ("ADDED", "b")]
            await web.create_pods("c")
            assert shown(await take(events, 1)) == [("ADDED", "c")]


async def test_a_streaming_list_ends_with_a_bookmark() -> None:
    async with serving() as web:
        await web.create_pods("a")
        async with web.watching(f"{PODS}?watch=true&{INITIAL}") as events:
            added, bookmark = await take(events, 2)
            assert added["type"] == "ADDED"
            assert bookmark["type"] == "BOOKMARK"
            assert bookmark["object"] == {
                "kind": "Pod",
                "apiVersion": "v1",
                "metadata": {
                    "resourceVersion": added["object"]["metadata"]["resourceVersion"],
                    "annotations": {"k8s.io/initial-events-end": "true"},
                },
            }
            await web.create_pods("b")
            assert shown(await take(events, 1)) == [("ADDED", "b")]


async def test_a_watch_with_a_selector_sees_objects_come_and_go() -> None:
    async with serving() as web:
        await web.create_pods("a", app="x")
        await web.create_pods("b")
        since = await revision(web)
        async with web.watching(f"{PODS}?watch=true&labelSelector=app%3Dx&resourceVersion={since}") as events:
            await label(web, "b", other="1")
            await label(web, "b", app="x")
            await label(web, "a", app="y")
            await label(web, "a", more="1")
            await web.send("DELETE", f"{PODS}/a")
            await web.send("DELETE", f"{PODS}/b")
            assert shown(await take(events, 3)) == [("ADDED", "b"), ("DELETED", "a"), ("DELETED", "b")]


async def test_one_object_and_one_namespace() -> None:
    async with serving() as web:
        await web.create_pods("a", "b")
        await web.send("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}}, 201)
        since = await revision(web)
        async with web.watching(f"{PODS}/a?watch=true&resourceVersion={since}") as one:
            elsewhere = pod_of("a")
            elsewhere["metadata"]["namespace"] = "other"
            await web.send("POST", "/api/v1/namespaces/other/pods", elsewhere, 201)
            await label(web, "b", x="1")
            await label(web, "a", x="1")
            (event,) = await take(one, 1)
            assert (shown([event]), event["object"]["metadata"]["namespace"]) == ([("MODIFIED", "a")], "default")


async def test_rows_of_a_table() -> None:
    async with serving() as web:
        await web.create_pods("a")
        async with web.watching(f"{PODS}?watch=true", accept=TABLE) as events:
            (first,) = await take(events, 1)
            await web.create_pods("b")
            (second,) = await take(events, 1)
        assert first["object"]["kind"] == "Table"
        assert first["object"]["columnDefinitions"]
        assert (second["object"]["columnDefinitions"], second["object"]["rows"][0]["cells"][0]) == ([], "b")


async def test_a_watch_ends_when_its_time_is_up() -> None:
    path = f"{PODS}?watch=true&timeoutSeconds=1&allowWatchBookmarks=true"
    async with serving() as web, web.watching(path) as events:
        assert [event["type"] async for event in events] == ["BOOKMARK"]


async def test_a_bookmark_passes_over_nothing_that_was_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that goes on from it would never see that."""
    send = Exchange.part

    async def stuck(self: Exchange, data: bytes) -> None:
        if b'"ADDED"' in data:
            await anyio.sleep_forever()
        await send(self, data)

    monkeypatch.setattr(Exchange, "part", stuck)
    async with serving() as web:
        query = f"watch=true&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion={await revision(web)}"
        async with web.watching(f"{PODS}?{query}") as events:
            await web.create_pods("a")
            assert [event async for event in events] == []


async def test_a_watch_from_an_old_revision_opens_and_says_that_it_is_gone() -> None:
    async with serving() as web:
        async with web.watching(f"{PODS}?watch=true&resourceVersion=1&allowWatchBookmarks=true") as events:
            (error,) = [event async for event in events]
        status = error["object"]
        assert (error["type"], status["kind"], status["code"], status["reason"]) == ("ERROR", "Status", 410, "Expired")
        assert status["message"].startswith("too old resource version: 1 (")


async def test_a_watch_from_a_revision_to_come_opens_immediately_and_begins_after_it() -> None:
    async with serving() as web:
        since = int(await revision(web)) + 2
        async with web.watching(f"{PODS}?watch=true&resourceVersion={since}") as events:
            await web.create_pods("a", "b", "c")
            assert shown(await take(events, 1)) == [("ADDED", "c")]
            await web.create_pods("d")
            assert shown(await take(events, 1)) == [("ADDED", "d")]


async def test_initial_events_of_a_revision_that_never_was_given_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pumice.actors.gateway.hub.NEWER_PATIENCE_S", 0.05)
    async with serving() as web:
        async with web.watching(f"{PODS}?watch=true&{INITIAL}&resourceVersion={2**62}") as events:
            (error,) = [event async for event in events]
        assert (error["type"], error["object"]["code"], error["object"]["reason"]) == ("ERROR", 504, "Timeout")
        assert error["object"]["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


async def test_initial_events_end_with_a_bookmark_for_those_who_allow_bookmarks() -> None:
    async with serving() as web:
        await web.create_pods("a")
        query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        async with web.watching(f"{PODS}?{query}") as events:
            await web.create_pods("b")
            assert shown(await take(events, 2)) == [("ADDED", "a"), ("ADDED", "b")]
        query = "watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
        async with web.watching(f"{PODS}?{query}") as events:
            await web.create_pods("c")
            assert shown(await take(events, 1)) == [("ADDED", "c")]


async def test_options_that_do_not_go_together_are_refused() -> None:
    async with serving() as web:
        await web.send("GET", f"{PODS}?watch=true&sendInitialEvents=true", code=422)
        await web.send("GET", f"{PODS}?watch=true&resourceVersionMatch=Exact&resourceVersion=1", code=422)


async def test_who_falls_behind_is_told_so_and_holds_nobody_back() -> None:
    async with serving(ring_events=16) as web:
        since = await revision(web)
        query = f"watch=true&resourceVersion={since}"
        with socket.create_connection(web.settings.address) as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
            slow.sendall(f"GET {PODS}?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            async with web.watching(f"{PODS}?{query}") as quick:
                for number in range(60):
                    await create_large(web, f"p{number}")
                    assert shown(await take(quick, 1)) == [("ADDED", f"p{number}")]
            text = await anyio.to_thread.run_sync(read_all, slow)
        assert '"type":"ERROR"' in text
        assert '"reason":"Expired"' in text
        assert text.count('"type":"ADDED"') < 60


async def create_large(web: Web, name: str) -> None:
    made = pod_of(name)
    made["metadata"]["annotations"] = {"fill": "x" * 200_000}
    await web.send("POST", PODS, made, 201)


def read_all(connection: socket.socket) -> str:
    """Until the answer ends, or nothing has come for a while."""
    connection.settimeout(5)
    parts: list[bytes] = []
    while not (parts and parts[-1].endswith(b"0\r\n\r\n")):
        part = connection.recv(1 << 20)
        if not part:
            break
        parts.append(part)
    return b"".join(parts).decode()


async def test_there_is_an_end_to_the_number_of_watches() -> None:
    async with serving(watch_limit=2) as web:
        async with web.watching(f"{PODS}?watch=true"), web.watching(f"{PODS}?watch=true"):
            answer = await web.http.get(f"{PODS}?watch=true")
            assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
            assert answer.json()["reason"] == "TooManyRequests"
        with anyio.fail_after(5):
            while (await web.http.get(f"{PODS}?watch=true&timeoutSeconds=1")).status_code == 429:  # noqa: ASYNC110
                await anyio.sleep(0.01)


async def test_stopping_ends_watches_cleanly_and_does_not_wait_for_who_does_not_read() -> None:
    ended: list[Any] = []
    async with serving() as web, anyio.create_task_group() as tasks:
        started = anyio.Event()

        async def follow() -> None:
            async with web.watching(f"{PODS}?watch=true") as events:
                started.set()
                ended.extend([event["type"] async for event in events if event["type"] != "ADDED"])
                ended.append("end")

        with socket.create_connection(web.settings.address) as stuck:
            stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stuck.sendall(f"GET {PODS}?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            tasks.start_soon(follow)
            await started.wait()
            for number in range(40):
                await create_large(web, f"p{number}")
            with anyio.fail_after(8):
                web.system.supervisor.stop()
                while not web.system.api.closed:  # noqa: ASYNC110
                    await anyio.sleep(0.01)
    assert ended == ["end"]


async def test_many_watches_share_what_they_are_sent() -> None:
    async with serving() as web:
        since = await revision(web)
        counts: dict[int, int] = {}

        async def follow(number: int) -> None:
            async with web.watching(f"/api/v1/pods?watch=true&resourceVersion={since}") as events:
                counts[number] = len(await take(events, 200))

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(follow, number)
            for first in range(0, 200, 50):
                await web.system.submit([pod_of(f"p{first + index}") for index in range(50)])
        assert counts == dict.fromkeys(range(20), 200)


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("/api/v1/watch/pods", ["a", "b", "c"]),
        ("/api/v1/watch/namespaces/default/pods?labelSelector=x", ["c"]),
        ("/api/v1/watch/namespaces/default/pods/b", ["b"]),
    ],
)
async def test_old_clients_watch_under_a_path_of_its_own(path: str, seen: list[str]) -> None:
    async with serving() as web:
        await web.create_pods("a", "b")
        async with web.watching(path) as events:
            await web.create_pods("c", x="y")
            assert shown(await take(events, len(seen))) == [("ADDED", name) for name in seen]


async def test_a_path_for_watches_is_good_for_nothing_else() -> None:
    async with serving() as web:
        await web.create_pods("a")
        await web.send("POST", "/api/v1/watch/namespaces/default/pods", {}, 405)
        for rest in ("nothing", "namespaces/default/pods/a/status", "services/a/b/c/d"):
            await web.send("GET", f"/api/v1/watch/{rest}", code=404)
        await web.send("GET", "/api/v1/watch", code=404)
