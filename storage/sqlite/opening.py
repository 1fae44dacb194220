# SPDX-License-Identifier: Apache-2.0
"""Opening of a journal's database: its identity, its integrity, its migrations and its end."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from pumice.storage.errors import DamagedError, ForeignFileError, NewerSchemaError, OpenError, UnwritableError
from pumice.storage.journal import Head
from pumice.storage.sqlite import queries
from pumice.storage.sqlite.frames import HEADER, alone, is_being_copied, lost_commits
from pumice.storage.sqlite.lock import beside, read_mark
from pumice.storage.sqlite.migrations import APPLICATION_ID, IDENTIFIED, scripts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable
    from pathlib import Path

    from pumice.storage.sqlite.frames import Alone


REBUILT_PAGES: Final = 16_384
"""64 MB: to write them anew takes about a second."""
REMEDY: Final = "copy what is left (pumice journal FILE --backup TO), and go on with the copy"


class Connection(Protocol):
    """The part of an aiosqlite connection that is needed here."""

    def execute_fetchall(self, sql: str, parameters: Iterable[Any] | None = None, /) -> Awaitable[Iterable[Any]]:
        """Run one statement, and return all its rows."""
        ...

    def executescript(self, sql_script: str, /) -> Awaitable[Any]:
        """Run several."""
        ...


class OpenedFile(NamedTuple):
    """An opened file: the version of its schema, the journal's identity (None in files of version 1), both ends.

    `log`: a write-ahead file lay there; `alone` is what the main file holds without it (None: nothing that makes
    sense). `lost`: transactions that the write-ahead file held once. `astray`: the journal was not closed, and
    its write-ahead file is missing: it lies beside another name of the journal (a hard link, where this is a copy), or
    is gone.
    """

    version: int
    identity: bytes | None
    head: Head
    log: bool
    alone: Alone | None
    lost: int
    astray: bool


def uri(path: Path, read_only: bool) -> str:
    """Return the URI that tells SQLite which access it has to the file, which exists.

    Even to read, it wants to lay a file beside one in write-ahead mode; where it may not, and no log is waiting there,
    no process can be writing either.
    """
    if not read_only:
        return f"{path.absolute().as_uri()}?mode=rw"
    alone = not path.with_name(f"{path.name}-wal").exists()
    # Immutable, SQLite neither locks nor looks for changes: that is safe only where no process can write.
    still = "&immutable=1" if alone and not os.access(path.absolute().parent, os.W_OK) else ""
    return f"{path.absolute().as_uri()}?mode=ro{still}"


def log_waits(path: Path) -> bool:
    """Return whether a write-ahead file has content."""
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    except FileNotFoundError:  # the writer has closed the journal
        return False


def is_being_made(path: Path) -> bool:
    """Return whether the writer was stopped while it made the file.

    A power cut may leave SQLite's rollback journal beside a write-ahead file without a frame. Only a writer can
    undo what that journal is about, and nothing is lost by it.
    """
    try:
        undoes = path.with_name(f"{path.name}-journal").stat().st_size > 0
        return undoes and path.with_name(f"{path.name}-wal").stat().st_size <= HEADER.size
    except FileNotFoundError:
        return False


async def inspect(connection: Connection, path: Path, name: str, newest: int, *, may_be_empty: bool) -> OpenedFile:
    """Read the file's owner and content before anything changes it. `name` is the user's name for the file.

    Raises OpenError for what cannot be read; what may still be read and not written is for `demand_whole`.
    """
    log = log_waits(path)
    only = alone(path) if log else None
    version = await _version(connection, name, newest)
    if not version and not may_be_empty:
        raise ForeignFileError(name, "this file is empty, and no journal")
    identity = await identity_of(connection) if version >= IDENTIFIED else None
    if only is not None and identity is not None and only.identity not in (None, identity):
        if not is_being_copied(path):
            raise OpenError(
                name, "the write-ahead file beside it (-wal) is another journal's: put its own there, or none"
            )
        only = None  # a page that was something else before
    astray = version >= IDENTIFIED and not log_waits(path) and await _is_open(connection)
    ends = await head(connection) if version else Head()
    return OpenedFile(version, identity, ends, log, only, lost_commits(path), astray)


def demand_whole(found: OpenedFile, path: Path, name: str) -> None:
    """Check that a journal has lost no records at its end: it must not go on after a loss. Raises OpenError."""
    end, mark = found.head, read_mark(beside(path))
    missing = mark.missing(found.identity, end) if mark is not None and found.identity is not None else ""
    if found.lost:
        missing = (
            missing or f"its write-ahead file is damaged: {found.lost} appends after record {end.sequence} are lost"
        )
    if found.astray:
        missing = missing or (
            f"it was not closed, and its write-ahead file (-wal) is not beside {path.name}: open it by the name "
            "by which it was written; what that file held is missing here"
        )
    if end.written > end.sequence:
        missing = missing or f"records {end.sequence + 1} to {end.written} are lost"
    if missing:
        raise OpenError(name, f"{missing}; it can only be read. To go on without them: {REMEDY}")


async def make_ready(connection: Connection, name: str, found: OpenedFile, migrations: tuple[str, ...]) -> None:
    """Make sure that it can be written, and bring it up to date. Raises OpenError."""
    if not found.version:
        # Before the first table: later only VACUUM would change it.
        await connection.execute_fetchall(queries.SHRINKING)
    await connection.executescript(queries.PROBE)
    [(mode,)] = await connection.execute_fetchall("PRAGMA journal_mode = WAL")
    if mode != "wal":
        raise UnwritableError(name, "its file system does not allow SQLite's write-ahead log")
    await connection.executescript(queries.PRAGMAS)
    steps = scripts(found.version, migrations)
    for script in steps:
        await connection.executescript(script)
    await _let_it_shrink(connection)
    await connection.execute_fetchall(queries.OPENED)
    await connection.execute_fetchall(queries.INTO_FILE)  # the main file says itself whose it is, and that it is open
    await connection.execute_fetchall(queries.SAY_WHOSE)


async def _let_it_shrink(connection: Connection) -> None:
    """Write a file from before journals could give pages back anew once, while that is quickly done."""
    [(shrinks, pages)] = await connection.execute_fetchall(queries.SHRINKS)
    if not shrinks and pages <= REBUILT_PAGES:
        with suppress(sqlite3.Error):  # no room for it, or broken pages: then it stays as it is
            await connection.execute_fetchall(queries.SHRINKING)
            await connection.execute_fetchall(queries.REBUILD)


async def say_closed(connection: Connection) -> bool:
    """Mark the journal as closed. False where the disk has no room for it, or has become read-only: then it counts as
    left open.
    """
    try:
        await connection.execute_fetchall(queries.CLOSED)
    except sqlite3.Error:
        return await _say_closed_in_place(connection)
    return True


async def _say_closed_in_place(connection: Connection) -> bool:
    """Record a clean close in place, where the write-ahead file cannot grow: it begins anew once the main file has
    everything.
    """
    try:
        await connection.execute_fetchall(queries.INTO_FILE)
        await connection.execute_fetchall(queries.CLOSED)
    except sqlite3.Error:
        return False
    return True


async def _version(connection: Connection, path: str, newest: int) -> int:
    """Return the schema version; 0 for an empty file. Raises OpenError for a foreign file or a newer version."""
    [(application, version, tables)] = await connection.execute_fetchall(queries.WHOSE)
    if application != APPLICATION_ID and (application or version or tables):
        raise ForeignFileError(path, "this SQLite database belongs to another program; it was left alone")
    if version > newest:
        raise NewerSchemaError(path, version, newest)
    return int(version)


async def _is_open(connection: Connection) -> bool:
    return bool(next(iter(await connection.execute_fetchall(queries.IS_OPEN)), (0,))[0])


async def identity_of(connection: Connection) -> bytes:
    """Return the identity of the journal; empty when the file has none."""
    found = list(await connection.execute_fetchall(queries.IDENTITY))
    return found[0][0] if found else b""


async def dictionaries(connection: Connection) -> dict[int, bytes]:
    """Return the existing compression dictionaries, by number."""
    return dict(await connection.execute_fetchall(queries.DICTIONARIES, (0,)))


async def head(connection: Connection) -> Head:
    """Return both ends, as they are in the file. Raises DamagedError."""
    found = list(await connection.execute_fetchall(queries.HEAD))
    if not found:
        raise DamagedError(0, "it does not say where it begins")
    [(cut, cut_hash, written, sequence, hash_)] = found
    if sequence is None:
        return Head(cut, cut_hash, cut, cut_hash, written or cut)
    return Head(sequence, hash_, cut, cut_hash, written or sequence)
