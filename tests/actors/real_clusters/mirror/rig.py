"""A cluster of ours, served over HTTP, and a mirror of it: two systems, of which one only reads the other."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx

from pumice.actors.real_clusters.mirror.settings import MirrorSettings
from pumice.actors.system.settings import SystemSettings, mirrored
from pumice.actors.system.system import System
from pumice.config.kubeconfig import ClusterAccess
from pumice.core.messages.commands import Poke
from pumice.core.messages.decisions import Bind, Decision, Evict
from pumice.core.objects.metadata import Object
from pumice.storage.history import CycleReader, RecordedCycle
from pumice.storage.journal import Journal
from tests.actors.gateway.rig import Web, serving
from tests.actors.rig import started

CLUSTER = SystemSettings(schedule_period_s=0.02, bind_workers=1)
PATIENCE_S = 20.0
OWN = ("resourceVersion", "managedFields")


class ReadingOnly(httpx.AsyncBaseTransport):
    """The way to a server, which counts what would write there, and refuses it. `web` may be replaced."""

    def __init__(self) -> None:
        self.reads: list[str] = []
        self.writes: list[str] = []
        self.port = 1
        self._inner = httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.method != "GET":
            self.writes.append(f"{request.method} {request.url.path}")
            return httpx.Response(403, json={"message": "nobody writes here"})
        self.reads.append(request.url.path)
        request.url = request.url.copy_with(port=self.port)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        """More than one mirror goes this way, one after the other."""

    async def close(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def way_to(web: Web) -> AsyncGenerator[ReadingOnly]:
    """Nothing has been written that way when it ends."""
    way = ReadingOnly()
    way.port = web.settings.address[1]
    try:
        yield way
    finally:
        await way.close()
    assert way.reads
    assert way.writes == []


@asynccontextmanager
async def cluster(settings: SystemSettings = CLUSTER, **gateway: Any) -> AsyncGenerator[Web]:
    async with serving(settings=settings, grace_s=0.1, **gateway) as web:
        yield web


def mirror_settings(way: ReadingOnly, **more: Any) -> SystemSettings:
    access = ClusterAccess("http://127.0.0.1")
    return mirrored(
        MirrorSettings(access, period_s=0.02, poll_s=0.05, retry_s=0.05, transport=way, **more), SystemSettings()
    )


@asynccontextmanager
async def mirror(way: ReadingOnly, journal: Journal | None = None, **more: Any) -> AsyncGenerator[System]:
    async with started(journal, settings=mirror_settings(way, **more)) as system:
        yield system


async def same(here: System, there: System, *kinds: str) -> None:
    """Until both have the same objects of these kinds."""
    with anyio.move_on_after(PATIENCE_S) as scope:
        while await shown(here, kinds) != await shown(there, kinds):  # noqa: ASYNC110
            await anyio.sleep(0.02)
    if scope.cancelled_caught:
        ours, theirs = await shown(here, kinds), await shown(there, kinds)
        pairs = [(ours.get(name), theirs.get(name)) for name in sorted(ours.keys() | theirs.keys())]
        raise AssertionError([each for each in pairs if each[0] != each[1]])
    await here.switchboard.mailboxes["mirror"].ask(Poke())


async def shown(system: System, kinds: tuple[str, ...]) -> dict[str, Any]:
    """What of an object does not differ from cluster to cluster."""
    found: dict[str, Any] = {}
    for kind in kinds:
        for obj in await system.listed(kind):
            meta = {key: value for key, value in obj["metadata"].items() if key not in OWN}
            found[f"{kind} {meta.get('namespace')}/{meta['name']}"] = {**obj, "metadata": meta}
    return found


async def cycles_of(journal: Journal) -> list[RecordedCycle]:
    """Every cycle of a journal."""
    reader, found = CycleReader(), list[RecordedCycle]()
    for stored in await journal.read(0, limit=100_000):
        cycle = reader.follow(stored)
        if cycle is not None:
            found.append(cycle)
    return found


async def decided(journal: Journal) -> list[Decision]:
    return [each for cycle in await cycles_of(journal) for each in cycle.decisions]


def names(decisions: list[Decision], kind: type[Bind | Evict]) -> list[str]:
    return sorted(each.name for each in decisions if isinstance(each, kind))


def config_map(text: str) -> Object:
    """The ConfigMap from which the cluster's scheduler takes its configuration."""
    meta = {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"volcano-scheduler.conf": text}}
