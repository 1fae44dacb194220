"""The connections of writers: used again, replaced where they are no more, and what goes over them."""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from pumice.actors.errors import RemoteError
from pumice.actors.real_clusters.scheduled.client import ClusterClient
from pumice.actors.real_clusters.scheduled.settings import ClusterSettings
from pumice.config.kubeconfig import ClusterAccess
from pumice.core.objects.metadata import Object

pytestmark = pytest.mark.anyio
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n" + b'{"a":1}'


class Scripted:
    """Answers each request with the next of its words; None: the connection is closed instead."""

    def __init__(self, answers: Sequence[bytes | None]) -> None:
        self.left = list(answers)
        self.heard: list[bytes] = []
        self.connections = 0
        self.port = 0

    async def serve(self, stream: SocketStream) -> None:
        self.connections += 1
        async with stream:
            while self.left:
                try:
                    if not await self._answer(stream):
                        return
                except (anyio.EndOfStream, anyio.BrokenResourceError):  # amid a long answer, too: it is not heard out
                    return

    async def _answer(self, stream: SocketStream) -> bool:
        """Whether the connection goes on after it."""
        heard = await _request(stream)
        answer = self.left.pop(0)
        if answer is None:
            return False
        self.heard.append(heard)
        await stream.send(answer)
        return b"last" not in answer


async def _request(stream: SocketStream) -> bytes:
    """Return one request, whole: a client may send head and body by themselves."""
    heard = b""
    while b"\r\n\r\n" not in heard:
        heard += await stream.receive()
    length = re.search(rb"content-length: (\d+)", heard, re.IGNORECASE)
    whole = heard.index(b"\r\n\r\n") + 4 + (int(length[1]) if length else 0)
    while len(heard) < whole:
        heard += await stream.receive()
    return heard


@asynccontextmanager
async def scripted(*answers: bytes | None) -> AsyncGenerator[Scripted]:
    server = Scripted(answers)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        server.port = listener.extra(SocketAttribute.local_port)
        tasks.start_soon(listener.serve, server.serve)
        yield server
        tasks.cancel_scope.cancel()


def client(server: Scripted, token: str = "t") -> ClusterClient:
    return ClusterClient(ClusterSettings(ClusterAccess(f"http://127.0.0.1:{server.port}/under", token=token)))


def soon() -> float:
    return anyio.current_time() + 10.0


def status(code: int, reason: str) -> bytes:
    body = f'{{"message":"no","reason":"{reason}"}}'.encode()
    return f"HTTP/1.1 {code} No\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def test_a_connection_is_used_again() -> None:
    async with scripted(OK, OK) as server, client(server) as api:
        for _ in range(2):
            assert await api.create("/x", {}, soon()) == {"a": 1}
    assert server.connections == 1


async def test_writers_that_wait_have_connections_of_their_own() -> None:
    async with scripted(*[OK] * 8) as server, client(server) as api:
        for most in (4, 4):
            nothing: Object = {}
            async with anyio.create_task_group() as tasks:
                for _ in range(4):
                    tasks.start_soon(api.create, "/x", nothing, soon())
            assert server.connections == most


@pytest.mark.parametrize("first", [OK, OK.replace(b"Content", b"Connection: close\r\nX: last\r\nContent")])
async def test_a_connection_that_was_closed_meanwhile_is_replaced(first: bytes) -> None:
    answers = (first, OK) if b"last" in first else (first, None, OK)
    async with scripted(*answers) as server, client(server) as api:
        await api.create("/x", {}, soon())
        assert await api.create("/x", {}, soon()) == {"a": 1}
    assert server.connections == 2


WRONG = {
    "no HTTP": b"220 mail ready\r\n\r\n",
    "half a length": b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nX: last\r\n\r\n{}",
    "no such chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
}


@pytest.mark.parametrize("answer", WRONG.values(), ids=WRONG)
async def test_what_is_no_answer_is_tried_again(answer: bytes) -> None:
    async with scripted(answer, OK) as server, client(server) as api:
        assert await api.create("/x", {}, soon()) == {"a": 1}


async def test_what_would_be_another_header_is_not_sent() -> None:
    async with scripted(OK) as server, client(server, "t\r\nX: y") as api:
        with pytest.raises(RemoteError):
            await api.create("/x", {}, anyio.current_time() + 0.2)
    assert server.heard == []


async def test_writes_go_that_way_with_path_and_token() -> None:
    async with scripted(OK) as server, client(server) as api:
        assert await api.patch("/api/v1/x", {"b": 2}, soon()) == {"a": 1}
    (heard,) = server.heard
    head, _, body = heard.partition(b"\r\n\r\n")
    assert head.startswith(b"PATCH /under/api/v1/x HTTP/1.1\r\n")
    assert {b"Authorization: Bearer t", b"Content-Type: application/merge-patch+json"} <= set(head.split(b"\r\n"))
    assert body == b'{"b":2}'


async def test_writes_are_made_as_whom_the_kubeconfig_says() -> None:
    groups = (("Impersonate-User", "ann"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b"))
    async with scripted(OK) as server:
        access = ClusterAccess(f"http://127.0.0.1:{server.port}", token="t", impersonation=groups)
        async with ClusterClient(ClusterSettings(access)) as api:
            await api.create("/x", {}, soon())
    lines = set(server.heard[0].split(b"\r\n"))
    assert {b"Impersonate-User: ann", b"Impersonate-Group: a", b"Impersonate-Group: b"} <= lines


async def test_what_is_refused_is_said_and_what_may_pass_is_tried_again() -> None:
    async with scripted(status(409, "Conflict"), status(503, ""), None, OK) as server, client(server) as api:
        with pytest.raises(RemoteError) as refused:
            await api.create("/x", {}, soon())
        assert (refused.value.code, refused.value.reason) == (409, "Conflict")
        assert await api.create("/x", {}, soon()) == {"a": 1}


async def test_a_refused_token_is_tried_once_more() -> None:
    async with scripted(status(401, "Unauthorized"), OK) as server, client(server) as api:
        assert await api.create("/x", {}, soon()) == {"a": 1}


async def test_when_its_time_is_up_it_is_given_up() -> None:
    async with scripted(None, None, None, None) as server, client(server) as api:
        with pytest.raises(RemoteError) as lost:
            await api.create("/x", {}, anyio.current_time() + 0.3)
    assert lost.value.code == 0
