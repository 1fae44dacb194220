# SPDX-License-Identifier: Apache-2.0
"""The files of a journal: its segments and the file that is written."""

from __future__ import annotations

from pathlib import Path

import msgspec

from pumice.core.messages.events import CycleRecord
from pumice.results import Result
from pumice.storage.errors import OpenError
from pumice.storage.journal import CYCLE, Journal
from pumice.storage.records import read_as
from pumice.storage.sqlite import SqliteJournal
from pumice.storage.sqlite.chained import joined, segments_of


class JournalPart(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a journal: records `first` to `last`, cycles (0: none), its bytes, and when its first and last record
    were written (seconds since the epoch, 0.0 without one). `joined`: it is read together with the newest file.
    """

    file: str
    first: int
    last: int
    first_cycle: int
    last_cycle: int
    bytes: int
    began: float
    ended: float
    joined: bool


class JournalParts(Result, kw_only=True, tag="journal/1"):
    """The files of a journal, oldest first; whether all are `joined`."""

    parts: list[JournalPart]
    joined: bool


async def parts_of(journal: Path) -> list[JournalPart]:
    """Return the files of a journal, oldest first. Raises OpenError."""
    segments = segments_of(journal)
    async with await SqliteJournal.open(journal, read_only=True) as newest:
        together = joined(segments, (await newest.head()).cut)
        after = together[-1].last if together else (await newest.head()).cut
        last = await _part(journal, newest, after, is_joined=True)
    found: list[JournalPart] = []
    for segment in segments:
        try:
            async with await SqliteJournal.open(segment.path, read_only=True) as archived:
                found.append(await _part(segment.path, archived, segment.first - 1, is_joined=segment in together))
        except (OpenError, FileNotFoundError):
            if segment.path.exists():
                raise
            # Deleted or moved away since it was listed.
    return [*found, last]


def _bytes(file: Path) -> int:
    return file.stat().st_size


async def _part(file: Path, journal: Journal, after: int, *, is_joined: bool) -> JournalPart:
    head = await journal.head()
    first, last = await journal.read(after, limit=1), await journal.read(head.sequence - 1, limit=1)
    cycle, newest = await journal.read(after, (CYCLE,), 1), await journal.last(CYCLE)
    return JournalPart(
        file=str(file),
        first=after + 1,
        last=head.sequence,
        first_cycle=read_as(cycle[0], CycleRecord).cycle if cycle else 0,
        last_cycle=read_as(newest, CycleRecord).cycle if newest is not None and cycle else 0,
        bytes=_bytes(file),
        began=first[0].at if first else 0.0,
        ended=last[0].at if last else 0.0,
        joined=is_joined,
    )
