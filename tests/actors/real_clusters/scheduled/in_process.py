"""The way to a gateway in this process without a socket: nothing is waited for from outside, time may be virtual."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream

from pumice.actors.gateway import gateway
from pumice.actors.gateway.request.exchange import App
from pumice.actors.gateway.settings import GatewaySettings

PARTS = 16


class Parts(httpx.AsyncByteStream):
    """An answer as it comes; `leave` tells the other side that nobody reads on."""

    def __init__(self, parts: MemoryObjectReceiveStream[bytes], leave: Callable[[], object]) -> None:
        self._parts, self._leave = parts, leave

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        return await self._parts.__anext__()

    async def aclose(self) -> None:
        self._leave()
        self._parts.close()


class Exchanged:
    """One request to an ASGI application, which runs in `tasks`."""

    def __init__(self, request: httpx.Request, body: bytes) -> None:
        self._request = request
        self._body: bytes | None = body
        self._send, self._parts = anyio.create_memory_object_stream[bytes](PARTS)
        self._gone, self._begun = anyio.Event(), anyio.Event()
        self._status, self._headers = 500, list[tuple[bytes, bytes]]()

    async def answer(self, app: App, tasks: TaskGroup) -> httpx.Response:
        """Once it has begun."""
        tasks.start_soon(self._run, app)
        try:
            await self._begun.wait()
        except BaseException:
            self._gone.set()
            self._parts.close()
            raise
        return httpx.Response(self._status, headers=self._headers, stream=Parts(self._parts, self._gone.set))

    async def _run(self, app: App) -> None:
        url = self._request.url
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": self._request.method,
            "scheme": "http", "path": url.path, "raw_path": url.raw_path, "query_string": url.query, "root_path": "",
            "headers": [(name.lower(), value) for name, value in self._request.headers.raw],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2), "state": {},
        }  # fmt: skip
        try:
            await app(scope, self._receive, self._sent)
        finally:
            self._begun.set()
            self._send.close()

    async def _receive(self) -> MutableMapping[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _sent(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], list(message["headers"])
            self._begun.set()
        elif message.get("body"):
            try:
                await self._send.send(message["body"])
            except anyio.BrokenResourceError:
                self._gone.set()
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self._send.close()


class InProcess(httpx.AsyncBaseTransport):
    """To the application that `apps` has for whoever listens at `port`."""

    def __init__(self, apps: Mapping[int, App], tasks: TaskGroup, port: int) -> None:
        self._apps, self._tasks, self.port = apps, tasks, port

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        return await Exchanged(request, body).answer(self._apps[self.port], self._tasks)

    async def aclose(self) -> None:
        """More than one client goes this way."""


@asynccontextmanager
async def in_process(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Callable[[int], InProcess]]:
    """Gateways that begin from here on are reached this way, and none other; by their ports."""
    apps = dict[int, App]()

    async def held(app: App, settings: GatewaySettings, stop: anyio.Event, *_: object) -> None:
        apps[settings.address[1]] = app
        await stop.wait()

    monkeypatch.setattr(gateway, "serve", held)
    async with anyio.create_task_group() as tasks:
        yield lambda port: InProcess(apps, tasks, port)
        tasks.cancel_scope.cancel()
