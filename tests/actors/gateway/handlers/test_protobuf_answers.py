"""Answers in protobuf: who gets them, and that they say what the JSON of the same request says."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from pumice.actors.gateway.watch_events import STREAM
from pumice.core.objects.metadata import Object
from tests.actors.gateway.faults.test_door import struck_by
from tests.actors.gateway.rig import PODS, QUEUES, Chunks, Web, pod_of, serving
from tests.kit.answers import PROTOBUF, completed, decoded, events_in

pytestmark = pytest.mark.anyio

BOTH = f"{PROTOBUF},application/json"
PARTIAL = f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
REVIEW: Object = {
    "apiVersion": "authorization.k8s.io/v1",
    "kind": "SelfSubjectAccessReview",
    "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
}


def names(listing: Object) -> list[str]:
    return [item["metadata"]["name"] for item in listing["items"]]


async def ask(web: Web, path: str, accept: str = PROTOBUF, method: str = "GET", body: Object | None = None) -> Any:
    answer = await web.http.request(method, path, json=body, headers={"accept": accept})
    return answer.status_code, answer.headers["content-type"], answer.content


@pytest.mark.parametrize("accept", [PROTOBUF, BOTH, f"{PROTOBUF}, */*", f"application/json;q=0.5,{PROTOBUF}"])
async def test_the_first_accepted_form_is_answered(accept: str) -> None:
    async with serving() as web:
        (made,) = await web.create_pods("a")
        code, media, body = await ask(web, f"{PODS}/a", accept)
        assert (code, media) == (200, PROTOBUF)
        assert decoded(body) == completed(made)
        assert (await ask(web, f"{PODS}/a", f"application/json,{PROTOBUF}"))[1] == "application/json"


async def test_a_list_says_what_json_says() -> None:
    async with serving() as web:
        await web.create_pods("a", "b")
        code, media, body = await ask(web, f"{PODS}?limit=1")
        assert (code, media) == (200, PROTOBUF)
        told = await web.get(f"{PODS}?limit=1")
        found = decoded(body)
        assert found["items"] == [completed({"apiVersion": "v1", "kind": "Pod", **item}) for item in told["items"]]
        assert found["metadata"] == told["metadata"] | {"continue": found["metadata"]["continue"]}
        rest = await ask(web, f"{PODS}?limit=1&continue={found['metadata']['continue']}")
        assert names(decoded(rest[2])) == ["b"]


async def test_a_large_list_is_json_or_comes_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pumice.actors.gateway.handlers.reads.WHOLE", 2_000)
    async with serving() as web:
        await web.system.submit([pod_of(f"p{index:03}") for index in range(450)])
        told = await web.get(PODS)
        answer = await web.http.get(PODS, headers={"accept": BOTH})
        assert (answer.headers["content-type"], answer.json()) == ("application/json", told)
        answer = await web.http.get(f"{PODS}?limit=400", headers={"accept": PROTOBUF})
        assert answer.headers["transfer-encoding"] == "chunked"
        found = decoded(answer.content)
        assert names(found) == [f"p{index:03}" for index in range(400)]
        assert found["metadata"]["continue"]
        partial = await web.http.get(PODS, headers={"accept": PARTIAL})
        assert partial.headers["transfer-encoding"] == "chunked"
        assert names(decoded(partial.content)) == [f"p{index:03}" for index in range(450)]


async def test_volcanos_kinds_have_json_and_metadata_alone() -> None:
    async with serving() as web:
        code, media, body = await ask(web, QUEUES)
        assert (code, media, decoded(body)["reason"]) == (406, PROTOBUF, "NotAcceptable")
        assert (await ask(web, QUEUES, BOTH))[:2] == (200, "application/json")
        code, media, body = await ask(web, QUEUES, PARTIAL)
        assert (code, media) == (200, PROTOBUF)
        assert names(decoded(body)) == ["default", "root"]
        assert (await ask(web, QUEUES, f"{PROTOBUF};as=Table;g=meta.k8s.io;v=v1"))[0] == 406


async def test_statuses_and_reviews_come_in_it() -> None:
    async with serving() as web:
        await web.create_pods("a", "b")
        code, media, body = await ask(web, f"{PODS}/x")
        assert (code, media) == (404, PROTOBUF)
        assert decoded(body)["details"] == {"name": "x", "kind": "pods"}
        code, media, body = await ask(
            web, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", BOTH, "POST", REVIEW
        )
        assert (code, media, decoded(body)["status"]["allowed"]) == (201, PROTOBUF, True)
        code, media, body = await ask(web, f"{PODS}/a", BOTH, "DELETE")
        assert (code, media, decoded(body)["kind"]) == (200, PROTOBUF, "Pod")
        code, media, body = await ask(web, "/nonsense", "text/html")
        assert (code, media) == (404, "application/json")


class Events:
    """The events of a watch in protobuf."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        self._found: list[tuple[str, Object]] = []
        self._rest = b""

    async def next(self) -> tuple[str, Object]:
        while not self._found:
            self._found, self._rest = events_in(self._rest + await anext(self._chunks))
        return self._found.pop(0)


@asynccontextmanager
async def watched(web: Web, path: str) -> AsyncGenerator[tuple[bytes, Events]]:
    async with web.streaming(path, accept=PROTOBUF) as (head, chunks):
        yield head, Events(chunks)


async def test_a_watch_comes_in_frames() -> None:
    async with serving() as web:
        await web.create_pods("a", app="x")
        async with watched(web, f"{PODS}?watch=true&labelSelector=app%3Dx") as (head, events):
            assert f"content-type: {STREAM}\r\n".encode() in head
            type_, first = await events.next()
            assert (type_, first) == ("ADDED", completed(await web.get(f"{PODS}/a")))
            await web.create_pods("b", app="x")
            assert (await events.next())[1]["metadata"]["name"] == "b"
        async with watched(web, f"{PODS}?watch=true") as (_, events):
            assert [(await events.next())[0] for _ in range(2)] == ["ADDED", "ADDED"]
            made = await web.create_pods("c")
            assert await events.next() == ("ADDED", completed(made[0]))
        async with watched(web, f"{PODS}?watch=true&resourceVersion=1") as (_, events):
            type_, status = await events.next()
            assert (type_, status["kind"], status["code"]) == ("ERROR", "Status", 410)


async def _read_into(held: bytearray, web: Web) -> None:
    async with web.http.stream("GET", f"{PODS}?watch=true", headers={"accept": PROTOBUF}) as answer:
        async for part in answer.aiter_bytes():
            held += part


@pytest.mark.parametrize("within", [False, True])
async def test_a_fault_cuts_a_watch_between_frames_or_within_one(within: bool) -> None:
    async with struck_by({"fault": "cut-watch", "events": 1, "within": within}) as web:
        await web.create_pods("a", "b")
        held = bytearray()
        with pytest.raises(httpx.RemoteProtocolError):
            await _read_into(held, web)
        found, rest = events_in(bytes(held))
        assert [(type_, obj["metadata"]["name"]) for type_, obj in found] == [("ADDED", "a")]
        assert bool(rest) is within
