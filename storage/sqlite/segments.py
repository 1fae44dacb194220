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
from pumice.storage.journal import CHECKPOINT, Checkpoint
from pumice.storage.records import is_vouched
from pumice.storage.retention import Retention, Rotation, cut_point, too_near
from pumice.storage.sqlite.backup import becoming, copy_records
from pumice.storage.sqlite.chained import ChainedJournal, Segment, folder_of, joined, segments_of
from pumice.storage.sqlite.journal import SqliteJournal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from pumice.storage.journal import Head

BATCH: Final = 5_000


class Archive:
    """The segments of a journal that this process writes; `journal` must have been opened with `archived`."""

    def __init__(self, journal: SqliteJournal, path: Path, rotation: Rotation) -> None:
        self._journal, self.path, self._rotation = journal, path.resolve(), rotation

    async def rotate(self) -> Segment | None:
        """Move the records before the newest checkpoint but one into a segment, if there are enough. Raises a
        StorageError.
        """
        folder = folder_of(self.path)
        for part in folder.glob(".*.part*"):  # of a process that was killed
            part.unlink(missing_ok=True)
        head, checkpoints = await self._journal.head(), await self._journal.checkpoints()
        begin = await self._begin(head, checkpoints)
        if len(checkpoints) < 2 or begin is None:
            return None
        end = checkpoints[1]
        segment = None
        if await self._is_enough(begin, end, checkpoints):
            segment = Segment(begin + 1, end.sequence, folder / f"{begin + 1:012}-{end.sequence:012}.db")
            folder.mkdir(mode=0o700, exist_ok=True)
            within = [one for one in reversed(checkpoints) if begin <= one.sequence < end.sequence]
            within = [one for one in within if await self._is_vouched(one, end.sequence)]
            near = too_near([(begin, 0), *((one.sequence, len(one.content)) for one in within if one.sequence > begin)])
            await self._write(segment, head, [one for one in within if one.sequence not in near])
            begin = end.sequence
        if begin > head.cut:
            await self._journal.forget_checkpoints(begin)
            await self._journal.cut(begin)
        return segment

    async def _begin(self, head: Head, checkpoints: Sequence[Checkpoint]) -> int | None:
        """Return the last record that no new segment needs to hold; None when records before were cut for good and no
        checkpoint stands for them yet.
        """
        there = segments_of(self.path)
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
                raise OpenError(str(segment.path), f"this segment is not one of {self.path}: move it away")

    async def _hash(self, sequence: int) -> bytes:
        records = await self._journal.read(sequence - 1, limit=1) if sequence else ()
        return records[0].hash if records else b""

    async def _is_enough(self, begin: int, end: Checkpoint, checkpoints: Sequence[Checkpoint]) -> bool:
        records, seconds, size = self._rotation.records, self._rotation.seconds, self._rotation.bytes
        first = next((one for one in checkpoints if one.sequence == begin), None)
        if end.sequence <= begin or (first is not None and not await self._is_vouched(first, end.sequence)):
            return False
        if records is not None and end.sequence - begin >= records:
            return True
        if size is not None and await self._journal.weigh(begin, end.sequence) >= size:
            return True
        if seconds is None:
            return False
        if first is not None:
            return end.at - first.at >= seconds
        oldest = await self._journal.read(begin, limit=1)
        return bool(oldest) and end.at - oldest[0].at >= seconds

    async def _is_vouched(self, checkpoint: Checkpoint, through: int) -> bool:
        """Return whether a record up to that one vouches for the checkpoint: a segment proves its own. The record
        comes late where a checkpoint stands for fewer records than there are.
        """
        found = await self._journal.read(max(checkpoint.sequence - 1, 0), (CHECKPOINT,), BATCH)
        return is_vouched(checkpoint, [one for one in found if one.sequence <= through])

    async def _write(self, segment: Segment, head: Head, checkpoints: Sequence[Checkpoint]) -> None:
        after = segment.first - 1
        hash_ = head.cut_hash if after == head.cut else await self._hash(after)
        with becoming(segment.path) as part:
            async with await SqliteJournal.open(part, archived=True) as file:
                await copy_records(self._journal, file, after, hash_, segment.last)
                for checkpoint in checkpoints:
                    await file.save_checkpoint(checkpoint)
            await run_sync(_seal, part)

    async def retire(self, retention: Retention, now: float) -> list[Segment]:
        """Delete the oldest segments: those whose records no rule keeps, and those with which the journal has too
        many bytes (its own file counts). Return them.
        """
        segments = joined(segments_of(self.path), (await self._journal.head()).cut)
        async with ChainedJournal(self._journal, segments) as whole:
            point = await cut_point(whole, retention, now)
        total = self.path.stat().st_size + sum(segment.path.stat().st_size for segment in segments)
        gone: list[Segment] = []
        for segment in segments:
            if segment.last > point and (retention.bytes is None or total <= retention.bytes):
                break
            total -= segment.path.stat().st_size
            segment.path.unlink()
            gone.append(segment)
        return gone


class SegmentedJournal(SqliteJournal):
    """A journal file whose older records go into segments. `noted` gets the path after each trim: an index of both
    lies beside the segments.
    """

    archive: Archive
    noted: Callable[[Path], Awaitable[None]] | None

    @classmethod
    async def open_for(
        cls, path: Path, retention: Retention, noted: Callable[[Path], Awaitable[None]] | None = None
    ) -> SqliteJournal:
        """Open the journal at `path` to write, with segments if the retention wants some. Raises OpenError."""
        if retention.rotation is None:
            return await SqliteJournal.open(path)
        journal = await cls.open(path, archived=True)
        folder_of(path).mkdir(mode=0o700, exist_ok=True)
        journal.archive, journal.noted = Archive(journal, path, retention.rotation), noted
        return journal

    async def trim(self, retention: Retention, now: float) -> None:
        """Move older records into segments, and delete segments that nothing keeps."""
        await self.archive.rotate()
        await self.archive.retire(retention, now)
        if self.noted is not None:
            await self.noted(self.archive.path)


def _seal(file: Path) -> None:
    """Make it a file that is read without others beside it: no more is written to it."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
