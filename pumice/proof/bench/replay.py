# SPDX-License-Identifier: Apache-2.0
"""`replay`: a journal as a busy cluster writes it, verified again, and a restart from its newest checkpoint.

The mix: of a hundred records some 70 are changes of the api's truth (a pod comes, is bound, runs, ends; its group), 15
are decisions and 15 their outcomes; the figures `share_…` say it exactly. The journal is made once, by a real run on
virtual time, and copied into a file. A million records are `--pods 152000`.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

import anyio

from pumice.actors.runtime.clock import VirtualClock
from pumice.actors.system.settings import SystemSettings
from pumice.actors.system.system import System
from pumice.cluster.api.store import Store
from pumice.collecting import rarely
from pumice.core.objects.metadata import Object
from pumice.executors import cores
from pumice.proof.bench import cluster
from pumice.proof.bench.figures import Advance, Parameters, Samples, settled
from pumice.questions.replay.parallel import CycleRange, shares, verify_shares
from pumice.questions.replay.verify import ReplayReport, verify
from pumice.runtime.journals import keep
from pumice.runtime.leaping import leaping
from pumice.storage.checkpoint import CheckpointState
from pumice.storage.memory import MemoryJournal
from pumice.storage.recovery import recover
from pumice.storage.sqlite import SqliteJournal

DEFAULTS: Final = Parameters(nodes=500, pods=10_000, gang=8, runs=3)
WAVE: Final = 4_000
"""Pods that are handed in at a time; the next ones come when these have ended."""
TAIL: Final = 20_000
"""Records after the newest checkpoint."""
PIECE: Final = 1_000
DURATION: Final = "3s"


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure a replay. `pods` run in waves on `nodes`; each makes about seven records. `events_per_s` is as `pumice
    replay` does it, by one process a core where the journal is large; `events_per_s_alone` is one process.
    """
    with tempfile.TemporaryDirectory(prefix="pumice-bench-") as folder:
        db = Path(folder) / "bench.db"
        settings, options = leaping(SystemSettings(config_text=cluster.STOCK, checkpoint_every=0))
        memory: MemoryJournal = anyio.run(_live, parameters, settings, backend="trio", backend_options=options)
        keep(memory, db)
        anyio.run(_checkpoint, memory, db)
        del memory
        kinds = anyio.run(_mix, db)
        samples.add("bytes_per_event", db.stat().st_size / max(kinds.total(), 1), "bytes")
        for kind, count in kinds.items():
            samples.add(f"share_{kind}", 100 * count / kinds.total(), "%")
        for _ in range(parameters.runs):
            with settled():
                with rarely():
                    anyio.run(_alone, db, samples)
                    anyio.run(_restart, db, samples)
                _together(db, samples)
            advance(1)


async def _live(parameters: Parameters, settings: SystemSettings) -> MemoryJournal:
    journal = MemoryJournal()
    async with System(settings, journal, VirtualClock()).running() as system:
        await _submit(system, [*cluster.queues(), *cluster.nodes(parameters.nodes)])
        wave: list[Object] = []
        for obj in cluster.pending_jobs(0, parameters.pods, parameters.gang):
            if obj["kind"] == "Pod":
                obj["metadata"]["annotations"]["pumice.dev/duration"] = DURATION
            elif len(wave) >= WAVE:
                await _submit(system, wave)
                wave = []
            wave.append(obj)
        await _submit(system, wave)
    return journal


async def _submit(system: System, objects: list[Object]) -> None:
    for first in range(0, len(objects), PIECE):
        await system.submit(objects[first : first + PIECE])
    await system.until_idle()


async def _checkpoint(memory: MemoryJournal, db: Path) -> None:
    """Write a checkpoint where the checkpointer would have written one."""
    memory.reopen()
    state, last = CheckpointState(), (await memory.head()).sequence - TAIL
    while state.sequence < last or not state.between_cycles:
        records = await memory.read(state.sequence, limit=PIECE)
        for record in records:
            state.note(record)
        if not records:
            break
    async with await SqliteJournal.open(db) as journal:
        await journal.save_checkpoint(state.checkpoint(0.0))


async def _mix(db: Path) -> Counter[str]:
    """Return records by kind."""
    kinds: Counter[str] = Counter()
    after = 0
    async with await SqliteJournal.open(db, read_only=True) as journal:
        while batch := await journal.read(after):
            kinds.update(stored.kind for stored in batch)
            after = batch[-1].sequence
    return kinds


async def _alone(db: Path, samples: Samples) -> None:
    async with await SqliteJournal.open(db, read_only=True) as journal:
        started = time.perf_counter()
        report = await verify(journal)
        seconds = time.perf_counter() - started
    _demand(report)
    samples.add("events_per_s_alone", report.events / seconds, "records/s")
    samples.add("events", report.events, "records")
    samples.add("cycles", report.cycles, "cycles")


def _together(db: Path, samples: Samples) -> None:
    started = time.perf_counter()
    parts = anyio.run(_shares, db)
    if len(parts) > 1:
        report = verify_shares(db, parts, None, lambda events: None)
    else:
        with rarely():
            report = anyio.run(_verify, db)
    seconds = time.perf_counter() - started
    _demand(report)
    samples.add("events_per_s", report.events / seconds, "records/s")
    samples.add("processes", len(parts), "processes")


async def _shares(db: Path) -> list[CycleRange]:
    async with await SqliteJournal.open(db, read_only=True) as journal:
        return await shares(journal, cores())


async def _verify(db: Path) -> ReplayReport:
    async with await SqliteJournal.open(db, read_only=True) as journal:
        return await verify(journal)


def _demand(report: ReplayReport) -> None:
    if not report.identical:
        raise RuntimeError(f"the replay differs: {report.first_difference}")


async def _restart(db: Path, samples: Samples) -> None:
    started = time.perf_counter()
    async with await SqliteJournal.open(db) as journal:
        store = Store()
        await recover(journal, store.restore, store.load)
        samples.add("restart_s", time.perf_counter() - started, "s")
