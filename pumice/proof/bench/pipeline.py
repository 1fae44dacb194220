# SPDX-License-Identifier: Apache-2.0
"""`pipeline`: end to end through every actor: objects in, decisions, journal, binds, status back, on the real clock."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Final

import anyio

from pumice.actors.runtime.clock import RealClock
from pumice.actors.system.settings import SystemSettings
from pumice.actors.system.system import System
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object
from pumice.proof.bench import cluster
from pumice.proof.bench.figures import Advance, Parameters, Samples, settled
from pumice.storage.sqlite import SqliteJournal

DEFAULTS: Final = Parameters(nodes=5000, pods=50_000, gang=8, backend="asyncio")
BATCH: Final = 500


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure runs: each has its own journal; the clock starts at the first submitted job and stops when all is idle.

    The pods never end, so idle means: every pod that fits is bound, runs, and its status is written.
    """
    for _ in range(parameters.runs):
        with tempfile.TemporaryDirectory(prefix="pumice-bench-") as folder:
            db = Path(folder) / "bench.db"
            anyio.run(_run, parameters, samples, db, backend=parameters.backend)
            samples.add("journal_bytes", db.stat().st_size, "bytes")
        advance(1)


async def _run(parameters: Parameters, samples: Samples, db: Path) -> None:
    settings = SystemSettings(config_text=cluster.STOCK)
    async with await SqliteJournal.open(db) as journal, System(settings, journal, RealClock()).running() as system:
        began = time.process_time()
        await _submit(system, [*cluster.queues(), *cluster.nodes(parameters.nodes)])
        await system.until_idle()
        samples.add("nodes_cpu_s", time.process_time() - began, "s")
        jobs = [_endless(obj) for obj in cluster.pending_jobs(0, parameters.pods, parameters.gang)]
        with settled():
            started, began = time.perf_counter(), time.process_time()
            await _submit(system, jobs)
            samples.add("submit_s", time.perf_counter() - started, "s")
            await system.until_idle()
            seconds, cpu_s = time.perf_counter() - started, time.process_time() - began
        bound = (await system.summary()).pods.bound
        samples.add("total_s", seconds, "s")
        samples.add("bound", bound, "pods")
        samples.add("pods_per_s", bound / seconds, "pods/s")
        samples.add("cpu_s", cpu_s, "s")
        samples.add("pods_per_cpu_s", bound / cpu_s, "pods/s")
        samples.add("cycles", await system.cycles(), "cycles")


async def _submit(system: System, objects: list[Object]) -> None:
    """Submit the objects without keeping accepted ones: their memory would be measured as the system's."""
    objects.reverse()
    while objects:
        batch = [objects.pop() for _ in range(min(BATCH, len(objects)))]
        for answer in await system.submit(batch):
            if isinstance(answer, Refused):
                raise RuntimeError(answer.message)


def _endless(obj: Object) -> Object:
    if obj["kind"] == "Pod":
        obj["metadata"]["annotations"]["pumice.dev/duration"] = "0"
    return obj
