"""The clients of `bench api`, in a process of their own: `python -m tests.benches.api_clients HOST PORT WHAT COUNT`.

Prints one JSON object: `seconds` from the first request to the last answer, and what else was counted.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
import msgspec

from pumice.proof.bench.wire import HttpConnection, connected

CONNECTIONS: Final = 8
WATCHERS: Final = 100
FEW: Final = 100
"""So many different pods are asked for."""
PODS: Final = "/api/v1/namespaces/bench/pods"
MAPS: Final = "/api/v1/namespaces/bench/configmaps"
UNSCHEDULED: Final = "nobody"
"""The scheduler of the pods that are only stored."""

Open = Callable[[], Awaitable[HttpConnection]]
Figures = dict[str, float]


def pod(name: str) -> bytes:
    """A pod as `kubectl create` sends it."""
    container = {"name": "main", "image": "nginx:1.27", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}
    metadata = {"name": name, "namespace": "bench", "labels": {"app": "bench"}}
    spec = {"schedulerName": UNSCHEDULED, "containers": [container]}
    return msgspec.json.encode({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def config_map(name: str) -> bytes:
    """A small ConfigMap."""
    metadata = {"name": name, "namespace": "bench"}
    return msgspec.json.encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": name}})


async def creates(host: str, port: int, count: int) -> Figures:
    """`count` pods, from eight connections."""

    async def create(connection: HttpConnection, number: int) -> None:
        await connection.ask("POST", PODS, pod(f"created-{number:06d}"))

    return {"seconds": await _spread(host, port, count, create)}


async def gets(host: str, port: int, count: int) -> Figures:
    """`count` gets of pods that `creates` made, from eight connections."""

    async def get(connection: HttpConnection, number: int) -> None:
        await connection.ask("GET", f"{PODS}/created-{number % FEW:06d}")

    return {"seconds": await _spread(host, port, count, get)}


async def watches(host: str, port: int, count: int) -> Figures:
    """`count` ConfigMaps are created while a hundred clients watch; ends when each has seen all."""
    sizes: list[int] = []
    created = 0.0

    async def watch(connection: HttpConnection) -> None:
        sizes.append(await connection.events(f"{MAPS}?watch=true&resourceVersion={revision}", count))

    async def create(connection: HttpConnection, number: int) -> None:
        await connection.ask("POST", MAPS, config_map(f"watched-{number:06d}"))

    async with connected(host, port) as first:
        listed = msgspec.json.decode(await first.ask("GET", f"{MAPS}?limit=1"))
        revision = listed["metadata"]["resourceVersion"]
    started = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(WATCHERS):
            tasks.start_soon(_with, host, port, watch)
        created = await _spread(host, port, count, create)
    return {"seconds": time.perf_counter() - started, "created_seconds": created, "bytes": sum(sizes)}


async def lists(host: str, port: int, count: int) -> Figures:
    """`count` lists of all pods, one after the other."""
    size = 0
    async with connected(host, port) as connection:
        started = time.perf_counter()
        for _ in range(count):
            async for part in connection.parts("GET", "/api/v1/pods"):
                size += len(part)
        return {"seconds": time.perf_counter() - started, "bytes": size}


async def _spread(host: str, port: int, count: int, ask: Callable[[HttpConnection, int], Awaitable[None]]) -> float:
    """Seconds that `count` requests take from all connections; each takes the next number when it is free."""
    numbers = iter(range(count))

    async def work(connection: HttpConnection) -> None:
        for number in numbers:
            await ask(connection, number)

    started = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(CONNECTIONS):
            tasks.start_soon(_with, host, port, work)
    return time.perf_counter() - started


async def _with(host: str, port: int, work: Callable[[HttpConnection], Awaitable[None]]) -> None:
    async with connected(host, port) as connection:
        await work(connection)


WHAT: Final[dict[str, Callable[[str, int, int], Awaitable[Figures]]]] = {
    "creates": creates,
    "gets": gets,
    "watches": watches,
    "lists": lists,
}


def main(arguments: list[str]) -> None:
    """Host, port, what, how many."""
    host, port, what, count = arguments
    figures = anyio.run(functools.partial(WHAT[what], host, int(port), int(count)))
    sys.stdout.write(msgspec.json.encode(figures).decode() + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
