"""WebSockets, with a client that is not ours: watches and logs come in frames, all else is told in a Status."""

from __future__ import annotations

import json
import logging
from base64 import b64decode, urlsafe_b64encode
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx
import pytest
from anyio import BrokenResourceError, EndOfStream, connect_tcp, fail_after
from httpx_ws import AsyncWebSocketSession, WebSocketDisconnect, aconnect_ws

from pumice.actors.gateway.protobuf.reading import decode, inside
from pumice.core.objects.metadata import Object
from tests.actors.gateway.rig import PATIENCE_S, PODS, Web, serving

pytestmark = pytest.mark.anyio
MERGE = {"content-type": "application/merge-patch+json"}
HANDSHAKE = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
}
BEARER = "base64url.bearer.authorization.k8s.io."


@asynccontextmanager
async def socket(web: Web, path: str, *protocols: str, **headers: str) -> AsyncGenerator[AsyncWebSocketSession]:
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_S) as client:
        made: Any = aconnect_ws(
            f"{web.settings.url}{path}", client, subprotocols=list(protocols) or None, headers=headers
        )
        opened: AbstractAsyncContextManager[AsyncWebSocketSession] = made
        async with opened as session:
            yield session


async def event(session: AsyncWebSocketSession) -> Object:
    with fail_after(PATIENCE_S):
        found: Object = json.loads(await session.receive_text())
    return found


async def why_not(web: Web, path: str, code: int, *protocols: str, **headers: str) -> Object:
    """What comes in the place of a WebSocket."""
    offer = {**HANDSHAKE, **({"sec-websocket-protocol": ", ".join(protocols)} if protocols else {})}
    return await web.send("GET", path, None, code, **offer, **headers)


async def test_a_watch_sends_one_text_frame_an_event() -> None:
    async with serving() as web:
        await web.create_pods("a", "b")
        async with socket(web, f"{PODS}?watch=true", origin=web.settings.url) as session:
            first = [await event(session), await event(session)]
            assert [(each["type"], each["object"]["metadata"]["name"]) for each in first] == [
                ("ADDED", "a"),
                ("ADDED", "b"),
            ]
            await web.send("PATCH", f"{PODS}/a", {"metadata": {"labels": {"x": "y"}}}, 200, **MERGE)
            changed = await event(session)
            assert (changed["type"], changed["object"]["metadata"]["labels"]) == ("MODIFIED", {"x": "y"})
            await session.ping()
            await session.send_text("nobody listens to this")
            await web.send("DELETE", f"{PODS}/a?gracePeriodSeconds=0")
            while (last := await event(session))["type"] == "MODIFIED":
                pass
            assert last["type"] == "DELETED"


async def test_a_watch_in_protobuf_sends_one_binary_frame_an_event() -> None:
    accept = "application/vnd.kubernetes.protobuf"
    async with serving() as web:
        await web.create_pods("a", "b")
        async with socket(web, f"{PODS}?watch=true", origin=web.settings.url, accept=accept) as session:
            with fail_after(PATIENCE_S):
                frames = [await session.receive_bytes() for _ in range(2)]
        shown = [decode(inside(frame, 2, 1))["metadata"]["name"] for frame in frames]
        assert ([inside(frame, 1) for frame in frames], shown) == ([b"ADDED", b"ADDED"], ["a", "b"])


async def test_a_watch_whose_time_is_up_closes_normally() -> None:
    async with serving() as web, socket(web, f"{PODS}?watch=true&timeoutSeconds=1") as session:
        with fail_after(PATIENCE_S), pytest.raises(WebSocketDisconnect) as closed:
            await session.receive_text()
        assert closed.value.code == 1000


async def test_a_watch_from_an_old_revision_says_so_in_a_frame() -> None:
    async with serving() as web, socket(web, f"{PODS}?watch=true&resourceVersion=1") as session:
        told = await event(session)
        assert (told["type"], told["object"]["code"]) == ("ERROR", 410)


async def test_a_watch_that_its_client_leaves_ends() -> None:
    async with serving(watch_limit=1) as web:
        async with socket(web, f"{PODS}?watch=true"):
            assert (await why_not(web, f"{PODS}?watch=true", 429))["reason"] == "TooManyRequests"
        with fail_after(PATIENCE_S):
            while (await web.http.get(f"{PODS}?watch=1&timeoutSeconds=1")).status_code == 429:
                pass


async def test_the_first_subprotocol_is_taken_and_a_token_may_come_as_one() -> None:
    token = BEARER + urlsafe_b64encode(b"secret").decode().rstrip("=")
    async with serving(token="secret") as web:
        async with socket(web, f"{PODS}?watch=true", token, "v4.channel.k8s.io") as session:
            assert session.subprotocol == "v4.channel.k8s.io"
        for wrong in (f"{BEARER}d3Jvbmc", f"{BEARER}?", "plain"):
            assert (await why_not(web, f"{PODS}?watch=true", 401, wrong, "plain2"))["reason"] == "Unauthorized"
        async with socket(web, f"{PODS}?watch=true", authorization="Bearer secret"):
            pass


async def test_a_log_comes_in_binary_frames_or_as_base64() -> None:
    async with serving() as web:
        await web.create_pods("a")
        await web.send("PATCH", f"{PODS}/a/status", {"status": {"phase": "Running"}}, 200, **MERGE)
        for query in ("", "?follow=true"):
            async with socket(web, f"{PODS}/a/log{query}") as session:
                with fail_after(PATIENCE_S):
                    assert b"simulates this container" in await session.receive_bytes()
            async with socket(web, f"{PODS}/a/log{query}", "base64.binary.k8s.io") as session:
                with fail_after(PATIENCE_S):
                    assert b"simulates this container" in b64decode(await session.receive_text())


async def test_a_frame_that_is_not_valid_closes_the_socket(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as web:
        async with await connect_tcp(*web.settings.address) as stream:
            told = "".join(f"{name}: {value}\r\n" for name, value in {"host": "localhost", **HANDSHAKE}.items())
            await stream.send(f"GET {PODS}?watch=true HTTP/1.1\r\n{told}\r\n".encode())
            with fail_after(PATIENCE_S), pytest.raises((EndOfStream, BrokenResourceError)):  # noqa: PT012
                assert (await stream.receive()).startswith(b"HTTP/1.1 101")
                await stream.send(b"\xff\xff\xff\xff")
                while True:
                    await stream.receive()
                    await stream.send(b"\xff\xff\xff\xff")
        assert await web.get("/version")
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


@pytest.mark.parametrize("part", ["exec?command=ls", "attach", "portforward"])
async def test_what_simulated_containers_cannot_do_is_said(part: str) -> None:
    async with serving() as web:
        await web.create_pods("a")
        status = await why_not(web, f"{PODS}/a/{part}", 405, "v5.channel.k8s.io")
        assert status["message"].startswith("containers are simulated")
        spdy = {"connection": "Upgrade", "upgrade": "SPDY/3.1", "x-stream-protocol-version": "v4.channel.k8s.io"}
        for method in ("GET", "POST"):
            answer = await web.send(method, f"{PODS}/a/{part}", code=405, **spdy)
            assert answer["message"] == status["message"]


async def test_other_paths_answer_as_if_nobody_had_asked() -> None:
    async with serving() as web:
        assert (await why_not(web, "/nowhere", 404))["reason"] == "NotFound"
        assert (await why_not(web, PODS, 403, origin="https://evil.example"))["reason"] == "Forbidden"
        assert (await why_not(web, PODS, 200))["kind"] == "PodList"


async def test_a_handshake_that_is_not_valid_is_refused_with_a_status() -> None:
    async with serving() as web:
        for missing in ("sec-websocket-version", "sec-websocket-key"):
            offer = {name: value for name, value in HANDSHAKE.items() if name != missing}
            answer = await web.send("GET", f"{PODS}?watch=true", code=400, **offer)
            assert "not a WebSocket handshake" in answer["message"]
