"""Opening a journal's database: whose file it is, what it needs, and where it ends."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Protocol

from storage import queries
from storage.errors import ForeignFileError, NewerSchemaError, OpenError, UnwritableError
from storage.journal import Head
from storage.migrations import APPLICATION_ID, scripts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable
    from pathlib import Path


class Connection(Protocol):
    """The part of an aiosqlite connection that is needed here."""

    def execute_fetchall(self, sql: str, parameters: Iterable[Any] | None = None, /) -> Awaitable[Iterable[Any]]:
        """Run one statement; all its rows."""
        ...

    def executescript(self, sql_script: str, /) -> Awaitable[Any]:
        """Run several."""
        ...


def uri(path: Path, read_only: bool) -> str:
    """How SQLite is told what it may do to the file.

    Even to read, it wants to lay a file beside one in write-ahead mode; where it may not, and no log is waiting there,
    nobody can be writing either.
    """
    if not read_only:
        return f"{path.absolute().as_uri()}?mode=rwc"
    alone = not path.with_name(f"{path.name}-wal").exists()
    still = "&immutable=1" if alone and not os.access(path.absolute().parent, os.W_OK) else ""
    return f"{path.absolute().as_uri()}?mode=ro{still}"


async def prepare(connection: Connection, path: str, read_only: bool, migrations: tuple[str, ...]) -> None:
    """Make sure that the file can be used, and bring it up to date when it is to be written.

    Whose file it is comes before anything that would change it. Raises OpenError.
    """
    version = await _version(connection, path, len(migrations))
    if read_only:
        if version == 0:
            raise ForeignFileError(path, "this file is empty, and no journal")
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
    end = await head(connection)
    if end.written > end.sequence:
        raise OpenError(path, f"records {end.sequence + 1} to {end.written} are lost; it can only be read")


async def _version(connection: Connection, path: str, newest: int) -> int:
    """The schema version; 0 for an empty file. Raises OpenError when the file is not ours or newer than we are."""
    [(application, version, tables)] = await connection.execute_fetchall(queries.IDENTITY)
    if application != APPLICATION_ID and (application or version or tables):
        raise ForeignFileError(path, "this SQLite database belongs to another program; it was left alone")
    if version > newest:
        raise NewerSchemaError(path, version, newest)
    return int(version)


async def dictionaries(connection: Connection) -> dict[int, bytes]:
    """The compression dictionaries there are, by number."""
    return dict(await connection.execute_fetchall(queries.DICTIONARIES, (0,)))


async def head(connection: Connection) -> Head:
    """Both ends, as they are in the file."""
    [(cut, cut_hash, written, sequence, hash_)] = await connection.execute_fetchall(queries.HEAD)
    if sequence is None:
        return Head(cut, cut_hash, cut, cut_hash, written or cut)
    return Head(sequence, hash_, cut, cut_hash, written or sequence)
