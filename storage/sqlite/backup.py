# SPDX-License-Identifier: Apache-2.0
"""A copy of a journal as it is at one moment, open or closed: files copied one by one might not match.

It is made under another name and gets its own when it is whole and on the disk, so a process killed meanwhile leaves
none.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING, Final

from anyio.to_thread import run_sync
from msgspec.structs import replace

from pumice.storage.errors import DamagedError, DiskFailedError, EditedCheckpointError, TakenError
from pumice.storage.journal import ChainReport, FirstBad
from pumice.storage.sqlite import queries
from pumice.storage.sqlite.failures import failing_to_open
from pumice.storage.sqlite.journal import SqliteJournal
from pumice.storage.sqlite.migrations import IDENTIFIED
from pumice.storage.sqlite.opening import uri

if TYPE_CHECKING:
    from collections.abc import Generator

    from pumice.storage.journal import Journal

COPIED: Final = 5_000
"""Records at a time."""


async def back_up(source: Path, target: Path) -> ChainReport:
    """Copy the journal to `target`, a file that does not exist yet, while its writer goes on; then check the copy.

    What the journal has lost the copy lacks, too: that is said. Edited checkpoints are left out, where
    the records say all that they said. Raises OpenError for a source that is not a journal and a target that cannot be
    made.
    """
    async with await SqliteJournal.open(source, read_only=True) as original:
        head = await original.head()
        with becoming(target) as part:
            await run_sync(_copy, source, part, target)
            report, last = await _checked(part)
    if report.whole and last < head.written:
        bad = FirstBad(last + 1, f"lost: records up to {head.written} were written")
        return replace(report, whole=False, first_bad=bad)
    return report


async def _checked(copy: Path) -> tuple[ChainReport, int]:
    """Return the check's report of the copy, and its last record. Edited checkpoints are dropped first."""
    async with await SqliteJournal.open(copy, read_only=True) as journal:
        report, head = await journal.check(), await journal.head()
        # Whole, or with bad records: leaving out helps only where all records are good and a checkpoint is not.
        if report.whole or report.records < head.sequence - head.cut:
            return report, head.sequence
        try:
            await journal.checkpoints()
            return report, head.sequence
        except EditedCheckpointError as edited:
            if not edited.is_needless(head.cut):
                return report, head.sequence
            without = tuple(checkpoint.sequence for checkpoint in edited.edited)
    async with await SqliteJournal.open(copy) as journal:
        await journal.drop_edited_checkpoints()
        return replace(await journal.check(), without=without), head.sequence


async def copy_records(source: Journal, target: SqliteJournal, after: int, hash_: bytes, through: int) -> None:
    """Copy the records above `after`, whose hash this is, up to `through` into an empty journal, under their numbers.
    Raises DamagedError for one that is lost or changed.
    """
    await target.begin_after(after, hash_)
    while after < through:
        records = await source.read(after, limit=min(COPIED, through - after))
        if not records:
            raise DamagedError(after + 1, "lost: it was to be copied")
        await target.append([stored.record for stored in records])
        after, hash_ = records[-1].sequence, records[-1].hash
    if (await target.head()).hash != hash_:
        raise DamagedError(after, "changed: the chain does not lead to it")


@contextmanager
def becoming(target: Path) -> Generator[Path]:
    """Yield a file beside the target that gets its name at the end; after an error nothing is left of it."""
    with failing_to_open(str(target)):
        _demand_free(target)
        handle, name = mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        os.close(handle)
    part = Path(name)
    try:
        yield part
        with failing_to_open(str(target)):
            _rename(part, target)
    finally:
        for left in (part, *(part.with_name(part.name + suffix) for suffix in ("-wal", "-shm", "-lock", "-journal"))):
            left.unlink(missing_ok=True)


def _demand_free(target: Path) -> None:
    if os.path.lexists(target):
        raise TakenError(str(target), "there is a file already, and it was left alone")


def _rename(part: Path, target: Path) -> None:
    """Rename without replacing a file that has come there meanwhile, where the file system can tell (hard links)."""
    # First the content, then the name: after a power cut a file of that name is whole.
    _sync(part)
    try:
        os.link(part, target)
    except FileExistsError:
        _demand_free(target)
    except OSError:
        _demand_free(target)
        part.rename(target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    """Wait until the file is on the disk; some systems cannot wait for a folder."""
    with suppress(PermissionError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _copy(source: Path, part: Path, target: Path) -> None:
    """Copy all pages in one step, as of one moment: it does not delay a writer in write-ahead mode."""
    try:
        with (
            closing(sqlite3.connect(uri(source.resolve(), True), uri=True)) as ours,
            closing(sqlite3.connect(part)) as copy,
        ):
            ours.backup(copy)
            # Older files have no column `opened`.
            if copy.execute("PRAGMA user_version").fetchone()[0] >= IDENTIFIED:
                copy.execute(queries.CLOSED)  # it is whole in itself, whatever becomes of the original
                copy.commit()
    except sqlite3.Error as problem:
        raise DiskFailedError(f"{target}: the copy failed: {problem}") from problem
