# SPDX-License-Identifier: Apache-2.0
"""The journal in a SQLite file, from any event loop.

aiosqlite needs asyncio: it lives in the caller's loop where that is asyncio's, else in a thread with a loop of its own,
reached through an anyio portal. The journal is the same under trio and asyncio. A transaction is one shielded function
in that loop, so that a cancelled append is whole or absent.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from pumice.config.input_file import demand_file, note_inputs
from pumice.storage.chain import check
from pumice.storage.errors import DamagedError, ForeignFileError, MissingFileError
from pumice.storage.retention import trim
from pumice.storage.sqlite.database import Database, Loop, loop_for_journal, unbroken
from pumice.storage.sqlite.failures import MANGLED, failing_to_open
from pumice.storage.sqlite.lock import JournalLock
from pumice.storage.sqlite.migrations import MIGRATIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from types import TracebackType
    from typing import Self

    from pumice.storage.journal import ChainReport, Checkpoint, Head, Record, Stored
    from pumice.storage.retention import Retention


class SqliteJournal:
    """A journal file, from any event loop. See `storage.journal.Journal`; made by `open`, an async context manager."""

    def __init__(self, loop: Loop, database: Database, lock: JournalLock | None) -> None:
        self._loop = loop
        self._database = database
        self._lock = lock

    @classmethod
    async def open(
        cls,
        path: str | Path,
        *,
        read_only: bool = False,
        archived: bool = False,
        migrations: tuple[str, ...] = MIGRATIONS,
    ) -> Self:
        """Open the journal at `path`, making or migrating it when opened for writing. Raises OpenError.

        `archived`: its older records go into segments (`Archive`), so the oldest checkpoint is kept, too.
        Any number of read-only journals may be open beside the one that writes.
        """
        name, path = str(path), Path(path)
        with ExitStack() as undo, failing_to_open(name):
            if path.is_dir():
                raise ForeignFileError(name, "this is a folder, not a journal")
            try:
                demand_file(path)
            except OSError as problem:
                raise ForeignFileError(name, f"this is {problem.strerror}, so no journal") from problem
            if read_only and not path.exists():
                raise MissingFileError(name, "does not exist")
            # Free of links: the files beside it (-wal, -lock) go by the true name, whatever name was given.
            path, lock = path.resolve(), None
            if read_only:
                note_inputs(path)
            if not read_only:
                lock = JournalLock(path)
                undo.callback(lock.release, clean=False)
            loop = loop_for_journal("pumice journal")
            undo.callback(loop.stop)
            database = await unbroken(loop.call(Database.open, path, name, lock, migrations))
            database.archived = archived
            undo.pop_all()
            return cls(loop, database, lock)

    async def append(self, records: Sequence[Record]) -> int:
        """Write the records in one transaction, on disk when this returns, and return the number of the last one."""
        return await self._loop.call(self._database.append, records)

    async def begin_after(self, sequence: int, hash_: bytes) -> None:
        """Let an empty journal begin with the record after that one, whose hash this is, as though it had been cut."""
        await self._loop.call(self._database.begin_after, sequence, hash_)

    async def read(self, after: int = 0, kinds: Collection[str] | None = None, limit: int = 10_000) -> Sequence[Stored]:
        """Return at most `limit` records (of these kinds) numbered above `after`."""
        return await self._loop.call(self._database.read, after, kinds, limit)

    async def pick(self, numbers: Sequence[int]) -> Sequence[Stored]:
        """Return the records of these numbers, which rise. Raises DamagedError for the first that is lost."""
        return await self._loop.call(self._database.pick, numbers)

    async def weigh(self, after: int, through: int) -> int:
        """Return the bytes that the records above `after`, up to `through`, take in the file, packed."""
        return await self._loop.call(self._database.weigh, after, through)

    async def last(self, kind: str) -> Stored | None:
        """Return the newest record of a kind."""
        return await self._loop.call(self._database.last, kind)

    async def head(self) -> Head:
        """Return both ends, as they are in the file now."""
        return await self._loop.call(self._database.head)

    async def check(self) -> ChainReport:
        """Verify the chain."""
        return await check(self)

    async def save_checkpoint(self, checkpoint: Checkpoint) -> int:
        """Keep this checkpoint and the one before, and return the number of the newest record."""
        return await self._loop.call(self._database.save_checkpoint, checkpoint)

    async def checkpoints(self) -> Sequence[Checkpoint]:
        """Return the checkpoints, newest first. Raises DamagedError for one that differs from its record."""
        return await self._loop.call(self._database.checkpoints)

    async def forget_checkpoints(self, before: int) -> None:
        """Drop the checkpoints that stand for fewer records."""
        await self._loop.call(self._database.forget_checkpoints, before)

    async def drop_edited_checkpoints(self) -> None:
        """Forget checkpoints that are not what their records say. Raises EditedCheckpointError where one is needed."""
        await self._loop.call(self._database.drop_edited_checkpoints)

    async def cut(self, through: int) -> int:
        """Forget records up to `through`, at most to the oldest checkpoint kept and where a pack ends."""
        return await self._loop.call(self._database.cut, through)

    async def trim(self, retention: Retention, now: float) -> None:
        """Forget the records that no rule keeps."""
        await trim(self, retention, now)

    async def confirm(self) -> None:
        """Check that the files are in their place. Raises GoneError."""
        await self._loop.call(self._database.confirm)

    async def close(self) -> None:
        """Finish the appends in flight and release file, lock and thread. A second call does nothing."""
        if self._loop.stopped:
            return
        clean = False
        try:
            clean = await unbroken(self._loop.call(self._database.close))
        finally:
            self._loop.stop()
            if self._lock is not None:
                self._lock.release(clean=clean)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._lock is None and isinstance(problem, MANGLED):
                await self._demand_whole(problem)
        finally:
            await self.close()

    async def _demand_whole(self, problem: Exception) -> None:
        """Report an error in a damaged journal as damage, and not as the reader's mistake."""
        bad = (await self.check()).first_bad
        if bad is not None:
            raise DamagedError(bad.sequence, bad.why) from problem
