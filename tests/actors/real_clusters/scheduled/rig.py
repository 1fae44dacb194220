"""A cluster of ours without a scheduler, served over HTTP, and the system that schedules it: another one."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import httpx

from pumice.actors.real_clusters.scheduled.settings import ClusterSettings, ElectionSettings
from pumice.actors.system.settings import SystemSettings, scheduling_there
from pumice.actors.system.system import System
from pumice.config.kubeconfig import ClusterAccess
from pumice.core.objects.metadata import Object, section
from pumice.storage.journal import Journal
from tests.actors.gateway.rig import Web, serving
from tests.actors.rig import started, three_nodes

UNSCHEDULED = SystemSettings(scheduler=False)
PATIENCE_S = 20.0
QUICK = ElectionSettings(namespace="default", lease_duration_s=3.0, renew_deadline_s=2.0, retry_period_s=0.2)


class KilledError(Exception):
    """As when the power goes."""


class Parts(httpx.AsyncByteStream):
    """Those of a watch, none of them before its way brings any."""

    def __init__(self, inner: httpx.Response, way: "Way") -> None:
        self._inner, self._way = inner, way
        assert isinstance(inner.stream, httpx.AsyncByteStream)
        self._parts = aiter(inner.stream)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        part = await anext(self._parts)
        try:
            while self._way.is_late():  # noqa: ASYNC110
                await anyio.sleep(0.02)
        except anyio.get_cancelled_exc_class():
            async for _ in self._parts:  # cancelled too: so httpx's own generators end in order
                continue
            raise
        return part

    async def aclose(self) -> None:
        await self._inner.aclose()


class Way(httpx.AsyncBaseTransport):
    """The way to a server. `cut`: no answer comes any more; `lost`: nor is there one to requests of this path's end,
    which are carried out; `is_late`: whether watches bring nothing.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.cut = False
        self.lost = ""
        self.is_late: Callable[[], bool] = lambda: False
        self.sent: list[str] = []
        self._inner = httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.cut:
            raise httpx.ConnectError("cut")
        self.sent.append(f"{request.method} {request.url.path}")
        request.url = request.url.copy_with(port=self.port)
        answer = await self._inner.handle_async_request(request)
        if self.lost and request.url.path.endswith(self.lost):
            await answer.aclose()
            raise httpx.ReadError("lost")
        if "watch" in request.url.params:
            return httpx.Response(answer.status_code, headers=answer.headers, stream=Parts(answer, self))
        return answer

    async def aclose(self) -> None:
        """More than one client goes this way."""

    async def close(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def unscheduled(settings: SystemSettings = UNSCHEDULED) -> AsyncGenerator[Web]:
    """Three nodes, and nobody who schedules."""
    async with serving(settings=settings, grace_s=0.1) as web:
        await web.system.submit(three_nodes())
        yield web


@asynccontextmanager
async def way_to(web: Web) -> AsyncGenerator[Way]:
    way = Way(web.settings.address[1])
    try:
        yield way
    finally:
        await way.close()


def settings_for(way: Way, config: str = "", **more: Any) -> SystemSettings:
    access = ClusterAccess("http://127.0.0.1")
    cluster = ClusterSettings(access, poll_s=0.05, retry_s=0.05, transport=way, **more)
    here = SystemSettings(schedule_period_s=0.02, bind_workers=1, config_text=config, check_view=True)
    return scheduling_there(cluster, here)


@asynccontextmanager
async def scheduler(way: Way, journal: Journal | None = None, config: str = "", **more: Any) -> AsyncGenerator[System]:
    async with started(journal, settings=settings_for(way, config, **more)) as system:
        yield system


async def until(web: Web, kind: str, name: str, what: Callable[[Object], object]) -> Object:
    """The object of that name, once it is so."""
    with anyio.fail_after(PATIENCE_S):
        while True:
            for each in await web.system.listed(kind):
                if each["metadata"]["name"] == name and what(each):
                    return each
            await anyio.sleep(0.02)


def is_bound(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName"))


def condition(obj: Object, type_: str) -> Object:
    """The one of that type, {} for none."""
    found: list[Object] = section(obj, "status").get("conditions") or []
    return {each["type"]: each for each in found}.get(type_) or {}


def phase_is(phase: str) -> Callable[[Object], bool]:
    """Of a Job."""
    return lambda job: section(section(job, "status"), "state").get("phase") == phase


@contextmanager
def ends_with(error: type[Exception]) -> Generator[None]:
    """What is inside ends with it."""
    try:
        yield
    except error:
        return
    raise AssertionError(f"expected it to end with {error.__name__}")
