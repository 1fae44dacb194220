"""Answers in protobuf: who gets them, and that they say what the JSON of the same request says."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from pumice.actors.gateway.protobuf.reading import decode, inside, object_in, varint
from pumice.actors.gateway.protobuf.writing import encode, envelope
from pumice.actors.gateway.watch_events import PROTOBUF_EVENTS, STREAM
from pumice.core.objects.metadata import Object
from tests.actors.gateway.faults.test_door import struck_by
from tests.actors.gateway.rig import PODS, QUEUES, Web, pod_of, serving

pytestmark = pytest.mark.anyio

PROTOBUF = "application/vnd.kubernetes.protobuf"
BOTH = f"{PROTOBUF},application/json"
PARTIAL = f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
REVIEW: Object = {
    "apiVersion": "authorization.k8s.io/v1",
    "kind": "SelfSubjectAccessReview",
    "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
}


async def ask(web: Web, path: str, accept: str = PROTOBUF, method: str = "GET", body: Object | None = None) -> Any:
    answer = await web.http.request(method, path, json=body, headers={"accept": accept})
    return answer.status_code, answer.headers["content-type"], answer.content


def listing(body: bytes, kind: str = "Pod", api_version: str = "v1") -> tuple[list[Object], bytes]:
    """The items of a list, and its revision."""
    items = [part for number, part in _fields(bytes(object_in(body))) if number == 2]
    found = [decode(envelope(api_version, kind, [part])) for part in items]
    return found, inside(object_in(body), 1, 2)


def _fields(data: bytes) -> list[tuple[int, bytes]]:
    """Fields of bytes, one after the other."""
    view, at, found = memoryview(data), 0, list[tuple[int, bytes]]()
    while at < len(data):
        key, at = varint(view, at)
        size, at = varint(view, at)
        found.append((key >> 3, data[at : at + size]))
        at += size
    return found


def completed(found: Object) -> Object:
    """JSON as it is read from protobuf: Go prints some fields that an object does not have."""
    return decode(encode(found))


@pytest.mark.parametrize("accept", [PROTOBUF, BOTH, f"{PROTOBUF}, */*", f"application/json;q=0.5,{PROTOBUF}"])
async def test_the_first_accepted_form_is_answered(accept: str) -> None:
    async with serving() as web:
        (made,) = await web.create_pods("a")
        code, media, body = await ask(web, f"{PODS}/a", accept)
        assert (code, media) == (200, PROTOBUF)
        assert decode(body) == completed(made)
        assert (await ask(web, f"{PODS}/a", f"application/json,{PROTOBUF}"))[1] == "application/json"


async def test_a_list_says_what_json_says() -> None:
    async with serving() as web:
        await web.create_pods("a", "b")
        code, media, body = await ask(web, f"{PODS}?limit=1")
        assert (code, media) == (200, PROTOBUF)
        told = await web.get(f"{PODS}?limit=1")
        items, revision = listing(body)
        assert items == [completed({"apiVersion": "v1", "kind": "Pod", **item}) for item in told["items"]]
        assert revision.decode() == told["metadata"]["resourceVersion"]
        rest, _ = listing((await ask(web, f"{PODS}?limit=1&continue={inside(object_in(body), 1, 3).decode()}"))[2])
        assert [item["metadata"]["name"] for item in rest] == ["b"]


async def test_a_large_list_is_json_or_comes_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pumice.actors.gateway.handlers.reads.WHOLE", 2_000)
    async with serving() as web:
        await web.system.submit([pod_of(f"p{index:03}") for index in range(450)])
        told = await web.get(PODS)
        answer = await web.http.get(PODS, headers={"accept": BOTH})
        assert (answer.headers["content-type"], answer.json()) == ("application/json", told)
        answer = await web.http.get(f"{PODS}?limit=400", headers={"accept": PROTOBUF})
        assert answer.headers["transfer-encoding"] == "chunked"
        items, _ = listing(answer.content)
        assert [item["metadata"]["name"] for item in items] == [f"p{index:03}" for index in range(400)]
        assert inside(object_in(answer.content), 1, 3)
        partial = await web.http.get(PODS, headers={"accept": PARTIAL})
        assert partial.headers["transfer-encoding"] == "chunked"
        assert len(_fields(bytes(object_in(partial.content)))) == 451


async def test_volcanos_kinds_have_json_and_metadata_alone() -> None:
    async with serving() as web:
        code, media, body = await ask(web, QUEUES)
        assert (code, media, decode(body)["reason"]) == (406, PROTOBUF, "NotAcceptable")
        assert (await ask(web, QUEUES, BOTH))[:2] == (200, "application/json")
        code, media, body = await ask(web, QUEUES, PARTIAL)
        assert (code, media) == (200, PROTOBUF)
        names = [inside(part, 1, 1) for number, part in _fields(bytes(object_in(body))) if number == 2]
        assert names == [b"default", b"root"]
        assert (await ask(web, QUEUES, f"{PROTOBUF};as=Table;g=meta.k8s.io;v=v1"))[0] == 406


async def test_statuses_and_reviews_come_in_it() -> None:
    async with serving() as web:
        await web.create_pods("a", "b")
        code, media, body = await ask(web, f"{PODS}/x")
        assert (code, media) == (404, PROTOBUF)
        assert decode(body)["details"] == {"name": "x", "kind": "pods"}
        code, media, body = await ask(
            web, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", BOTH, "POST", REVIEW
        )
        assert (code, media, decode(body)["status"]["allowed"]) == (201, PROTOBUF, True)
        code, media, body = await ask(web, f"{PODS}/a", BOTH, "DELETE")
        assert (code, media, decode(body)["kind"]) == (200, PROTOBUF, "Pod")
        code, media, body = await ask(web, "/nonsense", "text/html")
        assert (code, media) == (404, "application/json")


@asynccontextmanager
async def watched(web: Web, path: str) -> AsyncGenerator[tuple[httpx.Response, AsyncIterator[tuple[str, Object]]]]:
    """The events of a watch in protobuf."""

    async def events() -> AsyncIterator[tuple[str, Object]]:
        held = b""
        async for part in answer.aiter_bytes():
            held += part
            while len(held) >= 4 and len(held) >= (end := 4 + int.from_bytes(held[:4])):
                event, held = held[4:end], held[end:]
                yield inside(event, 1).decode(), decode(inside(event, 2, 1))

    async with web.http.stream("GET", path, headers={"accept": PROTOBUF}) as answer:
        yield answer, events()


async def test_a_watch_comes_in_frames() -> None:
    async with serving() as web:
        await web.create_pods("a", app="x")
        async with watched(web, f"{PODS}?watch=true&labelSelector=app%3Dx") as (answer, events):
            assert answer.headers["content-type"] == STREAM
            type_, first = await anext(events)
            assert (type_, first) == ("ADDED", completed(await web.get(f"{PODS}/a")))
            await web.create_pods("b", app="x")
            assert (await anext(events))[1]["metadata"]["name"] == "b"
        async with watched(web, f"{PODS}?watch=true") as (_, events):
            assert [(await anext(events))[0] for _ in range(2)] == ["ADDED", "ADDED"]
            made = await web.create_pods("c")
            assert await anext(events) == ("ADDED", completed(made[0]))
        async with watched(web, f"{PODS}?watch=true&resourceVersion=1") as (_, events):
            type_, status = await anext(events)
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
        size = 4 + int.from_bytes(held[:4])
        assert decode(inside(bytes(held[4:size]), 2, 1))["metadata"]["name"] == "a"
        assert (len(held) > size) is within
        assert PROTOBUF_EVENTS.revision(bytes(held[:size])) > 0
