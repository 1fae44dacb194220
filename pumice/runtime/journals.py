# SPDX-License-Identifier: Apache-2.0
"""Journals in files: recognising one, opening it, and writing one from memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
from anyio.to_thread import run_sync

from pumice.config.errors import ConfigError
from pumice.config.input_file import demand_output, open_input
from pumice.config.settings import ProcessSettings
from pumice.core.messages.events import CycleRecord
from pumice.core.quantity import parse_quantity
from pumice.storage.journal import CYCLE, Journal
from pumice.storage.memory import MemoryJournal
from pumice.storage.records import read_as
from pumice.storage.retention import KEEP_ALL, Retention, parse_keep
from pumice.storage.sqlite import SqliteJournal
from pumice.storage.sqlite.backup import copy_records
from pumice.storage.sqlite.migrations import APPLICATION_ID
from pumice.storage.sqlite.segments import SegmentedJournal

SQLITE: Final = b"SQLite format 3\0"
APPLICATION: Final = slice(68, 72)
"""Position of the application's id in a SQLite file."""


def looks_like_journal(path: Path) -> bool:
    """Return whether the file begins as a journal does; the rest may still not be valid."""
    try:
        with open_input(path, noted=False) as file:
            head = file.read(APPLICATION.stop)
    except OSError:
        return False
    # Zeros too: a journal whose making was cut off has no id yet.
    return head.startswith(SQLITE) and head[APPLICATION] in (bytes(4), APPLICATION_ID.to_bytes(4, "big"))


def retention_of(settings: ProcessSettings) -> Retention:
    """Return what the settings say of it. Raises ConfigError where they do not fit together."""
    most = None if settings.keep_bytes is None else int(parse_quantity(settings.keep_bytes).value())
    if most is not None and settings.segments is None:
        raise ConfigError("needs --segments: whole segments are deleted for it", path="--keep-bytes")
    return parse_keep(settings.keep, settings.keep_events, settings.segments, most)


async def note_names(path: Path) -> None:
    """Note the names in new records of a journal, in a thread: it takes seconds."""
    from pumice.questions.history.name_index import index_names  # noqa: PLC0415 - only a journal with segments has one

    await run_sync(anyio.run, index_names, path)


@asynccontextmanager
async def file_journal(path: Path, retention: Retention = KEEP_ALL, *, mirror: bool = False) -> AsyncGenerator[Journal]:
    """Yield the journal in a file, made or continued, by a mirror or by a scheduler. Raises OpenError; ConfigError for
    one of the other sort.
    """
    journal = await SegmentedJournal.open_for(path, retention, note_names)
    try:
        await _refuse_other(journal, path, mirror=mirror)
        yield journal
    finally:
        await journal.close()


async def _refuse_other(journal: Journal, path: Path, *, mirror: bool) -> None:
    """Refuse a journal of the other sort: a run would continue a mirror's records, or a mirror a run's, as its own
    past."""
    # The first cycle is enough: since then every opening was checked here.
    for stored in await journal.read(0, (CYCLE,), 1):
        if read_as(stored, CycleRecord).observed is not mirror:
            whose = "was decided here: a mirror" if mirror else "was mirrored from another cluster: a run"
            raise ConfigError(f"what is in it {whose} begins another journal", source=str(path))


def keep(memory: MemoryJournal, path: Path) -> None:
    """Make a file that holds what memory does, from where that begins. Raises OpenError, ConfigError."""
    memory.reopen()
    anyio.run(keep_as, memory, path)


async def keep_as(memory: MemoryJournal, path: Path) -> None:
    """Make that file of a journal that is in use. Raises OpenError, ConfigError."""
    demand_output(path)
    async with await SqliteJournal.open(path) as journal:
        head = await memory.head()
        # The numbers and the chain go on from what memory has forgotten.
        await copy_records(memory, journal, head.cut, head.cut_hash, head.sequence)
        for checkpoint in reversed(await memory.checkpoints()):
            await journal.save_checkpoint(checkpoint)
