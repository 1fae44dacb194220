"""`journal`: durable records a second, written by one writer in batches, then read back and verified."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Final

import anyio

from core.messages.decisions import Bind
from pumice.bench.figures import Advance, Parameters, Samples
from storage import codec
from storage.group_commit import GroupCommit
from storage.journal import DECISION, Record
from storage.sqlite import SqliteJournal

DEFAULTS: Final = Parameters(pods=100_000, gang=1000)
WRITERS: Final = 64
SHARE: Final = 4
"""Of the records, a fourth is written by single writers."""


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """`pods` is the number of records (one bind each), `gang` how many are appended at a time."""
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
        await journal.append(records[:1])
        samples.add("append_s", time.perf_counter() - started, "s")
        single = records[: parameters.pods // SHARE]
        started = time.perf_counter()
        await _by_many(GroupCommit(journal), single)
        samples.add("single_writers_per_s", len(single) / (time.perf_counter() - started), "records/s")
        started = time.perf_counter()
        report = await journal.check()
        samples.add("checked_per_s", report.records / (time.perf_counter() - started), "records/s")


async def _by_many(commit: GroupCommit, records: list[Record]) -> None:
    """Each writer appends its share one record at a time and waits for it to be on disk."""

    async def write(mine: list[Record]) -> None:
        for record in mine:
            await commit.append([record])

    async with anyio.create_task_group() as tasks:
        for number in range(WRITERS):
            tasks.start_soon(write, records[number::WRITERS])
