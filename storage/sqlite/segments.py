# SPDX-License-Identifier: Apache-2.0
"""Segments: records that have left a journal's file, in files of their own that are never written again.

`FILE.segments/FIRST-LAST.db` has the records of these numbers and, unless it begins with record 1, the checkpoint that
stands for all records before them: it is a journal that can be read alone, copied, and moved away at any time. The
chain of hashes leads from one segment into the next, and into the journal's file.

A segment ends where a checkpoint stands. It gets its name when it is whole and on the disk, and only then the journal
forgets its records: a process that is killed in between finds both, and goes on with the forgetting.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final

from anyio.to_thread import run_sync

from pumice.storage.errors import OpenError
from pumice.storage.journal import Checkpoint
from pumice.storage.retention import Retention, Rotation, cut_point
from pumice.storage.sqlite.backup import becoming, copy_records
from pumice.storage.sqlite.chained import ChainedJournal, Segment, folder_of, joined, segments_of
from pumice.storage.sqlite.journal import SqliteJournal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from pumice.storage.journal import Head

BATCH: Final = 5_000


class Archive:
    """The segments of a journal that this process writes; `journal` must have been opened with `archived`. `made` gets
    the journal's path after each new segment.
    """

    def __init__(
        self,
        journal: SqliteJournal,
        path: Path,
        rotation: Rotation,
        made: Callable[[Path], Awaitable[None]] | None = None,
    ) -> None:
        self._journal, self._path, self._rotation, self._made = journal, path.resolve(), rotation, made

    async def rotate(self) -> Segment | None:
        """Move the records before the newest checkpoint but one into a segment, if there are enough. Raises a
        StorageError.
        """
        folder = folder_of(self._path)
        for part in folder.glob(".*.part*"):  # of a process that was killed
            part.unlink(missing_ok=True)
        head, checkpoints = await self._journal.head(), await self._journal.checkpoints()
        begin = await self._begin(head, checkpoints)
        if len(checkpoints) < 2 or begin is None:
            return None
        end = checkpoints[1]
        segment = None
        if await self._is_enough(begin, end):
            segment = Segment(begin + 1, end.sequence, folder / f"{begin + 1:012}-{end.sequence:012}.db")
            folder.mkdir(mode=0o700, exist_ok=True)
            await self._write(segment, head, next((one for one in checkpoints if one.sequence == begin), None))
            begin = end.sequence
        if begin > head.cut:
            await self._journal.forget_checkpoints(begin)
            await self._journal.cut(begin)
        if segment is not None and self._made is not None:
            await self._made(self._path)
        return segment

    async def _begin(self, head: Head, checkpoints: Sequence[Checkpoint]) -> int | None:
        """Return the last record that no new segment needs to hold; None when records before were cut for good and no
        checkpoint stands for them yet.
        """
        there = segments_of(self._path)
        if there and there[-1].last >= head.cut:
            await self._demand_own(there[-1], head)
            return there[-1].last
        if not head.cut:
            return 0
        return min((one.sequence for one in checkpoints if one.sequence >= head.cut), default=None)

    async def _demand_own(self, segment: Segment, head: Head) -> None:
        """Check that the journal goes on from its newest segment. Raises OpenError."""
        ours = head.cut_hash if segment.last == head.cut else await self._hash(segment.last)
        async with await SqliteJournal.open(segment.path, read_only=True) as archived:
            if (await archived.head()).hash != ours:
                raise OpenError(str(segment.path), f"this segment is not one of {self._path}: move it away")

    async def _hash(self, sequence: int) -> bytes:
        records = await self._journal.read(sequence - 1, limit=1) if sequence else ()
        return records[0].hash if records else b""

    async def _is_enough(self, begin: int, end: Checkpoint) -> bool:
        records, seconds = self._rotation.records, self._rotation.seconds
        if end.sequence <= begin:
            return False
        if records is not None and end.sequence - begin >= records:
            return True
        if seconds is None:
            return False
        first = await self._journal.read(begin, limit=1)
        return bool(first) and end.at - first[0].at >= seconds

    async def _write(self, segment: Segment, head: Head, checkpoint: Checkpoint | None) -> None:
        after = segment.first - 1
        hash_ = head.cut_hash if after == head.cut else await self._hash(after)
        with becoming(segment.path) as part:
            async with await SqliteJournal.open(part) as file:
                await copy_records(self._journal, file, after, hash_, segment.last)
                if checkpoint is not None:
                    await file.save_checkpoint(checkpoint)
            await run_sync(_seal, part)

    async def retire(self, retention: Retention, now: float) -> list[Segment]:
        """Delete the oldest segments: those whose records no rule keeps, and those with which the journal has too
        many bytes (its own file counts). Return them.
        """
        segments = joined(segments_of(self._path), (await self._journal.head()).cut)
        async with ChainedJournal(self._journal, segments) as whole:
            point = await cut_point(whole, retention, now)
        total = self._path.stat().st_size + sum(segment.path.stat().st_size for segment in segments)
        gone: list[Segment] = []
        for segment in segments:
            if segment.last > point and (retention.bytes is None or total <= retention.bytes):
                break
            total -= segment.path.stat().st_size
            segment.path.unlink()
            gone.append(segment)
        return gone


class SegmentedJournal(SqliteJournal):
    """A journal file whose older records go into segments."""

    archive: Archive

    @classmethod
    async def open_for(
        cls, path: Path, retention: Retention, made: Callable[[Path], Awaitable[None]] | None = None
    ) -> SqliteJournal:
        """Open the journal at `path` to write, with segments if the retention wants some. Raises OpenError."""
        if retention.rotation is None:
            return await SqliteJournal.open(path)
        journal = await cls.open(path, archived=True)
        journal.archive = Archive(journal, path, retention.rotation, made)
        return journal

    async def trim(self, retention: Retention, now: float) -> None:
        """Move older records into segments, and delete segments that nothing keeps."""
        await self.archive.rotate()
        await self.archive.retire(retention, now)


def _seal(file: Path) -> None:
    """Make it a file that is read without others beside it: no more is written to it."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
