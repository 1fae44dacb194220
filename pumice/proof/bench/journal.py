# SPDX-License-Identifier: Apache-2.0
"""`journal`: durable records a second, by one writer in batches and by the recorder for many, read back, verified."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Final

import anyio

from pumice.actors.journal.recorder import Recorder
from pumice.actors.runtime.actor import Context
from pumice.actors.runtime.clock import RealClock
from pumice.actors.runtime.mailbox import Mailbox
from pumice.actors.system.ports import RecorderPort
from pumice.core.messages.commands import Append, Entry, RecorderCommand
from pumice.core.messages.decisions import Bind
from pumice.core.messages.replies import Appended
from pumice.proof.bench.figures import Advance, Parameters, Samples
from pumice.storage import codec
from pumice.storage.journal import DECISION, Journal, Record
from pumice.storage.sqlite import SqliteJournal

DEFAULTS: Final = Parameters(pods=100_000, gang=1000)
WRITERS: Final = 64
SHARE: Final = 4
"""Of the records, a fourth is written by single writers."""


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure appends. `pods` is the number of records (one bind each), `gang` how many are appended at a time."""
    records = [
        Record(DECISION, codec.encode(Bind("default", f"p{number:06d}", f"u{number}", "n00000", "default/j")))
        for number in range(parameters.pods)
    ]
    for _ in range(parameters.runs):
        with tempfile.TemporaryDirectory(prefix="pumice-bench-") as folder:
            db = Path(folder) / "bench.db"
            anyio.run(_run, parameters, records, samples, db)
            samples.add("bytes_per_record", db.stat().st_size / (len(records) + 1), "bytes")
        advance(1)


async def _run(parameters: Parameters, records: list[Record], samples: Samples, db: Path) -> None:
    async with await SqliteJournal.open(db) as journal:
        started = time.perf_counter()
        for first in range(0, len(records), parameters.gang):
            await journal.append(records[first : first + parameters.gang])
        samples.add("events_per_s", len(records) / (time.perf_counter() - started), "records/s")
        started = time.perf_counter()
        last = await journal.append(records[:1])
        samples.add("append_s", time.perf_counter() - started, "s")
        entries = [Entry(record.kind, record.payload) for record in records[: parameters.pods // SHARE]]
        samples.add("single_writers_per_s", len(entries) / await _by_many(journal, last, entries), "records/s")
        started = time.perf_counter()
        report = await journal.check()
        samples.add("checked_per_s", report.records / (time.perf_counter() - started), "records/s")


async def _by_many(journal: Journal, last: int, entries: list[Entry]) -> float:
    """Return seconds in which the recorder writes them: each writer has it append one at a time, and waits for the
    disk."""
    context = Context(RealClock())
    recorder: RecorderPort = Mailbox("recorder", RecorderCommand, Appended, activity=context.activity)

    async def write(mine: list[Entry]) -> None:
        for entry in mine:
            await recorder.ask(Append((entry,)))

    started = ended = 0.0
    async with anyio.create_task_group() as actors:
        actors.start_soon(Recorder("recorder", recorder, context, journal, last).run)
        started = time.perf_counter()
        async with anyio.create_task_group() as writers:
            for number in range(WRITERS):
                writers.start_soon(write, entries[number::WRITERS])
        ended = time.perf_counter()
        recorder.close()
    return ended - started
