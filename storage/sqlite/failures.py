# SPDX-License-Identifier: Apache-2.0
"""Translation of SQLite's errors to this layer's errors."""

from __future__ import annotations

import sqlite3
import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pumice.storage.errors import (
    DamagedError,
    DiskFailedError,
    DiskFullError,
    ForeignFileError,
    LockedError,
    OpenError,
    ReadOnlyError,
    StorageError,
    UnwritableError,
)

if TYPE_CHECKING:
    from collections.abc import Generator

MANGLED: Final = (TypeError, ValueError, OverflowError, LookupError, struct.error)
"""Errors that decoding raises for values that differ from the written ones."""

PRIMARY: Final = 0xFF
"""The low byte of SQLite's extended codes is the primary one."""


@contextmanager
def failing_to_open(path: str) -> Generator[None]:
    """Turn every error while opening into an OpenError about `path`."""
    try:
        yield
    except sqlite3.Error as problem:
        raise _open_error(path, problem) from problem
    # Before OSError, of which it is one: here its text names the holder of the lock.
    except BlockingIOError as problem:
        raise LockedError(path, f"the journal is open in {problem}") from problem
    except OSError as problem:
        raise UnwritableError(path, f"cannot be written: {problem.strerror or problem}") from problem
    except (DamagedError, *MANGLED) as problem:
        raise OpenError(path, f"cannot be read: {problem}") from problem


@contextmanager
def using() -> Generator[None]:
    """Translate errors while reading and writing."""
    try:
        yield
    except sqlite3.Error as problem:
        raise _use_error(problem) from problem


@contextmanager
def reading() -> Generator[None]:
    """Report decoding errors of a file's content as damage: a changed file is not the caller's mistake."""
    with using():
        try:
            yield
        except MANGLED as problem:
            raise DamagedError(0, f"the database file itself is broken ({problem})") from problem


def _open_error(path: str, problem: sqlite3.Error) -> OpenError:
    if getattr(problem, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_ROLLBACK:
        return ForeignFileError(
            path, "not a journal yet: its writer was stopped while making it. Open it to write (pumice run --db)"
        )
    match _code(problem):
        case sqlite3.SQLITE_NOTADB:
            return ForeignFileError(path, "this is not a SQLite database, so not a Pumice journal; it was left alone")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return UnwritableError(path, "cannot be written: it, its folder or its disk is read-only")
        case sqlite3.SQLITE_CANTOPEN:
            return UnwritableError(path, "cannot be opened: missing, or no permission to read or create it")
        case sqlite3.SQLITE_FULL:
            return UnwritableError(path, "cannot be written: the disk is full")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return LockedError(path, "another program holds a lock on it")
        case _:
            return OpenError(path, f"cannot be read: {problem}")


def _use_error(problem: sqlite3.Error) -> StorageError:
    match _code(problem):
        case sqlite3.SQLITE_FULL:
            return DiskFullError("the disk is full: nothing of the append was written, the journal is intact")
        case sqlite3.SQLITE_READONLY:
            return ReadOnlyError("the disk became read-only: nothing of the append was written, the journal is intact")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return DamagedError(0, f"the database file itself is broken ({problem})")
        case _:
            return DiskFailedError(f"the journal's database failed: {problem}")


def _code(problem: sqlite3.Error) -> int:
    return int(getattr(problem, "sqlite_errorcode", 0)) & PRIMARY
