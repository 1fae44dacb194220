# SPDX-License-Identifier: Apache-2.0
"""`serial`: creates over HTTP by a client that waits for each answer, and by sixteen, each on a connection of its own.

The whole system runs in this process, its journal on disk; the clients run in another.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import anyio
import msgspec

from pumice.actors.gateway.settings import GatewaySettings, listen
from pumice.actors.runtime.clock import RealClock
from pumice.actors.system.settings import SystemSettings
from pumice.actors.system.system import System
from pumice.proof.bench import cluster
from pumice.proof.bench.figures import Advance, Parameters, Samples, settled
from pumice.proof.bench.wire import connected
from pumice.storage.sqlite import SqliteJournal

DEFAULTS: Final = Parameters(pods=800, backend="asyncio")
CLIENTS: Final = ((1, 0), (16, 0), (16, 200))
"""Clients that create, and watches of all pods that are open meanwhile."""
ENDLESS: Final = 1 << 30
HOST: Final = "127.0.0.1"
PODS: Final = f"/api/v1/namespaces/{cluster.NAMESPACE}/pods"
NODES: Final = 20


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure creates; `pods` are created in each run. For K clients: `creates_per_s_K`, and `create_cpu_s_K`, the
    process's seconds of processor for one; the same while W watches of all pods are open: `…_K_watched_by_W`.
    """
    for _ in range(parameters.runs):
        with tempfile.TemporaryDirectory(prefix="pumice-bench-") as folder:
            anyio.run(_run, parameters, samples, Path(folder) / "bench.db", backend=parameters.backend)
        advance(1)


async def _run(parameters: Parameters, samples: Samples, db: Path) -> None:
    with listen(HOST, 0) as listener:
        settings = SystemSettings(config_text=cluster.STOCK, gateway=GatewaySettings(listener))
        port: int = listener.getsockname()[1]
        async with await SqliteJournal.open(db) as journal, System(settings, journal, RealClock()).running() as system:
            await system.submit([*cluster.queues(), *cluster.nodes(NODES)])
            await system.until_idle()
            with settled():
                for clients, watches in CLIENTS:
                    await _create(port, clients, watches, parameters.pods, samples)
                    await system.until_idle()


async def _create(port: int, clients: int, watches: int, pods: int, samples: Samples) -> None:
    command = [sys.executable, "-m", "pumice.proof.bench.serial", *map(str, (port, clients, watches, pods))]
    name = f"{clients}_watched_by_{watches}" if watches else str(clients)
    started = time.process_time()
    done = await anyio.run_process(command, stderr=None)
    samples.add(f"create_cpu_s_{name}", (time.process_time() - started) / pods, "s")
    samples.add(f"creates_per_s_{name}", pods / float(done.stdout), "creates/s")


# --- The clients


def body(name: str) -> bytes:
    """Return a pod as `kubectl create` sends it, of a scheduler that does not exist: it is only stored, with a
    condition that says so.
    """
    container = {"name": "main", "image": "nginx:1.27", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}
    metadata = {"name": name, "namespace": cluster.NAMESPACE, "labels": {"app": "bench"}}
    spec = {"schedulerName": "none", "containers": [container]}
    return msgspec.json.encode({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


async def create(port: int, clients: int, watches: int, pods: int) -> float:
    """Return the seconds in which so many clients create the pods; each takes the next one after its answer."""
    numbers = iter(range(pods))
    opened, ready, took_s = list[None](), anyio.Event(), 0.0

    async def client() -> None:
        async with connected(HOST, port) as connection:
            for number in numbers:
                await connection.ask("POST", PODS, body(f"of-{clients}-{watches}-{number:06d}"))

    async def watch() -> None:
        async with connected(HOST, port) as connection:
            opened.append(None)
            if len(opened) == watches:
                ready.set()
            await connection.events(f"{PODS}?watch=true&resourceVersion={newest}", ENDLESS)

    async with connected(HOST, port) as first:
        newest = msgspec.json.decode(await first.ask("GET", f"{PODS}?limit=1"))["metadata"]["resourceVersion"]
    async with anyio.create_task_group() as watching:
        for _ in range(watches):
            watching.start_soon(watch)
        if watches:
            await ready.wait()
        started = time.perf_counter()
        async with anyio.create_task_group() as tasks:
            for _ in range(clients):
                tasks.start_soon(client)
        took_s = time.perf_counter() - started
        watching.cancel_scope.cancel()
    return took_s


if __name__ == "__main__":
    port, clients, watches, pods = map(int, sys.argv[1:5])
    sys.stdout.write(f"{anyio.run(create, port, clients, watches, pods)}\n")
