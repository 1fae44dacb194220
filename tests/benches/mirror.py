"""`mirror`: a cluster that changes all the time, followed into a journal: how far behind, and how large.

The mirror runs in this process, whose peak memory is its own; the cluster is played in another.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from pumice.actors.real_clusters.mirror.settings import MirrorSettings
from pumice.actors.runtime.clock import RealClock
from pumice.actors.system.settings import SystemSettings, mirrored
from pumice.actors.system.system import System
from pumice.config.kubeconfig import ClusterAccess
from pumice.core.messages.commands import Get
from pumice.core.messages.events import Mutation
from pumice.core.messages.replies import Accepted
from pumice.proof.bench.cluster import NAMESPACE
from pumice.proof.bench.figures import Advance, Parameters, Samples, peak_rss_bytes
from pumice.storage import codec
from pumice.storage.journal import API, Journal
from pumice.storage.sqlite import SqliteJournal
from tests.benches.origin import AT
from tests.kit.source import ROOT

DEFAULTS: Final = Parameters(nodes=5000, pods=50_000, gang=8, runs=1, backend="asyncio")
SHARE: Final = 5
"""So many pods are there for one change that comes; a change a pod at least four times."""
LEAST: Final = 4
LOOK_S: Final = 0.02
BATCH: Final = 5_000


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """First what is there, then changes, 500 a second."""
    for _ in range(parameters.runs):
        with tempfile.TemporaryDirectory(prefix="pumice-bench-") as folder:
            anyio.run(_run, parameters, samples, Path(folder) / "bench.db", backend=parameters.backend)
        advance(1)


async def _run(parameters: Parameters, samples: Samples, db: Path) -> None:
    count = max(parameters.pods // SHARE, LEAST)
    sizes = [str(each) for each in (parameters.nodes, parameters.pods, parameters.gang, count)]
    command = [sys.executable, "-m", "tests.benches.origin", *sizes]
    async with (
        await anyio.open_process(command, stderr=None, cwd=ROOT) as origin,
        await SqliteJournal.open(db) as journal,
    ):
        try:
            await _followed(origin, journal, samples)
        finally:
            origin.kill()
        seconds = samples.values["seconds"][-1]
        samples.add("changes_per_s", count / seconds, "changes/s")
        samples.add("peak_rss", peak_rss_bytes(), "bytes")
        await _lags(journal, samples)


async def _followed(origin: Process, journal: Journal, samples: Samples) -> None:
    assert origin.stdout is not None
    assert origin.stdin is not None
    lines = _lines(TextReceiveStream(origin.stdout))
    access = ClusterAccess(f"http://127.0.0.1:{await anext(lines)}")
    system = System(mirrored(MirrorSettings(access), SystemSettings()), journal, RealClock())
    began = time.perf_counter()
    async with system.running():
        while not await system.cycles():  # noqa: ASYNC110
            await anyio.sleep(LOOK_S)
        samples.add("first_look_s", time.perf_counter() - began, "s")
        await origin.stdin.send(b"go\n")
        done: dict[str, Any] = msgspec.json.decode(await anext(lines))
        while not await _has(system, done["name"], done["at"]):  # noqa: ASYNC110
            await anyio.sleep(LOOK_S)
        samples.add("seconds", done["seconds"], "s")


async def _lines(stream: TextReceiveStream) -> AsyncIterator[str]:
    rest = ""
    async for part in stream:
        *whole, rest = (rest + part).split("\n")
        for line in whole:
            yield line


async def _has(system: System, name: str, at: float) -> bool:
    """Whether the last change has come, be it that the pod is gone."""
    reply = await system.api.ask(Get("Pod", NAMESPACE, name))
    if not isinstance(reply, Accepted):
        return True
    return float(_moment(reply.blob) or 0.0) >= at


def _moment(blob: bytes) -> str | None:
    annotations: dict[str, str] = codec.unpack(blob)["metadata"].get("annotations") or {}
    return annotations.get(AT)


async def _lags(journal: Journal, samples: Samples) -> None:
    """From the moment of a change to that at which it was on disk, of every change."""
    found, after = list[float](), 0
    while batch := await journal.read(after, (API,), BATCH):
        for stored in batch:
            change = codec.decode(stored.payload, Mutation)
            at = _moment(change.blob)
            if at is not None and change.type != "DELETED":  # which shows the pod as it was before
                found.append(stored.at - float(at))
        after = batch[-1].sequence
    found.sort()
    for name, share in (("lag_median_s", 0.5), ("lag_p99_s", 0.99), ("lag_most_s", 1.0)):
        samples.add(name, found[min(int(len(found) * share), len(found) - 1)], "s")
