"""A running system with its gateway on a free port of the loopback, and a client of it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import httpx
from anyio.streams.buffered import BufferedByteReceiveStream

from pumice.actors.gateway.settings import GatewaySettings, listen
from pumice.actors.system.settings import SystemSettings
from pumice.actors.system.system import System
from pumice.core.objects.metadata import Object
from pumice.storage.journal import Journal
from tests.actors.rig import started
from tests.kit.pods import pod

PASSIVE = SystemSettings(scheduler=False, controllers=False)
PODS = "/api/v1/namespaces/default/pods"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
PATIENCE_S = 20.0
GRACE_S = 0.3
"""For whoever is still there when a server stops: long for one that has all it needs in this process."""


class Web:
    """`http` speaks to the gateway of `system`."""

    def __init__(self, system: System, http: httpx.AsyncClient, settings: GatewaySettings) -> None:
        self.system = system
        self.http = http
        self.settings = settings

    async def get(self, path: str, **headers: str) -> Object:
        """GET of something that is there."""
        answer = await self.http.get(path, headers=headers)
        assert answer.status_code == 200, answer.text
        found: Object = answer.json()
        return found

    async def send(self, method: str, path: str, body: Any = None, code: int = 200, **headers: str) -> Object:
        """A request whose answer must have this code."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
        headers.setdefault("content-type", "application/json")
        answer = await self.http.request(method, path, content=content, headers=headers)
        assert answer.status_code == code, f"{answer.status_code}: {answer.text}"
        found: Object = answer.json()
        return found

    async def create_pods(self, *names: str, **labels: str) -> list[Object]:
        """Pods that nobody schedules."""
        return [await self.send("POST", PODS, pod_of(name, **labels), 201) for name in names]

    @asynccontextmanager
    async def watching(self, path: str, **headers: str) -> AsyncGenerator[AsyncIterator[Object]]:
        """The events of a watch, one by one, on a connection of its own."""
        async with self.streaming(path, **headers) as (_, chunks):
            yield Lines(chunks)

    @asynccontextmanager
    async def streaming(self, path: str, **headers: str) -> AsyncGenerator[tuple[bytes, Chunks]]:
        """The head and the chunks of an answer, on a connection of its own."""
        with anyio.fail_after(PATIENCE_S):
            async with await anyio.connect_tcp(*self.settings.address) as stream:
                told = "".join(f"{name}: {value}\r\n" for name, value in {"host": "localhost", **headers}.items())
                await stream.send(f"GET {path} HTTP/1.1\r\n{told}\r\n".encode())
                buffered = BufferedByteReceiveStream(stream)
                head = await buffered.receive_until(b"\r\n\r\n", 65536)
                assert head.startswith(b"HTTP/1.1 200"), head
                yield head, Chunks(buffered)


class Chunks:
    """The chunks of an answer; ends when the answer has been ended properly."""

    def __init__(self, stream: BufferedByteReceiveStream) -> None:
        self._stream = stream

    def __aiter__(self) -> Chunks:
        return self

    async def __anext__(self) -> bytes:
        size = int(await self._stream.receive_until(b"\r\n", 64), 16)
        found = await self._stream.receive_exactly(size) if size else b""
        assert await self._stream.receive_exactly(2) == b"\r\n"
        if not size:
            raise StopAsyncIteration
        return found


class Lines:
    """The lines of a chunked answer, as JSON."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        self._rest = b""

    def __aiter__(self) -> Lines:
        return self

    async def __anext__(self) -> Object:
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            try:
                parts.append(await anext(self._chunks))
            except StopAsyncIteration:
                assert not any(parts)
                raise
        line, _, self._rest = b"".join(parts).partition(b"\n")
        found: Object = json.loads(line)
        return found


def pod_of(name: str, **labels: str) -> Object:
    """A pod for a scheduler that does not exist."""
    made = pod(name)
    made["spec"]["schedulerName"] = "nobody"
    made["metadata"]["labels"] = labels
    return made


@asynccontextmanager
async def serving(
    journal: Journal | None = None, settings: SystemSettings = PASSIVE, **gateway: Any
) -> AsyncGenerator[Web]:
    """A system with a gateway; `gateway` are fields of its settings."""
    with listen("127.0.0.1", 0) as listener:
        ours = GatewaySettings(listener, **dict[str, Any](grace_s=GRACE_S) | gateway)
        running = started(journal, settings=replace(settings, gateway=ours))
        client = httpx.AsyncClient(base_url=ours.url, timeout=PATIENCE_S, trust_env=False)
        async with running as system, client as http:
            yield Web(system, http, ours)


async def take(events: AsyncIterator[Object], number: int) -> list[Object]:
    """The next so many events."""
    return [await anext(events) for _ in range(number)]


def shown(events: list[Object]) -> list[tuple[str, str]]:
    """Type and name of each."""
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]
