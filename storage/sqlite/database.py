# SPDX-License-Identifier: Apache-2.0
"""All work on the journal's database, in one asyncio loop: the only module that knows aiosqlite.

One append (up to 1,024 records) is **one INSERT of many rows** in autocommit, not BEGIN, executemany, COMMIT. SQLite
lets go of the interpreter's lock around every step it makes and must win it back from a busy main thread, 5 ms each: a
batch of 1,024 rows took 285 ms by executemany and takes 8 ms as one statement (both 2 ms when the process is idle).
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, Protocol

import aiosqlite
import anyio
from anyio.from_thread import start_blocking_portal
from anyio.lowlevel import current_token

from pumice.storage.chain import Verifier
from pumice.storage.errors import ClosedError, DamagedError, EditedCheckpointError, JournalGoneError, OpenError
from pumice.storage.journal import CHECKPOINT, Checkpoint, Head
from pumice.storage.records import demand_vouched, is_vouched, voucher
from pumice.storage.retention import KEPT_CHECKPOINTS, too_near
from pumice.storage.rows import PACK_RECORDS, Dictionary, JournalRow, PackReader, Sampler, pack_rows, packs
from pumice.storage.sqlite import opening, queries
from pumice.storage.sqlite.failures import reading, using
from pumice.storage.sqlite.frames import is_being_copied
from pumice.storage.sqlite.lock import Mark, beside, read_mark
from pumice.storage.sqlite.migrations import VOUCHED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar, TypeVarTuple, Unpack

    Result = TypeVar("Result")
    Arguments = TypeVarTuple("Arguments")
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from pumice.storage.journal import Record, Stored
    from pumice.storage.sqlite.lock import JournalLock
    from pumice.storage.sqlite.opening import OpenedFile

# --- The event loop
# On asyncio that is the caller's own, and an append costs one wake-up of aiosqlite's thread and one back. Behind a
# portal it costs two more, and each is a system call and a wait for the interpreter's lock: a serial client's create
# took 22 switches between threads. In return the packing of an append runs there: 7 ms for 4,096 records.


class Loop(Protocol):
    """The loop that does all work on a database; `stopped` once it is closed."""

    stopped: bool

    async def call(self, function: Callable[[Unpack[Arguments]], Awaitable[Result]], *arguments: *Arguments) -> Result:
        """Run the function there. A cancelled caller cancels it; a function that must end is `unbroken` in itself."""
        ...

    def stop(self) -> None:
        """Let calls end, and accept no more. A second call does nothing."""
        ...


def loop_for_journal(name: str) -> Loop:
    """Return the loop of the caller where aiosqlite runs on it, else one in a thread of that name."""
    native = type(current_token().native_token).__module__
    return LoopThread(name) if native.startswith("trio") else SameLoop()


class SameLoop:
    """The caller's own loop."""

    def __init__(self) -> None:
        self.stopped = False

    async def call(self, function: Callable[[Unpack[Arguments]], Awaitable[Result]], *arguments: *Arguments) -> Result:
        """Run the function."""
        if self.stopped:
            raise ClosedError("the journal is closed")
        return await function(*arguments)

    def stop(self) -> None:
        """Take no more calls."""
        self.stopped = True


class LoopThread:
    """A loop in a thread of its own. Runs from construction to `stop`."""

    def __init__(self, name: str) -> None:
        self._running = start_blocking_portal("asyncio", name=name)
        self._portal = self._running.__enter__()
        self.stopped = False

    async def call(self, function: Callable[[Unpack[Arguments]], Awaitable[Result]], *arguments: *Arguments) -> Result:
        """Run the function in the thread's loop. A cancelled caller cancels it there and waits until it has ended."""
        if self.stopped:
            raise ClosedError("the journal is closed")
        return await self._portal.call_async(function, *arguments)

    def stop(self) -> None:
        """Let the thread end after its calls, and wait for that. A second call does nothing."""
        if not self.stopped:
            self.stopped = True
            self._running.__exit__(None, None, None)


async def unbroken(work: Awaitable[Result]) -> Result:
    """Do the work to its end although the caller is cancelled meanwhile, by a scope or natively.

    A shield alone does not hold against asyncio's own cancellation (`wait_for`, Ctrl-C), which strikes the task: the
    work has a task of its own, and a task group waits for it whatever becomes of its host.
    """
    ended: list[Result | Exception] = []

    async def run() -> None:
        with anyio.CancelScope(shield=True):
            try:
                ended.append(await work)
            except Exception as error:  # noqa: BLE001 (it is raised in the caller, and not as one of a group)
                ended.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
    if isinstance(ended[0], Exception):
        raise ended[0]
    return ended[0]


# --- The presence of the files
# A write to a removed file is lost.


class FilePresence:
    """The files of a journal that this process writes; `path` is free of symbolic links."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = path.with_name(f"{path.name}-wal")
        self._files = {path: path.stat()}

    def gone(self) -> str:
        """Return the change of the files, "" without one. Call it after a write, when both exist."""
        for file, what in ((self._path, "its file"), (self._log, "its write-ahead file")):
            try:
                found = file.stat()
            except OSError:
                return f"{what} was removed while it was open"
            if not os.path.samestat(self._files.setdefault(file, found), found):
                return f"{what} was replaced while it was open"
        return ""


def leave_open(connection: sqlite3.Connection) -> None:
    """Keep the descriptor open, even when the process ends.

    The last connection to a database removes the write-ahead file by its name. Another journal's may be there now; and
    where the clean close could not be recorded, that file is what shows that nothing is missing.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


CUT_STEP: Final = 50_000
CACHED_STATEMENTS: Final = 32
"""An INSERT of 1,024 rows takes some 300 kB when prepared, and there is one for every number of rows."""
VERIFIED: Final = 4096
"""Records at a time."""
PICKED: Final = 64
"""Records at a time: each may lie in another pack, which is inflated for it."""
KEPT_PACKS: Final = 16
"""Inflated packs that a reader of single records keeps, a megabyte each: the records of one job lie in few of them."""
ENDLESS: Final = (1 << 63) - 1


class Database:
    """The journal's database; all calls run in the portal's loop."""

    def __init__(
        self, connection: aiosqlite.Connection, path: Path, found: OpenedFile, dictionaries: dict[int, bytes]
    ) -> None:
        self._connection = connection
        self._path = path
        self._found = found
        self._head = found.head
        self._dictionaries = dictionaries
        self._newest = max(map(Dictionary._make, dictionaries.items()), default=None)
        self._sampler = Sampler(len(dictionaries))
        self._turn = anyio.Lock()
        self._failed: Exception | None = None
        self._lock: JournalLock | None = None
        self._presence: FilePresence | None = None
        self._spare: sqlite3.Connection | None = None
        self._packs: PackReader | None = None  # of records that were picked
        self.archived = False  # whether records go into segments, which begin with a checkpoint and have more of them

    @classmethod
    async def open(cls, path: Path, name: str, lock: JournalLock | None, migrations: tuple[str, ...]) -> Database:
        """Return the database at `path` (free of symbolic links), which messages call `name`; for reading without a
        lock.
        """
        if lock is None:
            return await cls._connected(path, name, migrations, read_only=True)
        if opening.log_waits(path) and not opening.is_being_made(path):
            # A connection that may write merges both files when it closes, so this check uses one that may not write.
            looking = await cls._connected(path, name, migrations, read_only=True, may_be_empty=True)
            try:
                await looking._demand_whole(name)
            finally:
                await looking.close()
        database = await cls._connected(path, name, migrations, read_only=False, may_be_empty=True)
        try:
            await database._make_ready(name, lock, migrations)
        except BaseException:
            await database.close()
            raise
        return database

    @classmethod
    async def _connected(
        cls, path: Path, name: str, migrations: tuple[str, ...], *, read_only: bool, may_be_empty: bool = False
    ) -> Database:
        uri = opening.uri(path, read_only)
        # No isolation level: Python's sqlite3 would begin transactions by itself before each INSERT.
        connection = await aiosqlite.connect(uri, uri=True, isolation_level=None, cached_statements=CACHED_STATEMENTS)
        connection.text_factory = queries.text
        try:
            # Before anything is written: a file of another program, or of a newer Pumice, stays untouched.
            found = await opening.inspect(connection, path, name, len(migrations), may_be_empty=may_be_empty)
            return cls(connection, path, found, await opening.dictionaries(connection) if found.version else {})
        except BaseException:
            await connection.close()
            raise

    async def _make_ready(self, name: str, lock: JournalLock, migrations: tuple[str, ...]) -> None:
        found = self._found
        opening.demand_whole(found, self._path, name)
        await opening.make_ready(self._connection, name, found, migrations)
        self._spare = sqlite3.connect(opening.uri(self._path, True), uri=True, check_same_thread=False)
        # SQLite opens its files at the first statement: only from here on this connection keeps the write-ahead file.
        self._spare.execute(queries.WHOSE)
        identity = await opening.identity_of(self._connection)
        self._found = found._replace(identity=identity, version=max(found.version, len(migrations)))
        self._presence, self._lock = FilePresence(self._path), lock
        if 0 < found.version < VOUCHED:
            await self._vouch_for_old()
        self._note()

    async def _demand_whole(self, name: str) -> None:
        opening.demand_whole(self._found, self._path, name)
        if self._found.log and self._found.version:
            await self._demand_continued(name)

    async def _demand_continued(self, name: str) -> None:
        """Check that the write-ahead file continues the main one. Raises OpenError."""
        try:
            verifier = await self._end_of_the_main_file()
            while verifier.first_bad is None and verifier.sequence < self._head.sequence:
                for record in await self.read(verifier.sequence, None, VERIFIED):
                    if not verifier.follow(record):
                        break
        except DamagedError as problem:
            raise OpenError(name, f"{problem}; it can only be read") from problem
        if verifier.first_bad is not None:
            bad = verifier.first_bad
            whose = "its write-ahead file (-wal) is damaged or another journal's; it can only be read"
            raise OpenError(name, f"record {bad.sequence} does not follow the one before ({bad.why}): {whose}")

    async def _end_of_the_main_file(self) -> Verifier:
        """Return a verifier of the records after the main file's end: of all records where the main file alone cannot
        be trusted.

        That is so while SQLite copies into it; when it has not begun to, the main file is a database by itself, and
        what it ends with must be there.
        """
        alone = self._found.alone
        verifier = Verifier.of(self._head)
        if alone is None or alone.sequence <= self._head.cut:
            return verifier
        last = await self.read(alone.sequence - 1, None, 1)
        if last and (last[0].sequence, last[0].hash) == (alone.sequence, alone.hash):
            return Verifier(alone.sequence, alone.hash)
        if not is_being_copied(self._path):
            verifier.breaks(alone.sequence, "it is not the one in the main file")
        return verifier

    async def _vouch_for_old(self) -> None:
        """Write records for checkpoints of versions that had none, from their present content."""
        for row in await self._rows(queries.CHECKPOINTS):
            await self._append([voucher(Checkpoint(*row))])

    async def append(self, records: Sequence[Record]) -> int:
        async with self._turn:
            with using():
                await unbroken(self._append(records))
            return self._head.sequence

    async def _append(self, records: Sequence[Record], *more: queries.Statement) -> None:
        """Append in one transaction with `more`."""
        head = self._head
        sequence, previous = head.sequence, head.hash
        # A new dictionary goes into the transaction of the first pack that needs it: no reader finds one without the
        # other.
        proposal = self._sampler.proposal
        statements: list[queries.Statement] = [(queries.SAVE_DICTIONARY, proposal)] if proposal else []
        for pack in packs(records):
            packed = pack_rows(pack, sequence + 1, previous, proposal or self._newest)
            sequence, previous = sequence + len(pack), packed.hash
            statements.append(queries.inserting(packed.columns))
            self._sampler.note(pack, packed.bytes)
        await self._write(*statements, *more)
        if proposal:
            self._sampler.adopt(proposal)
            self._newest = proposal
        self._head = Head(sequence, previous, head.cut, head.cut_hash, sequence)
        # After the write: neither SQLite nor the system reports an error when a removed file is written to.
        await self.confirm()
        self._note()

    def _note(self) -> None:
        """Tell beside the journal how far it has come."""
        if self._lock is not None and self._found.identity is not None:
            self._lock.note(Mark(self._found.identity, self._head.sequence, self._head.hash))

    async def confirm(self) -> None:
        """Check that the files are in their place: a reader of that path would otherwise find nothing new. Raises
        GoneError.
        """
        gone = self._presence.gone() if self._presence is not None else ""
        if gone:
            self._failed = JournalGoneError(f"the journal is gone: {gone}; what was written since may be lost")
            raise self._failed

    async def _write(self, *statements: queries.Statement) -> None:
        """Write all statements in one transaction; a single statement is one by itself."""
        if self._failed is not None:
            raise ClosedError("the journal failed earlier; open it again") from self._failed
        try:
            if len(statements) == 1:
                await self._rows(*statements[0])
            elif statements:
                # Take the write lock now: a transaction that begins by reading may be refused halfway.
                await self._rows("BEGIN IMMEDIATE")
                for statement in statements:
                    await self._rows(*statement)
                await self._rows("COMMIT")
        except aiosqlite.Error as problem:
            await self._undo(problem)
            raise

    async def _undo(self, problem: Exception) -> None:
        """Undo after a failed write. When the earlier state cannot be read, or differs, trust nothing any more."""
        try:
            if self._connection.in_transaction:
                await self._connection.rollback()
            # The head as before proves that nothing was written, so later appends are safe.
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
                self._note()

    async def read(self, after: int, kinds: Collection[str] | None, limit: int) -> list[Stored]:
        with reading():
            found = await self._rows(*queries.select_rows(after, kinds, limit))
            rows = queries.rising(list(map(JournalRow._make, found)), after, all_kinds=kinds is None)
            if kinds is not None:
                await self._demand_no_gap(after, rows[-1].sequence if rows and len(found) == limit else ENDLESS)
            elif rows:
                await self._demand_next(after, rows[0].sequence)
            elif limit > 0:
                await self._demand_no_gap(after, ENDLESS)
            if not rows:
                return []
            for number, content in await self._rows(queries.DICTIONARIES, (len(self._dictionaries),)):
                self._dictionaries[number] = content
            # Bounded: a `lead` that was changed in the file would have the whole journal read.
            first = min(row.sequence - max(0, min(row.lead, PACK_RECORDS)) for row in rows)
            contents = await self._rows(queries.PACKS_BETWEEN, (first, rows[-1].sequence))
            return queries.readable(rows, PackReader(contents, self._dictionaries))

    async def pick(self, numbers: Sequence[int]) -> list[Stored]:
        with reading():
            found: list[Stored] = []
            for begin in range(0, len(numbers), PICKED):
                found += await self._picked(numbers[begin : begin + PICKED])
            return found

    async def _picked(self, numbers: Sequence[int]) -> list[Stored]:
        rows = list(map(JournalRow._make, await self._rows(*queries.pick_rows(numbers))))
        for wanted, row in zip_longest(numbers, rows):
            if row is None or row.sequence != wanted:
                raise DamagedError(wanted, "lost: an index of the journal names it")
        for number, content in await self._rows(queries.DICTIONARIES, (len(self._dictionaries),)):
            self._dictionaries[number] = content
        leads = {row.sequence - max(0, row.lead) for row in rows}
        if self._packs is None or self._packs.inflated > KEPT_PACKS:
            self._packs = PackReader((), self._dictionaries)
        missing = sorted(leads - self._packs.known)
        self._packs.add(await self._rows(*queries.pick_packs(missing)) if missing else ())
        found: list[Stored] = []
        self._packs.read(rows, found)
        return found

    async def _demand_next(self, after: int, first: int) -> None:
        """Raise DamagedError when records between are lost: only retention removes records, and it says so."""
        if first != after + 1:
            last = max(after, (await opening.head(self._connection)).cut)
            if first != last + 1:
                raise DamagedError(last + 1, f"lost: record {first} comes after record {last}")

    async def _demand_no_gap(self, after: int, through: int) -> None:
        """Check for lost records above `after`: a reader of some kinds cannot see the records between. Raises
        DamagedError.

        What was written by the time of the first look must be there at the second, also when there are writes
        meanwhile.
        """
        written = (await opening.head(self._connection)).written if through == ENDLESS else through
        [(count, first, last, total)] = await self._rows(queries.SPAN, (after, through))
        if count:
            await self._demand_next(after, first)
            if not queries.is_without_gaps(count, first, last, total):
                raise DamagedError(after + 1, f"lost: between record {first} and record {last} there are gaps")
        if max(last or 0, after) < written:
            raise DamagedError(max(last or 0, after) + 1, f"lost: records up to {written} were written")

    async def weigh(self, after: int, through: int) -> int:
        with reading():
            return int((await self._rows(queries.WEIGHT, (after, through)))[0][0])

    async def last(self, kind: str) -> Stored | None:
        with reading():
            found = await self._rows(queries.LAST_OF_KIND, (kind,))
        return (await self.read(found[0][0] - 1, None, 1))[0] if found else None

    async def head(self) -> Head:
        """Return both ends as they are in the file now; `written` is the highest number in it or in the files beside
        it.
        """
        mark = read_mark(beside(self._path)) if self._lock is None else None
        with reading():
            head = await opening.head(self._connection)
        told = mark.sequence if mark is not None and mark.identity == self._found.identity else 0
        if (self._found.lost or self._found.astray) and head.sequence == self._found.head.sequence:
            told = max(told, head.sequence + 1)
        return Head(head.sequence, head.hash, head.cut, head.cut_hash, max(head.written, told))

    async def save_checkpoint(self, checkpoint: Checkpoint) -> int:
        values = (checkpoint.sequence, checkpoint.at, checkpoint.content)
        async with self._turn:
            drops: list[queries.Statement] = [(queries.DROP_CHECKPOINTS, (KEPT_CHECKPOINTS,))]
            if self.archived:
                sizes: dict[int, int] = dict(await self._rows(queries.SIZES_OF_CHECKPOINTS))
                sizes[checkpoint.sequence] = len(checkpoint.content)
                # The oldest stays, since the next segment begins with it, and the newest two, as without segments.
                older = sorted(sizes.items())[:-KEPT_CHECKPOINTS]
                drops = [(queries.DROP_CHECKPOINT, (number,)) for number in too_near(older)]
            kept = ((queries.SAVE_CHECKPOINT, values), *drops)
            known = is_vouched(checkpoint, await self.read(checkpoint.sequence - 1, (CHECKPOINT,), VERIFIED))
            with using():
                await unbroken(self._append([] if known else [voucher(checkpoint)], *kept))
            return self._head.sequence

    async def checkpoints(self) -> list[Checkpoint]:
        with reading():
            found = [Checkpoint(*row) for row in await self._rows(queries.CHECKPOINTS)]
        if found and self._found.version >= VOUCHED:
            demand_vouched(found, await self._vouchers(found))
        return found

    async def _vouchers(self, checkpoints: Sequence[Checkpoint]) -> list[Stored]:
        """Return records of checkpoints: after each of these the first ones, until one vouches for it.

        That is soon after it, as a rule: to look through all rows of a segment takes longer than to read a checkpoint.
        """
        found: list[Stored] = []
        for checkpoint in checkpoints:
            after = max(checkpoint.sequence - 1, 0)
            while records := await self.read(after, (CHECKPOINT,), 1):
                found += records
                if is_vouched(checkpoint, records):
                    break
                after = records[-1].sequence
        return found

    async def forget_checkpoints(self, before: int) -> None:
        async with self._turn:
            with using():
                await unbroken(self._write((queries.FORGET_CHECKPOINTS, (before,))))

    async def drop_edited_checkpoints(self) -> None:
        """Drop edited checkpoints. Raises EditedCheckpointError when the records cannot do without one of them."""
        try:
            await self.checkpoints()
        except EditedCheckpointError as edited:
            if not edited.is_needless(self._head.cut):
                raise
            drops = [(queries.DROP_CHECKPOINT, (checkpoint.sequence,)) for checkpoint in edited.edited]
            async with self._turn:
                with using():
                    await unbroken(self._write(*drops))

    async def cut(self, through: int) -> int:
        """Cut in steps, so that appends get their turn and no transaction is large."""
        with reading():
            oldest = (await self._rows(queries.OLDEST_CHECKPOINT))[0][0]
            # Never above the oldest checkpoint: a restart needs all records after one of them.
            through = await self._pack_boundary(min(through, oldest))
        while self._head.cut < through:
            async with self._turn:
                with using():
                    step = await self._pack_boundary(self._head.cut + CUT_STEP)
                    await unbroken(self._cut(min(through, step)))
        await self._give_back()
        return self._head.cut

    async def _give_back(self) -> None:
        """Give free pages back to the disk, in steps like those of `cut`. A file that cannot shrink keeps them."""
        with using():
            free = await self._free_pages()
            given = False
            while free:
                async with self._turn:
                    await unbroken(self._write((queries.GIVE_BACK, ())))
                    left = await self._free_pages()
                given = given or left < free
                # A file of an old version cannot shrink: asked again it would give nothing back, for ever.
                free = left if left < free else 0
            if given:
                async with self._turn:
                    await self._rows(queries.AS_FAR_AS_POSSIBLE)

    async def _free_pages(self) -> int:
        return int((await self._rows(queries.FREE_PAGES))[0][0])

    async def _pack_boundary(self, through: int) -> int:
        """Return the last record at or before `through` after which a pack begins: the rest of a pack needs its first
        row.
        """
        found = await self._rows(queries.LEAD, (through + 1,))
        return through - found[0][0] if found else through

    async def _cut(self, through: int) -> None:
        found = await self._rows(queries.HASH, (through,))
        if not found:
            raise DamagedError(through, "lost: retention cannot cut here")
        # In one transaction: the chain must begin where the records do, also after a kill.
        await self._write((queries.ANCHOR, (through, found[0][0])), (queries.FORGET, (through,)))
        self._head = await opening.head(self._connection)

    async def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return list(await self._connection.execute_fetchall(sql, values))

    async def close(self) -> bool:
        """Close the files, and return whether the main file has everything."""
        async with self._turn:
            closed = self._failed is None and (self._lock is None or await opening.say_closed(self._connection))
            if self._spare is not None and closed:
                self._spare.close()
            elif self._spare is not None:
                leave_open(self._spare)
            with using():
                await unbroken(self._connection.close())
            return closed
