"""An API server that answers what a test tells it to, one answer after the other, and remembers what it was asked."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import anyio
import httpx

from pumice.actors.errors import CredentialsError, RemoteError
from pumice.actors.real_clusters.remote.api import RemoteApi
from pumice.actors.real_clusters.remote.backoff import Backoff
from pumice.actors.real_clusters.remote.reflector import Reflector, RemoteListing, RemoteResource
from pumice.config.kubeconfig import ClusterAccess
from pumice.core.objects.metadata import Object

Answer = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]
PODS = RemoteResource("Pod", "v1", "Pod", "/api/v1/pods")
ACCESS = ClusterAccess("http://cluster", token="t")


class Stream(httpx.AsyncByteStream):
    """Parts one after the other; then it ends, breaks (`error`) or says nothing more (`open_`)."""

    def __init__(self, parts: Sequence[bytes], *, open_: bool = False, error: Exception | None = None) -> None:
        self._parts = parts
        self._open = open_
        self._error = error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            yield part
        if self._error is not None:
            raise self._error
        if self._open:
            await anyio.sleep_forever()

    async def aclose(self) -> None:
        """Nothing is held."""


class ScriptedServer(httpx.AsyncBaseTransport):
    """When the script is at its end, watches stay open without a word."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.asked: list[httpx.Request] = []
        self._news = anyio.Event()

    async def so_often(self, number: int) -> None:
        """Until it was asked so often."""
        while len(self.asked) < number:
            await self._news.wait()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        self._news.set()
        self._news = anyio.Event()
        if not self._answers:
            return httpx.Response(200, stream=Stream((), open_=True))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer

    def api(self, access: ClusterAccess = ACCESS, **more: Any) -> RemoteApi:
        return RemoteApi(access, transport=self, **more)

    def queries(self) -> list[dict[str, str]]:
        return [dict(request.url.params) for request in self.asked]


class Heard:
    """A sink that remembers; `enough` is set when there are so many things."""

    def __init__(self, number: int) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.failures: list[RemoteError | CredentialsError] = []
        self.enough = anyio.Event()
        self._number = number

    async def listed(self, resource: RemoteResource, listing: RemoteListing) -> None:
        self._note("LISTED", *(obj["metadata"]["name"] for obj in listing.objects))

    async def changed(self, resource: RemoteResource, type_: str, obj: Object) -> None:
        self._note(type_, obj["metadata"]["name"])

    def failed(self, resource: RemoteResource, error: RemoteError | CredentialsError) -> None:
        self.failures.append(error)

    def _note(self, *what: Any) -> None:
        self.told.append(what)
        if len(self.told) >= self._number:
            self.enough.set()


def pod(name: str, revision: int = 1) -> Object:
    return {"metadata": {"name": name, "namespace": "default", "resourceVersion": str(revision)}}


def page(*pods: Object, revision: int = 1, token: str = "") -> httpx.Response:
    return httpx.Response(
        200, json={"metadata": {"resourceVersion": str(revision), "continue": token}, "items": list(pods)}
    )


def status(code: int, reason: str = "", **headers: str) -> httpx.Response:
    return httpx.Response(
        code, json={"kind": "Status", "code": code, "reason": reason, "message": "no"}, headers=headers
    )


def event(type_: str, obj: Object) -> bytes:
    return json.dumps({"type": type_, "object": obj}).encode() + b"\n"


def events(*lines: bytes, open_: bool = False, error: Exception | None = None) -> httpx.Response:
    return httpx.Response(200, stream=Stream(lines, open_=open_, error=error))


async def followed(
    server: ScriptedServer, number: int, *, until_asked: int = 0, most_s: float = 0.001
) -> tuple[Heard, Reflector]:
    """A reflector of pods that has heard so many things, and then asked so many requests in all."""
    heard = Heard(number)
    quick, api = Backoff(lambda: 0.0, 0.001, most_s), server.api()
    reflector = Reflector(api, PODS, heard, chance=lambda: 0.5, poll_s=0.001, backoff=quick)
    async with api, anyio.create_task_group() as tasks:
        tasks.start_soon(reflector.run)
        with anyio.fail_after(10):
            await heard.enough.wait()
            await server.so_often(until_asked)
        tasks.cancel_scope.cancel()
    return heard, reflector
