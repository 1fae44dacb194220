"""`api`: the HTTP gateway under load: creates and gets a second, a hundred watchers, a list of every pod.

The whole system runs in this process, its journal on disk; the clients run in another. Nobody schedules the pods.
"""

from __future__ import annotations

import socket
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec

from pumice.actors.gateway.settings import GatewaySettings, listen
from pumice.actors.runtime.clock import RealClock
from pumice.actors.system.settings import SystemSettings
from pumice.actors.system.system import System
from pumice.core.messages.replies import Refused
from pumice.proof.bench.figures import Advance, Parameters, Samples, peak_rss_bytes, settled
from pumice.proof.bench.pauses import Pauses, pauses
from pumice.storage.sqlite import SqliteJournal
from tests.benches.api_clients import UNSCHEDULED, WATCHERS
from tests.kit.source import ROOT

DEFAULTS: Final = Parameters(pods=50_000, runs=1, backend="asyncio")
CREATES: Final = 4_000
GETS: Final = 8_000
EVENTS: Final = 10_000
LISTS: Final = 3
BATCH: Final = 500
HOST: Final = "127.0.0.1"


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """`pods` is how many are there when they are listed."""
    for _ in range(parameters.runs):
        with tempfile.TemporaryDirectory(prefix="pumice-bench-") as folder:
            anyio.run(_run, parameters, samples, Path(folder) / "bench.db", backend=parameters.backend)
        advance(1)


async def _run(parameters: Parameters, samples: Samples, db: Path) -> None:
    with listen(HOST, 0) as listener:
        await _serve(listener, parameters, samples, db)


async def _serve(listener: socket.socket, parameters: Parameters, samples: Samples, db: Path) -> None:
    settings = SystemSettings(gateway=GatewaySettings(listener), scheduler=False)
    port: int = listener.getsockname()[1]
    async with await SqliteJournal.open(db) as journal, System(settings, journal, RealClock()).running() as system:
        await _submit(system, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}}])
        await _requests(port, samples)
        await _watches(port, samples)
        await _lists(system, port, parameters.pods, samples)


async def _requests(port: int, samples: Samples) -> None:
    with settled():
        for what, count in (("creates", CREATES), ("gets", GETS)):
            figures, stood = await _clients(port, what, count)
            samples.add(f"{what}_per_s", count / figures["seconds"], "requests/s")
            _pauses(samples, what, stood)


async def _watches(port: int, samples: Samples) -> None:
    before = peak_rss_bytes()
    figures, stood = await _clients(port, "watches", EVENTS)
    samples.add("watch_events_per_s", EVENTS * WATCHERS / figures["seconds"], "events/s")
    samples.add("watch_bytes", figures["bytes"], "bytes")
    samples.add("watch_rss_growth", peak_rss_bytes() - before, "bytes")
    _pauses(samples, "watch", stood)


async def _lists(system: System, port: int, count: int, samples: Samples) -> None:
    await _submit(system, [_stored(number) for number in range(count - CREATES)])
    with settled():
        figures, stood = await _clients(port, "lists", LISTS)
    samples.add("list_s", figures["seconds"] / LISTS, "s")
    samples.add("list_bytes", figures["bytes"] / LISTS, "bytes")
    _pauses(samples, "list", stood)


def _pauses(samples: Samples, what: str, stood: Pauses) -> None:
    samples.add(f"{what}_pause_s", stood.longest_s, "s")
    samples.add(f"{what}_pause_cpu_s", stood.longest_cpu_s, "s")


async def _clients(port: int, what: str, count: int) -> tuple[dict[str, float], Pauses]:
    """What the clients say, and how long the loop stood still meanwhile."""
    command = [sys.executable, "-m", "tests.benches.api_clients", HOST, str(port), what, str(count)]
    async with pauses() as stood:
        done = await anyio.run_process(command, stderr=None, cwd=ROOT)
    return msgspec.json.decode(done.stdout, type=dict[str, float]), stood


async def _submit(system: System, objects: list[dict[str, Any]]) -> None:
    for first in range(0, len(objects), BATCH):
        for answer in await system.submit(objects[first : first + BATCH]):
            if isinstance(answer, Refused):
                raise RuntimeError(answer.message)


def _stored(number: int) -> dict[str, Any]:
    container = {"name": "main", "image": "nginx:1.27", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"stored-{number:06d}", "namespace": "bench", "labels": {"app": "bench"}},
        "spec": {"schedulerName": UNSCHEDULED, "containers": [container]},
    }
