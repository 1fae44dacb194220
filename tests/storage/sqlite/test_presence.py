"""Whose a journal is while it is open: one writer by whatever name, of the file that it opened."""

# ruff: noqa: ASYNC240 - the files are small and nothing else waits for this loop

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pumice.storage.errors import ClosedError, ForeignFileError, JournalGoneError, LockedError, OpenError
from pumice.storage.sqlite import SqliteJournal
from pumice.storage.sqlite.lock import PRIVATE, beside
from tests.storage.examples import make, records
from tests.storage.test_promises import killed, log_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
async def test_one_writer_by_whatever_name(path: Path, tmp_path: Path, link: object) -> None:
    await make(path)
    other = tmp_path / "elsewhere" / "other.db"
    other.parent.mkdir()
    assert callable(link)
    link(path, other)
    async with await SqliteJournal.open(path):
        with pytest.raises(LockedError, match=f"process {os.getpid()}"):
            await SqliteJournal.open(other)
        made = f"anyio.run(SqliteJournal.open, {str(other)!r})"
        code = f"import anyio; from pumice.storage.sqlite import SqliteJournal; {made}"
        assert "LockedError" in told_by(code)
    async with await SqliteJournal.open(other) as journal:
        assert await journal.append(records(1)) == 51


def told_by(code: str) -> str:
    """What another process says on stderr."""
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False).stderr


@pytest.fixture
async def running(anyio_backend: str, path: Path) -> AsyncGenerator[SqliteJournal]:
    """A journal that somebody writes."""
    journal = await SqliteJournal.open(path)
    await journal.append(records(1))
    yield journal
    await journal.close()


@pytest.mark.parametrize("suffix", ["", "-wal"])
@pytest.mark.parametrize("replaced", [False, True])
async def test_a_journal_that_is_gone_acknowledges_nothing(
    running: SqliteJournal, path: Path, suffix: str, replaced: bool
) -> None:
    await running.confirm()
    file = path.with_name(path.name + suffix)
    if replaced:
        shutil.copy(file, file.with_name("copy"))
        file.with_name("copy").rename(file)
    else:
        file.unlink()
    with pytest.raises(JournalGoneError, match="replaced" if replaced else "removed"):
        await running.append(records(1))
    with pytest.raises(ClosedError):
        await running.append(records(1))


async def test_it_is_noticed_without_any_append(running: SqliteJournal, path: Path) -> None:
    path.unlink()
    with pytest.raises(JournalGoneError):
        await running.confirm()


async def test_closing_a_journal_that_is_gone_takes_nothing_from_its_successor(path: Path) -> None:
    old = await SqliteJournal.open(path)
    await old.append(records(3))
    for file in (path, log_of(path), path.with_name(f"{path.name}-shm"), beside(path)):
        file.unlink()
    with pytest.raises(JournalGoneError):
        await old.append(records(1))
    await killed(path, 2)
    before = log_of(path).read_bytes()
    assert before
    await old.close()
    assert log_of(path).read_bytes() == before
    async with await SqliteJournal.open(path) as journal:
        assert (await journal.head()).sequence == 10


async def test_files_are_private(path: Path) -> None:
    before = os.umask(0)
    try:
        async with await SqliteJournal.open(path) as journal:
            await journal.append(records(1))
            assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {PRIVATE}
    finally:
        os.umask(before)


async def test_an_empty_file_is_no_journal_to_read(path: Path) -> None:
    path.touch()
    with pytest.raises(ForeignFileError, match="this file is empty, and no journal"):
        await SqliteJournal.open(path, read_only=True)


async def test_what_a_killed_writer_wrote_ahead_is_missed_under_another_name(path: Path, tmp_path: Path) -> None:
    """The records lie in the write-ahead file beside the name by which it wrote: no other name leads there."""
    await killed(path)
    other = tmp_path / "other" / "j.db"
    other.parent.mkdir()
    os.link(path, other)
    with pytest.raises(OpenError, match=r"it was not closed, and its write-ahead file \(-wal\) is not beside j.db"):
        await SqliteJournal.open(other)
    async with await SqliteJournal.open(other, read_only=True) as looking:
        report, head = await looking.check(), await looking.head()
    assert not report.whole or head.written > head.sequence
    with pytest.raises(OpenError):  # having looked once changes nothing
        await SqliteJournal.open(other)
    async with await SqliteJournal.open(path) as journal:
        sequence = (await journal.head()).sequence
    assert sequence > head.sequence
    async with await SqliteJournal.open(other) as journal:
        assert (await journal.head()).sequence == sequence, "closed, every name is as good"


async def test_a_journal_that_an_older_pumice_closed_is_closed(path: Path) -> None:
    await make(path)
    with contextlib.closing(sqlite3.connect(path)) as old:
        old.execute("UPDATE anchor SET opened = 7")
        old.commit()
    async with await SqliteJournal.open(path) as journal:
        await journal.append(records(1))
    with contextlib.closing(sqlite3.connect(path)) as closed:
        assert closed.execute("SELECT opened FROM anchor").fetchone() == (9,)
