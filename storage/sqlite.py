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

from storage import queries
from storage.check import check
from storage.errors import ClosedError, DamagedError, ForeignFileError, NewerSchemaError, OpenError, UnwritableError
from storage.journal import Checkpoint, Head
from storage.lock import FileLock
from storage.loop_thread import LoopThread, unbroken
from storage.memory import KEPT_CHECKPOINTS
from storage.migrations import APPLICATION_ID, MIGRATIONS, scripts
from storage.rows import PACK_RECORDS, PackReader, Row, packs, parameters
from storage.sqlite_errors import opening, using

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

    def __init__(self, connection: aiosqlite.Connection, head: Head) -> None:
        self._connection = connection
        self._head = head
        self._dictionaries: dict[int, bytes] = {}
        self._turn = anyio.Lock()
        self._failed: Exception | None = None

    @classmethod
    async def open(cls, path: Path, read_only: bool, migrations: tuple[str, ...]) -> _Database:
        connection = await aiosqlite.connect(
            _uri(path, read_only), uri=True, isolation_level=None, cached_statements=32
        )
        connection.text_factory = _text
        try:
            await _prepare(connection, str(path), read_only, migrations)
            return cls(connection, await _head(connection))
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
        statements: list[queries.Statement] = []
        for pack in packs(records):
            flat, previous = parameters(pack, sequence + 1, previous)
            sequence += len(pack)
            statements.append(queries.inserting(flat))
        await self._write(*statements)
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
            if await _head(self._connection) == self._head:
                return
        except aiosqlite.Error:
            pass
        self._failed = problem

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
            return await _head(self._connection)

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
        self._head = await _head(self._connection)

    async def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return list(await self._connection.execute_fetchall(sql, values))

    async def close(self) -> None:
        async with self._turn:
            with using():
                await unbroken(self._connection.close())


def _uri(path: Path, read_only: bool) -> str:
    return f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"


def _text(stored: bytes) -> str:
    """Text that was tampered with may not be UTF-8; it is the chain's to say so."""
    return stored.decode("utf-8", "replace")


async def _head(connection: aiosqlite.Connection) -> Head:
    [(cut, cut_hash, written, sequence, hash_)] = await connection.execute_fetchall(queries.HEAD)
    if sequence is None:
        return Head(cut, cut_hash, cut, cut_hash, written or cut)
    return Head(sequence, hash_, cut, cut_hash, written or sequence)


async def _prepare(connection: aiosqlite.Connection, path: str, read_only: bool, migrations: tuple[str, ...]) -> None:
    """Whose file it is comes before anything that would change it."""
    version = await _version(connection, path, len(migrations))
    if read_only:
        if version < len(migrations):
            raise OpenError(path, f"its schema version {version} is old; opening it for writing brings it up to date")
        return
    await connection.executescript(queries.PROBE)
    [(mode,)] = await connection.execute_fetchall("PRAGMA journal_mode = WAL")
    if mode != "wal":
        raise UnwritableError(path, "its file system does not allow SQLite's write-ahead log")
    await connection.executescript(queries.PRAGMAS)
    for script in scripts(version, migrations):
        await connection.executescript(script)
    head = await _head(connection)
    if head.written > head.sequence:
        raise OpenError(path, f"records {head.sequence + 1} to {head.written} are lost; it can only be read")


async def _version(connection: aiosqlite.Connection, path: str, newest: int) -> int:
    """The schema version; 0 for an empty file. Raises OpenError when the file is not ours or newer than we are."""
    [(application, version, tables)] = await connection.execute_fetchall(queries.IDENTITY)
    if application != APPLICATION_ID and (application or version or tables):
        raise ForeignFileError(path, "this SQLite database belongs to another program; it was left alone")
    if version > newest:
        raise NewerSchemaError(path, version, newest)
    return int(version)


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
        with ExitStack() as undo, opening(str(path)):
            if path.is_dir():
                raise OpenError(str(path), "this is a folder, not a journal")
            if read_only and not path.exists():
                raise OpenError(str(path), "there is no such file")
            if not read_only:
                undo.callback(FileLock(path.with_name(path.name + LOCK_SUFFIX)).release)
            thread = LoopThread("pumice journal")
            undo.callback(thread.stop)
            database = await unbroken(thread.call(_Database.open, path, read_only, migrations))
            return cls(thread, database, undo.pop_all())

    async def append(self, records: Sequence[Record]) -> int:
        """Write the records in one transaction, on disk when this returns; the number of the last one."""
        return await self._thread.call(self._database.append, records)

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
