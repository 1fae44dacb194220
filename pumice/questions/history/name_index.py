# SPDX-License-Identifier: Apache-2.0
"""Index from names of objects to segments of a journal: a question about one job opens only the segments that name it.

The index lies beside the segments (`names.db`): a hash of each name that a record is about, or part of, and the
segments with such records. Only segments without the name are left out, so a clash of hashes costs a look. Whoever
asks, or makes a segment, adds the segments that it lacks; what cannot be written is looked through instead.
"""

from __future__ import annotations

import sqlite3
from contextlib import asynccontextmanager, closing
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from pumice.questions.history.entries import entry_of
from pumice.storage.errors import DamagedError
from pumice.storage.journal import API, DECISION, FAULT, OUTCOME, SHADOW
from pumice.storage.sqlite import SqliteJournal, open_history
from pumice.storage.sqlite.chained import folder_of, segments_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from pumice.questions.history.entries import NameFilter
    from pumice.storage.journal import Journal
    from pumice.storage.sqlite.chained import Segment

FILE: Final = "names.db"
BATCH: Final = 5_000
NAMING: Final = (API, DECISION, OUTCOME, SHADOW, FAULT)
SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS indexed (first INTEGER PRIMARY KEY, last INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS mention (name INTEGER, first INTEGER, PRIMARY KEY (name, first)) WITHOUT ROWID;
"""
WAIT_S: Final = 20.0
"""As long as another process may need to write what it has found."""


class NameIndex:
    """The index of a journal's segments, as it is now; `wants` tells which segments a reader has to look through."""

    def __init__(self, journal: Path) -> None:
        self._journal, self._file = journal, folder_of(journal) / FILE
        self._known: set[Segment] = set()
        self._found: dict[str, set[int]] = {}

    async def catch_up(self) -> None:
        """Add the segments that it lacks, and drop those that are gone."""
        segments = segments_of(self._journal)
        if not segments:
            return
        try:
            with closing(sqlite3.connect(self._file, timeout=WAIT_S)) as database:
                database.executescript(SCHEMA)
                known = set(database.execute("SELECT first, last FROM indexed"))
                there = {(segment.first, segment.last) for segment in segments}
                with database:
                    for first, _ in known - there:
                        database.execute("DELETE FROM indexed WHERE first = ?", (first,))
                        database.execute("DELETE FROM mention WHERE first = ?", (first,))
                for segment in segments:
                    if (segment.first, segment.last) not in known:
                        names = await names_in(segment)
                        with database:
                            rows = ((_number(name), segment.first) for name in names)
                            database.executemany("INSERT OR IGNORE INTO mention VALUES (?, ?)", rows)
                            database.execute("INSERT OR REPLACE INTO indexed VALUES (?, ?)", segment[:2])
                    self._known.add(segment)
        except (sqlite3.Error, DamagedError):
            # A folder that cannot be written, a damaged index or segment: readers look through what is not known.
            return

    def wants(self, segment: Segment, named: NameFilter) -> bool:
        """Return whether the segment may have records that name one of the objects."""
        if segment not in self._known:
            return True
        return any(segment.first in self._segments(name) for name in named.names)

    def _segments(self, name: str) -> set[int]:
        found = self._found.get(name)
        if found is None:
            with closing(sqlite3.connect(self._file, timeout=WAIT_S)) as database:
                rows = database.execute("SELECT first FROM mention WHERE name = ?", (_number(name),))
                found = self._found[name] = {first for (first,) in rows}
        return found


@asynccontextmanager
async def open_naming(journal: Path, named: NameFilter) -> AsyncGenerator[Journal]:
    """Yield the journal, read-only, without segments that name none of the objects; these may become more meanwhile.
    Raises OpenError.
    """
    index = NameIndex(journal)
    await index.catch_up()
    async with open_history(journal, wanted=lambda segment: index.wants(segment, named)) as opened:
        yield opened


async def names_in(segment: Segment) -> set[str]:
    """Return the bare names of all objects that records of the segment are about, or part of. Raises DamagedError."""
    found: set[str] = set()
    async with await SqliteJournal.open(segment.path, read_only=True) as journal:
        after = segment.first - 1
        while batch := await journal.read(after, NAMING, BATCH):
            for stored in batch:
                entry = entry_of(stored)
                found.update(name.rpartition("/")[2] for names in (entry.about, entry.parts_of) for name in names)
            after = batch[-1].sequence
    return found


def _number(name: str) -> int:
    """Return 63 bits that stand for the name: SQLite's integers are signed."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest()) >> 1
