# SPDX-License-Identifier: Apache-2.0
"""The journal of a run on virtual time: its newest records in memory, all before them in the file, in pieces.

Virtual time jumps whenever every task waits, and a wait for the disk looks like any other. So no task awaits the file:
who brings a piece there, or reads from it, holds up the whole loop until that is done. What a process that is killed
leaves behind is a whole journal, as far as it had been written.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import anyio.lowlevel
from anyio.from_thread import start_blocking_portal
from msgspec.structs import replace

from pumice.runtime.journals import note_names
from pumice.storage.journal import Head, Record
from pumice.storage.memory import MemoryJournal
from pumice.storage.retention import KEEP_ALL, Retention
from pumice.storage.sqlite import SqliteJournal
from pumice.storage.sqlite.segments import SegmentedJournal

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Sequence
    from pathlib import Path

    from anyio.from_thread import BlockingPortal

    from pumice.storage.journal import Checkpoint, Stored

HELD: Final = 96 << 20
"""Bytes that are held in memory: more than usually come between two checkpoints, for which they are read again."""
BATCH: Final = 10_000
"""Records that are written at a time."""


class PieceJournal(MemoryJournal):
    """A `storage.journal.Journal` of pieces; durable once it is `settled`. `last_at`: when the newest record of the
    file was written, in seconds since the epoch (0.0 without one).
    """

    def __init__(self, portal: BlockingPortal, file: SqliteJournal, held: int = HELD) -> None:
        super().__init__()
        self._portal, self._file, self._most = portal, file, held
        self._bytes = 0
        self._failed = False
        head = self._begin_after_file()
        # By its number: `last` would need a kind.
        newest = portal.call(file.read, head.sequence - 1, None, 1) if head.sequence else ()
        self.last_at = newest[0].at if newest else 0.0

    def _begin_after_file(self) -> Head:
        """Begin without held records, and return both ends of the file."""
        head = self._portal.call(self._file.head)
        self._records, self._unchained, self._bytes = [], [], 0
        self._begins = head
        self._head = Head(head.sequence, head.hash, head.sequence, head.hash, head.sequence)
        return head

    async def append(self, records: Sequence[Record]) -> int:
        """Hold the records, without a turn for other tasks; all go to the file when there are too many."""
        last = await super().append(records)
        self._bytes += sum([len(record.payload) for record in records])
        if self._bytes >= self._most:
            self.settle()
        return last

    def settle(self) -> None:
        """Write the held records to the file. Raises a StorageError; after one nothing is written any more."""
        records = [*(stored.record for stored in self._records), *self._unchained]
        if not records or self._failed:
            return
        # Until all pieces are written: after an error in their midst a second try would write the first ones again.
        self._failed = True
        for start in range(0, len(records), BATCH):
            self._portal.call(self._file.append, records[start : start + BATCH])
        self._failed = False
        self._begin_after_file()

    async def read(self, after: int = 0, kinds: Collection[str] | None = None, limit: int = 10_000) -> Sequence[Stored]:
        """Read at most `limit` records (of these kinds) above `after`."""
        self._ready()
        found: Sequence[Stored] = ()
        if after < self._head.cut:
            found = self._portal.call(self._file.read, after, kinds, limit)
            # The file stops short before a damaged record: what is in memory must not follow over that gap.
            if len(found) == limit or (found and (kinds is not None or found[-1].sequence < self._head.cut)):
                await anyio.lowlevel.checkpoint()
                return found
        return [*found, *await super().read(after, kinds, limit - len(found))]

    async def last(self, kind: str) -> Stored | None:
        """Return the newest record of a kind."""
        return await super().last(kind) or self._portal.call(self._file.last, kind)

    async def head(self) -> Head:
        """Return both ends."""
        return replace(await super().head(), cut=self._begins.cut, cut_hash=self._begins.cut_hash)

    async def save_checkpoint(self, checkpoint: Checkpoint) -> int:
        """Keep this checkpoint and the one before in the file, and return the number of the newest record."""
        self._ready()
        # First: a checkpoint in the file must not stand for records that are not there.
        self.settle()
        last = self._portal.call(self._file.save_checkpoint, checkpoint)
        self._begin_after_file()
        return last

    async def checkpoints(self) -> Sequence[Checkpoint]:
        """Return the checkpoints, newest first."""
        self._ready()
        return self._portal.call(self._file.checkpoints)

    async def cut(self, through: int) -> int:
        """Forget records up to `through`, at most to the oldest checkpoint kept."""
        self._ready()
        self.settle()
        cut = self._portal.call(self._file.cut, through)
        self._begin_after_file()
        return cut

    async def trim(self, retention: Retention, now: float) -> None:
        """Forget the records that no rule keeps, or move older ones into segments."""
        self._ready()
        self.settle()
        self._portal.call(self._file.trim, retention, now)
        self._begin_after_file()

    async def confirm(self) -> None:
        """Check that the file is in its place. Raises GoneError."""
        self._portal.call(self._file.confirm)


@contextmanager
def file_in_pieces(path: Path, retention: Retention = KEEP_ALL, held: int = HELD) -> Generator[PieceJournal]:
    """Yield the journal in a file, made or continued; at the end all of it is there, except records that are not kept.

    Raises OpenError.
    """
    with start_blocking_portal("asyncio", name="pumice journal in pieces") as portal:
        file = portal.call(SegmentedJournal.open_for, path, retention, note_names)
        try:
            journal = PieceJournal(portal, file, held)
            try:
                yield journal
            finally:
                journal.settle()
            portal.call(_trim, file, retention)
        finally:
            portal.call(file.close)


async def _trim(file: SqliteJournal, retention: Retention) -> None:
    # By the time of the newest record: virtual time may be years from today's.
    for last in await file.read((await file.head()).sequence - 1, limit=1):
        await file.trim(retention, last.at)
