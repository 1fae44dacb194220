"""The journal of a run: the file itself, or on virtual time a copy in memory that is written back at the end.

Virtual time jumps whenever every task waits, and a wait for the disk looks like any other; so nothing may wait for a
thread while that clock is running.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio

from storage.journal import Journal, Record, Stored
from storage.memory import MemoryJournal
from storage.retention import Retention, cut_point
from storage.sqlite import SqliteJournal
from storage.sqlite.migrations import APPLICATION_ID

BATCH = 10_000
SQLITE: Final = b"SQLite format 3\0"
APPLICATION: Final = slice(68, 72)
"""Where in a SQLite file the id of its application stands."""


def looks_like_journal(path: Path) -> bool:
    """Whether the file begins as a journal does; it may yet turn out to be none."""
    try:
        with path.open("rb") as file:
            head = file.read(APPLICATION.stop)
    except OSError:
        return False
    return head.startswith(SQLITE) and head[APPLICATION] in (bytes(4), APPLICATION_ID.to_bytes(4, "big"))


@asynccontextmanager
async def file_journal(path: Path) -> AsyncGenerator[Journal]:
    """The journal in a file, made or continued. Raises OpenError."""
    journal = await SqliteJournal.open(path)
    try:
        yield journal
    finally:
        await journal.close()


def read_into_memory(path: Path) -> tuple[MemoryJournal, float]:
    """A copy of what the file holds (nothing when there is none yet), and the time of its last record (0.0: none).

    The file is opened for writing to find out now rather than at the end that it cannot be. Raises OpenError.
    """
    return anyio.run(_read, path)


async def _read(path: Path) -> tuple[MemoryJournal, float]:
    async with file_journal(path) as journal:
        memory, after, last = MemoryJournal(await journal.head(), await journal.checkpoints()), 0, 0.0
        while batch := await journal.read(after, limit=BATCH):
            await memory.append([_record(stored) for stored in batch])
            after, last = batch[-1].sequence, batch[-1].at
        return memory, last


def write_back(memory: MemoryJournal, path: Path, retention: Retention | None = None) -> None:
    """Append to the file what memory holds beyond it, checkpoints too; then cut what nobody keeps."""
    anyio.run(_write, memory, path, retention or Retention())


async def _write(memory: MemoryJournal, path: Path, retention: Retention) -> None:
    memory.reopen()
    async with file_journal(path) as journal:
        last = await _copy(memory, journal, (await journal.head()).sequence)
        through = await cut_point(journal, retention, last)
        if through:
            await journal.cut(through)


def keep(memory: MemoryJournal, path: Path) -> None:
    """Make a file that holds what memory does, from where that begins. Raises OpenError."""
    anyio.run(_keep, memory, path)


async def _keep(memory: MemoryJournal, path: Path) -> None:
    memory.reopen()
    async with await SqliteJournal.open(path) as journal:
        head = await memory.head()
        await journal.begin_after(head.cut, head.cut_hash)
        await _copy(memory, journal, head.cut)


async def _copy(memory: MemoryJournal, journal: Journal, after: int) -> float:
    """All records above that one, and the checkpoints; the time of the last record (0.0: none)."""
    last = 0.0
    while batch := await memory.read(after, limit=BATCH):
        await journal.append([_record(stored) for stored in batch])
        after, last = batch[-1].sequence, batch[-1].at
    for checkpoint in reversed(await memory.checkpoints()):
        await journal.save_checkpoint(checkpoint)
    return last


def _record(stored: Stored) -> Record:
    return Record(stored.kind, stored.payload, stored.cause, stored.at)
