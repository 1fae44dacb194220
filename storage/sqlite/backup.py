"""A copy of a journal as it is at one moment, be it open or not: what was copied file by file might be torn."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from anyio.to_thread import run_sync

from storage.errors import DiskFailedError, TakenError
from storage.journal import ChainReport, FirstBad
from storage.sqlite import queries
from storage.sqlite.failures import failing_to_open
from storage.sqlite.journal import SqliteJournal
from storage.sqlite.lock import PRIVATE
from storage.sqlite.migrations import IDENTIFIED
from storage.sqlite.opening import uri

if TYPE_CHECKING:
    from pathlib import Path


async def back_up(source: Path, target: Path) -> ChainReport:
    """Copy the journal to `target`, a file that is not there yet, while whoever writes it goes on; then check the copy.

    What the journal has lost the copy lacks, too: that is said. Raises OpenError for a source that is no journal and a
    target that cannot be made.
    """
    async with await SqliteJournal.open(source, read_only=True) as original:
        head = await original.head()
        await run_sync(_copy, source, target)
    async with await SqliteJournal.open(target, read_only=True) as copy:
        report, last = await copy.check(), (await copy.head()).sequence
    if report.whole and last < head.written:
        return ChainReport(
            False, report.records, FirstBad(last + 1, f"lost: records up to {head.written} were written")
        )
    return report


def _copy(source: Path, target: Path) -> None:
    """All pages in one go, which is what one moment holds: a writer in write-ahead mode is not held up by it."""
    with failing_to_open(str(target)):
        try:
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE))
        except FileExistsError as problem:
            raise TakenError(str(target), "there is a file already, and it was left alone") from problem
    try:
        with (
            closing(sqlite3.connect(uri(source.resolve(), True), uri=True)) as ours,
            closing(sqlite3.connect(target)) as copy,
        ):
            ours.backup(copy)
            if copy.execute("PRAGMA user_version").fetchone()[0] >= IDENTIFIED:
                copy.execute(queries.CLOSED)  # it is whole in itself, whatever becomes of the original
                copy.commit()
    except BaseException as problem:
        target.unlink(missing_ok=True)
        if isinstance(problem, sqlite3.Error):
            raise DiskFailedError(f"{target}: the copy failed: {problem}") from problem
        raise
