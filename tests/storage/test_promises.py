"""What a journal promises whatever happens to its files: what is lost is said, and nothing goes on in silence."""

# ruff: noqa: ASYNC240 - the files are small and nothing else waits for this loop

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import aclosing, closing
from pathlib import Path

import anyio
import pytest

from pumice.storage.chain import leniently
from pumice.storage.errors import DamagedError, OpenError
from pumice.storage.journal import Checkpoint
from pumice.storage.sqlite import SqliteJournal, back_up
from pumice.storage.sqlite.frames import FRAME, HEADER
from pumice.storage.sqlite.lock import beside
from tests.storage.examples import make, records, run_sql

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]
PAGE = 4096


async def killed(path: Path, appends: int = 10) -> None:
    """What a writer of so many appends, each of five records, leaves when it is killed."""
    scratch = path.parent / "scratch" / path.name
    scratch.parent.mkdir()
    if path.exists():
        shutil.copy(path, scratch)
    async with await SqliteJournal.open(scratch) as journal:
        last = (await journal.head()).sequence
        for _ in range(appends):
            last = await journal.append(records(5, last + 1))
        for file in (scratch, log_of(scratch), beside(scratch)):
            shutil.copy(file, path.parent)
    shutil.rmtree(scratch.parent)


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def flip(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)


def last_frames(path: Path, count: int) -> int:
    """Where the page of the so many-th last frame of a write-ahead file lies."""
    frames = (path.stat().st_size - HEADER.size) // (FRAME.size + PAGE)
    return HEADER.size + (frames - count) * (FRAME.size + PAGE) + FRAME.size


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what a killed writer left: `pumice.db` of 50 records and what belongs to it."""
    folder = tmp_path_factory.mktemp("crashed")
    anyio.run(killed, folder / "pumice.db")
    return folder


@pytest.fixture
def left(crashed: Path, tmp_path: Path) -> Path:
    """One like it, to do something to."""
    for file in crashed.iterdir():
        if not file.name.endswith("-shm"):
            shutil.copy(file, tmp_path)
    return tmp_path / "pumice.db"


async def test_what_a_killed_writer_left_is_whole_and_goes_on(left: Path) -> None:
    async with await SqliteJournal.open(left, read_only=True) as journal:
        assert (await journal.check()).records == 50
    async with await SqliteJournal.open(left) as journal:
        assert await journal.append(records(1, 51)) == 51
    assert not beside(left).exists(), "a clean stop leaves nothing beside it"


async def said(path: Path, first_lost: int) -> None:
    """That records are missing at the end is found by who reads, and nobody writes on."""
    async with await SqliteJournal.open(path, read_only=True) as journal:
        report = await journal.check()
        assert not report.whole
        assert report.first_bad is not None
        assert report.first_bad.sequence == first_lost
        assert "lost" in report.first_bad.why
        async with aclosing(leniently(journal)) as chunks:
            assert [told async for _, told in chunks][-1] == report, "so is who reads on as far as it goes"
    for _ in range(2):  # having said it once is no leave to go on
        with pytest.raises(OpenError, match=r"lost.*can only be read"):
            await SqliteJournal.open(path)


async def test_a_flipped_bit_in_the_write_ahead_file(left: Path) -> None:
    flip(log_of(left), last_frames(log_of(left), 5) + 100)
    async with await SqliteJournal.open(left, read_only=True) as journal:
        kept = (await journal.head()).sequence
    assert 0 < kept < 50
    await said(left, kept + 1)


async def test_one_in_its_last_append(left: Path) -> None:
    """As a power cut might leave it, but for what was told beside the journal."""
    flip(log_of(left), last_frames(log_of(left), 1) + 100)
    await said(left, 46)


async def test_a_flipped_bit_where_nothing_was_told_beside_it(left: Path) -> None:
    """A copy of the two files alone: what follows the broken page tells."""
    beside(left).unlink()
    flip(log_of(left), last_frames(log_of(left), 8) + 100)
    async with await SqliteJournal.open(left, read_only=True) as journal:
        kept = (await journal.head()).sequence
    await said(left, kept + 1)


async def test_an_append_that_the_power_cut_short_is_no_loss(left: Path) -> None:
    beside(left).unlink()
    flip(log_of(left), last_frames(log_of(left), 1) + 100)
    async with await SqliteJournal.open(left) as journal:
        assert (await journal.check()).records == 45
        assert await journal.append(records(1)) == 46


async def test_a_write_ahead_file_that_is_gone(left: Path) -> None:
    log_of(left).unlink()
    await said(left, 1)


async def test_one_that_was_cut(left: Path) -> None:
    os.truncate(log_of(left), last_frames(log_of(left), 9))
    async with await SqliteJournal.open(left, read_only=True) as journal:
        kept = (await journal.head()).sequence
    await said(left, kept + 1)


@pytest.mark.parametrize("damage", ["flipped", "gone"])
async def test_to_go_on_without_them_is_for_people_to_say(left: Path, tmp_path: Path, damage: str) -> None:
    if damage == "gone":
        log_of(left).unlink()
    else:
        flip(log_of(left), last_frames(log_of(left), 5) + 100)
    with pytest.raises(OpenError, match="To go on without them: copy what is left"):
        await SqliteJournal.open(left)
    copy = tmp_path / "copy.db"
    report = await back_up(left, copy)
    assert not report.whole
    async with await SqliteJournal.open(copy) as journal:
        assert await journal.append(records(1)) == report.records + 1
        assert (await journal.check()).whole


async def test_the_write_ahead_file_of_another_journal(left: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    await killed(other, 3)
    shutil.copy(log_of(other), log_of(left))
    beside(left).unlink()
    for read_only in (True, False):
        with pytest.raises(OpenError, match=r"another journal's"):
            await SqliteJournal.open(left, read_only=read_only)


async def test_one_that_holds_a_record_nobody_can_read(left: Path, tmp_path: Path) -> None:
    """Written there by SQLite itself: no page is damaged. It can be read up to that record, and not be written to."""
    edited = tmp_path / "edited.db"
    with closing(sqlite3.connect(left, isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("UPDATE journal SET content = x'00' WHERE sequence = 21")
        for file in (left, log_of(left)):
            shutil.copy(file, tmp_path / file.name.replace("pumice", "edited"))
    async with await SqliteJournal.open(edited, read_only=True) as journal:
        assert [stored.sequence for stored in await journal.read()] == [*range(1, 21)]
    with pytest.raises(OpenError, match=r"record 21.*it can only be read"):
        await SqliteJournal.open(edited)


async def test_one_that_says_nothing_of_whose_it_is(left: Path, tmp_path: Path) -> None:
    """Another journal was continued and killed: its log holds pages of records, and not the page with its identity."""
    other = tmp_path / "other.db"
    await make(other)
    await make(left.with_name("mine.db"))
    await killed(other, 3)
    mine = left.with_name("mine.db")
    shutil.copy(log_of(other), log_of(mine))
    with pytest.raises(OpenError, match=r"damaged or another journal's|another journal's"):
        await SqliteJournal.open(mine)


async def test_a_mark_of_another_journal_says_nothing(left: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    await make(other, 1, 1)
    shutil.copy(beside(left), beside(other))
    async with await SqliteJournal.open(other, read_only=True) as journal:
        assert (await journal.check()).whole
    async with await SqliteJournal.open(other) as journal:
        assert await journal.append(records(1)) == 2


@pytest.mark.parametrize("edit", ["content = x'00'", "at = at + 1"])
async def test_an_edited_checkpoint_is_not_believed(path: Path, edit: str) -> None:
    await make(path)
    async with await SqliteJournal.open(path) as journal:
        await journal.save_checkpoint(Checkpoint(20, 1.0, b"state"))
    run_sql(path, f"UPDATE checkpoint SET {edit}")
    async with await SqliteJournal.open(path, read_only=True) as journal:
        report = await journal.check()
        with pytest.raises(DamagedError, match="record 20: the checkpoint"):
            await journal.checkpoints()
    assert report.first_bad is not None
    assert report.first_bad.sequence == 20


async def test_nor_is_one_that_was_put_there(path: Path) -> None:
    await make(path)
    run_sql(path, "INSERT INTO checkpoint VALUES (20, 1.0, x'00')")
    async with await SqliteJournal.open(path, read_only=True) as journal:
        assert not (await journal.check()).whole
