"""The journal in a SQLite file: the only module that knows aiosqlite.

aiosqlite needs asyncio, so it lives in one thread with an asyncio loop of its own, reached through an anyio portal: the
journal is the same under trio and asyncio. A transaction is one shielded function in that loop, so that a cancelled
append is whole or absent.

One append (up to 1,024 records) is **one INSERT of many rows** in autocommit, not BEGIN, executemany, COMMIT. SQLite
lets go of the interpreter's lock around every step it makes and must win it back from a busy main thread, 5 ms each: a
batch of 1,024 rows took 285 ms by executemany and takes 8 ms as one statement (both 2 ms when the process is idle).
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import aiosqlite
import anyio

from storage import opening, queries
from storage.check import check
from storage.dictionary import Dictionary, Sampler
from storage.errors import ClosedError, DamagedError, ForeignFileError, MissingFileError
from storage.journal import Checkpoint, Head
from storage.lock import FileLock
from storage.loop_thread import LoopThread, unbroken
from storage.memory import KEPT_CHECKPOINTS
from storage.migrations import MIGRATIONS
from storage.rows import PACK_RECORDS, PackReader, Row, pack_rows, packs
from storage.sqlite_errors import failing_to_open, using

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from types import TracebackType
    from typing import Self

    from storage.journal import ChainReport, Record, Stored

LOCK_SUFFIX: Final = "-lock"
CUT_STEP: Final = 50_000
CACHED_STATEMENTS: Final = 32
"""An INSERT of 1,024 rows takes some 300 kB when prepared, and there is one for every number of rows."""


class _Database:
    """Everything that happens in the portal's loop."""

    def __init__(self, connection: aiosqlite.Connection, head: Head, dictionaries: dict[int, bytes]) -> None:
        self._connection = connection
        self._head = head
        self._dictionaries = dictionaries
        self._newest = max(map(Dictionary._make, dictionaries.items()), default=None)
        self._sampler = Sampler(len(dictionaries))
        self._turn = anyio.Lock()
        self._failed: Exception | None = None

    @classmethod
    async def open(cls, path: Path, read_only: bool, migrations: tuple[str, ...]) -> _Database:
        uri = opening.uri(path, read_only)
        connection = await aiosqlite.connect(uri, uri=True, isolation_level=None, cached_statements=CACHED_STATEMENTS)
        connection.text_factory = queries.text
        try:
            await opening.prepare(connection, str(path), read_only, migrations)
            return cls(connection, await opening.head(connection), await opening.dictionaries(connection))
        except BaseException:
            await connection.close()
            raise

    async def append(self, records: Sequence[Record]) -> int:
        async with self._turn:
            with using():
                await unbroken(self._append(records))
            return self._head.sequence

    async def _append(self, records: Sequence[Record]) -> None:
        head = self._head
        sequence, previous = head.sequence, head.hash
        proposal = self._sampler.proposal
        statements: list[queries.Statement] = [(queries.SAVE_DICTIONARY, proposal)] if proposal else []
        for pack in packs(records):
            packed = pack_rows(pack, sequence + 1, previous, proposal or self._newest)
            sequence, previous = sequence + len(pack), packed.hash
            statements.append(queries.inserting(packed.columns))
            self._sampler.note(pack, packed.bytes)
        await self._write(*statements)
        if proposal:
            self._sampler.adopt(proposal)
            self._newest = proposal
        self._head = Head(sequence, previous, head.cut, head.cut_hash, sequence)

    async def _write(self, *statements: queries.Statement) -> None:
        """All of them in one transaction; a single statement is one by itself."""
        if self._failed is not None:
            raise ClosedError("the journal failed earlier; open it again") from self._failed
        try:
            if len(statements) == 1:
                await self._rows(*statements[0])
            elif statements:
                await self._rows("BEGIN IMMEDIATE")
                for statement in statements:
                    await self._rows(*statement)
                await self._rows("COMMIT")
        except aiosqlite.Error as problem:
            await self._undo(problem)
            raise

    async def _undo(self, problem: Exception) -> None:
        """After a failed write. When what was there cannot be read, or is not what it was, trust nothing any more."""
        try:
            if self._connection.in_transaction:
                await self._connection.rollback()
            if await opening.head(self._connection) == self._head:
                return
        except aiosqlite.Error:
            pass
        self._failed = problem

    async def begin_after(self, sequence: int, hash_: bytes) -> None:
        async with self._turn:
            with using():
                if self._head.written:
                    raise ValueError("only an empty journal can begin elsewhere")
                await unbroken(self._write((queries.ANCHOR, (sequence, hash_))))
                self._head = Head(sequence, hash_, sequence, hash_, sequence)

    async def read(self, after: int, kinds: Collection[str] | None, limit: int) -> list[Stored]:
        with using():
            rows = [Row(*row) for row in await self._rows(*queries.select_rows(after, kinds, limit))]
            if not rows:
                return []
            for number, content in await self._rows(queries.DICTIONARIES, (len(self._dictionaries),)):
                self._dictionaries[number] = content
            first = min(row.sequence - min(row.lead, PACK_RECORDS) for row in rows)
            contents = await self._rows(queries.PACKS, (first, rows[-1].sequence))
            return queries.readable(rows, PackReader(contents, self._dictionaries))

    async def last(self, kind: str) -> Stored | None:
        with using():
            found = await self._rows(queries.LAST_OF_KIND, (kind,))
        return (await self.read(found[0][0] - 1, None, 1))[0] if found else None

    async def head(self) -> Head:
        with using():
            return await opening.head(self._connection)

    async def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        values = (checkpoint.sequence, checkpoint.at, checkpoint.content)
        async with self._turn:
            with using():
                drop = (queries.DROP_CHECKPOINTS, (KEPT_CHECKPOINTS,))
                await unbroken(self._write((queries.SAVE_CHECKPOINT, values), drop))

    async def checkpoints(self) -> list[Checkpoint]:
        with using():
            return [Checkpoint(*row) for row in await self._rows(queries.CHECKPOINTS)]

    async def cut(self, through: int) -> int:
        """In steps, so that appends get their turn and no transaction is large."""
        with using():
            oldest = (await self._rows(queries.OLDEST_CHECKPOINT))[0][0]
            through = await self._pack_boundary(min(through, oldest))
        while self._head.cut < through:
            async with self._turn:
                with using():
                    step = await self._pack_boundary(self._head.cut + CUT_STEP)
                    await unbroken(self._cut(min(through, step)))
        return self._head.cut

    async def _pack_boundary(self, through: int) -> int:
        """The last record at or before `through` after which a pack begins: the rest of a pack needs its first row."""
        found = await self._rows(queries.LEAD, (through + 1,))
        return through - found[0][0] if found else through

    async def _cut(self, through: int) -> None:
        found = await self._rows(queries.HASH, (through,))
        if not found:
            raise DamagedError(through, "lost: retention cannot cut here")
        await self._write((queries.ANCHOR, (through, found[0][0])), (queries.FORGET, (through,)))
        self._head = await opening.head(self._connection)

    async def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return list(await self._connection.execute_fetchall(sql, values))

    async def close(self) -> None:
        async with self._turn:
            with using():
                await unbroken(self._connection.close())


class SqliteJournal:
    """A journal file, from any event loop. See `storage.journal.Journal`; made by `open`, an async context manager."""

    def __init__(self, thread: LoopThread, database: _Database, release: ExitStack) -> None:
        self._thread = thread
        self._database = database
        self._release = release

    @classmethod
    async def open(
        cls, path: str | Path, *, read_only: bool = False, migrations: tuple[str, ...] = MIGRATIONS
    ) -> SqliteJournal:
        """Open the journal at `path`, making or migrating it when opened for writing. Raises OpenError.

        Any number of read-only journals may be open beside the one that writes.
        """
        path = Path(path)
        with ExitStack() as undo, failing_to_open(str(path)):
            if path.is_dir():
                raise ForeignFileError(str(path), "this is a folder, not a journal")
            if read_only and not path.exists():
                raise MissingFileError(str(path), "there is no such file")
            if not read_only:
                undo.callback(FileLock(path.with_name(path.name + LOCK_SUFFIX)).release)
            thread = LoopThread("pumice journal")
            undo.callback(thread.stop)
            database = await unbroken(thread.call(_Database.open, path, read_only, migrations))
            return cls(thread, database, undo.pop_all())

    async def append(self, records: Sequence[Record]) -> int:
        """Write the records in one transaction, on disk when this returns; the number of the last one."""
        return await self._thread.call(self._database.append, records)

    async def begin_after(self, sequence: int, hash_: bytes) -> None:
        """Let an empty journal begin with the record after that one, whose hash this is, as though it had been cut."""
        await self._thread.call(self._database.begin_after, sequence, hash_)

    async def read(self, after: int = 0, kinds: Collection[str] | None = None, limit: int = 10_000) -> Sequence[Stored]:
        """At most `limit` records (of these kinds) numbered above `after`."""
        return await self._thread.call(self._database.read, after, kinds, limit)

    async def last(self, kind: str) -> Stored | None:
        """The newest record of a kind."""
        return await self._thread.call(self._database.last, kind)

    async def head(self) -> Head:
        """Both ends, as they are in the file now."""
        return await self._thread.call(self._database.head)

    async def check(self) -> ChainReport:
        """Verify the chain."""
        return await check(self)

    async def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Keep it and the one before."""
        await self._thread.call(self._database.save_checkpoint, checkpoint)

    async def checkpoints(self) -> Sequence[Checkpoint]:
        """Newest first."""
        return await self._thread.call(self._database.checkpoints)

    async def cut(self, through: int) -> int:
        """Forget records up to `through`, at most to the oldest checkpoint kept and where a pack ends."""
        return await self._thread.call(self._database.cut, through)

    async def close(self) -> None:
        """Finish what is in flight and let go of file, lock and thread. A second call does nothing."""
        if self._thread.stopped:
            return
        try:
            await unbroken(self._thread.call(self._database.close))
        finally:
            self._release.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
