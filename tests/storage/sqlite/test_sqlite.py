"""The journal in a file: whose it is, who may open it, and what becomes of it when things go wrong."""

# ruff: noqa: ASYNC240 - the files are small and nothing else waits for this loop

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import TYPE_CHECKING
from unittest.mock import Mock

import anyio
import pytest

from pumice.storage.errors import (
    ClosedError,
    DamagedError,
    DiskFailedError,
    DiskFullError,
    ForeignFileError,
    LockedError,
    NewerSchemaError,
    OpenError,
    ReadOnlyError,
    StorageError,
    UnwritableError,
)
from pumice.storage.journal import Record
from pumice.storage.sqlite import SqliteJournal, opening
from pumice.storage.sqlite.migrations import APPLICATION_ID, MIGRATIONS
from tests.storage.examples import contents, everything, make, record, records, run_sql

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


async def test_the_write_ahead_file_gives_back_what_a_large_append_took(path: Path) -> None:
    log = path.with_name(f"{path.name}-wal")
    async with await SqliteJournal.open(path) as journal:
        await journal.append([Record("api", random.Random(1).randbytes(24_000_000))])
        large = log.stat().st_size
        for each in records(3, 2):
            await journal.append([each])
        assert log.stat().st_size <= 16 << 20 < 24_000_000 < large


async def test_it_is_there_after_closing_and_opening(path: Path) -> None:
    await make(path)
    async with await SqliteJournal.open(path) as journal:
        assert await journal.append(records(1, 51)) == 51
        assert [contents(stored) for stored in await everything(journal)] == records(51)
        assert (await journal.check()).whole
    assert sorted(each.name for each in path.parent.iterdir()) == ["pumice.db"], "nothing is left beside it"


async def test_the_file_says_whose_it_is_and_is_safe(path: Path) -> None:
    async with await SqliteJournal.open(path) as journal:
        await journal.append(records(1))
        assert run_sql(path, "PRAGMA journal_mode", "PRAGMA application_id", "PRAGMA user_version") == [
            ("wal",),
            (APPLICATION_ID,),
            (len(MIGRATIONS),),
        ]


# --- what cannot be opened ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("read_only", [False, True])
async def test_a_file_that_is_no_database_is_left_alone(path: Path, read_only: bool) -> None:
    path.write_bytes(b"my shopping list\n" * 100)
    with pytest.raises(ForeignFileError, match="not a SQLite database"):
        await SqliteJournal.open(path, read_only=read_only)
    assert path.read_bytes() == b"my shopping list\n" * 100


@pytest.mark.parametrize("mark", ["CREATE TABLE list (item)", "PRAGMA application_id = 7", "PRAGMA user_version = 3"])
async def test_a_database_of_another_program_is_left_alone(path: Path, mark: str) -> None:
    run_sql(path, mark)
    before = path.read_bytes()
    with pytest.raises(ForeignFileError, match="belongs to another program"):
        await SqliteJournal.open(path)
    assert path.read_bytes() == before


async def test_a_newer_schema_is_refused_by_name(path: Path) -> None:
    await make(path)
    run_sql(path, "PRAGMA user_version = 99")
    with pytest.raises(NewerSchemaError, match="schema version 99 is newer than 2") as refusal:
        await SqliteJournal.open(path)
    assert (refusal.value.found, refusal.value.known) == (99, len(MIGRATIONS))


async def test_an_empty_file_becomes_a_journal(path: Path) -> None:
    path.touch()
    await make(path)


async def test_places_where_no_file_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnwritableError, match="No such file or directory"):
        await SqliteJournal.open(tmp_path / "missing" / "pumice.db")
    with pytest.raises(UnwritableError, match="Not a directory"):
        await SqliteJournal.open(tmp_path / "file" / "pumice.db")
    with pytest.raises(OpenError, match="folder"):
        await SqliteJournal.open(tmp_path)
    with pytest.raises(OpenError, match="does not exist"):
        await SqliteJournal.open(tmp_path / "absent.db", read_only=True)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file"]


async def test_a_file_that_cannot_be_written_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests may run as root, to whom no file is read-only; SQLite is asked for a read-only handle instead."""
    await make(path)
    read_only = opening.uri(path, True)
    monkeypatch.setattr(opening, "uri", Mock(return_value=read_only))
    with pytest.raises(UnwritableError, match="read-only"):
        await SqliteJournal.open(path)


async def test_a_new_one_for_which_the_disk_has_no_room_is_refused(path: Path) -> None:
    with pytest.raises(UnwritableError, match="disk is full"):
        await SqliteJournal.open(path, migrations=(f"PRAGMA max_page_count = 1; {MIGRATIONS[0]}", *MIGRATIONS[1:]))


async def test_the_second_to_open_it_for_writing_is_refused(path: Path) -> None:
    async with await SqliteJournal.open(path) as first:
        with pytest.raises(LockedError, match=r"open in process \d+") as refusal:
            await SqliteJournal.open(path)
        assert refusal.value.path == str(path)
        await first.append(records(1))
    async with await SqliteJournal.open(path) as second:
        assert (await second.head()).sequence == 1


async def test_readers_follow_the_writer(path: Path) -> None:
    async with await SqliteJournal.open(path) as writer:
        await writer.append(records(3))
        async with await SqliteJournal.open(path, read_only=True) as reader:
            assert len(await reader.read()) == 3
            await writer.append(records(2, 4))
            assert [contents(stored) for stored in await reader.read(3)] == records(2, 4)
            assert (await reader.check()).records == 5
            with pytest.raises(ReadOnlyError):
                await reader.append(records(1))


# --- failures in use ------------------------------------------------------------------------------------------------


async def limit_pages(journal: SqliteJournal, extra: int | None) -> None:
    """What a full disk does: the database may not grow (by more than some pages)."""
    database = journal._database  # pyright: ignore[reportPrivateUsage]
    [(pages,)] = await journal._loop.call(database._rows, "PRAGMA page_count")  # pyright: ignore[reportPrivateUsage]
    most = 1 << 30 if extra is None else pages + extra
    await journal._loop.call(database._rows, f"PRAGMA max_page_count = {most}")  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("count", [500, 3000])
async def test_a_full_disk_loses_nothing_and_writes_nothing(path: Path, opened: SqliteJournal, count: int) -> None:
    await opened.append(records(20))
    await limit_pages(opened, 2)
    with pytest.raises(DiskFullError, match="disk is full"):
        await opened.append(records(count, 21))
    assert (await opened.head()).sequence == 20
    await opened.append([record(21)])
    await limit_pages(opened, None)
    assert await opened.append(records(count, 22)) == count + 21
    assert [contents(stored) for stored in await everything(opened)] == records(count + 21)
    assert (await opened.check()).whole
    await opened.close()
    async with await SqliteJournal.open(path) as again:
        assert (await again.check()).records == count + 21


async def test_every_commit_waits_for_the_disk(opened: SqliteJournal) -> None:
    database = opened._database  # pyright: ignore[reportPrivateUsage]
    [(level,)] = await opened._loop.call(database._rows, "PRAGMA synchronous")  # pyright: ignore[reportPrivateUsage]
    assert level == 2, "FULL; a kill does not show the difference, a power cut does"


async def test_a_disk_gone_read_only(path: Path, opened: SqliteJournal) -> None:
    await opened.append(records(2))
    database = opened._database  # pyright: ignore[reportPrivateUsage]
    await opened._loop.call(database._rows, "PRAGMA query_only = 1")  # pyright: ignore[reportPrivateUsage]
    for count in (1, 2000):
        with pytest.raises(ReadOnlyError, match="read-only"):
            await opened.append(records(count))
    assert len(await opened.read()) == 2
    await opened.close()
    assert path.with_name(f"{path.name}-wal").exists(), "nobody could write into the main file that it was closed"
    async with await SqliteJournal.open(path) as again:
        assert await again.append(records(1, 3)) == 3
        assert (await again.check()).whole


async def test_after_a_failure_of_unknown_effect_nothing_more_is_written(path: Path, opened: SqliteJournal) -> None:
    await opened.append(records(2))
    run_sql(
        path,
        "DELETE FROM journal WHERE sequence = 2",
        "CREATE TRIGGER no BEFORE INSERT ON journal BEGIN SELECT RAISE(FAIL, 'x'); END",
    )
    with pytest.raises(DiskFailedError):
        await opened.append(records(1))
    with pytest.raises(ClosedError, match="failed earlier"):
        await opened.append(records(1))


# --- many callers, cancelled callers --------------------------------------------------------------------------------


async def test_many_concurrent_writers(opened: SqliteJournal) -> None:
    lasts: list[int] = []

    async def write(writer: int) -> None:
        for number in range(10):
            last = await opened.append([Record("api", b"%d" % writer, number), Record("api", b"", number)])
            lasts.append(last)

    async with anyio.create_task_group() as writers:
        for writer in range(64):
            writers.start_soon(write, writer)
    assert sorted(lasts) == list(range(2, 1281, 2))
    stored = await everything(opened)
    for writer in range(64):
        mine = [each.cause for each in stored if each.payload == b"%d" % writer]
        assert mine == list(range(10)), "each writer's own records are in its order"
    assert (await opened.check()).whole


async def test_a_cancelled_append_is_whole_or_absent(opened: SqliteJournal) -> None:
    acknowledged: list[int] = []
    for number in range(41):
        # Two packs, so a transaction of several statements; the delays sweep through all of it.
        with anyio.move_on_after(number * 0.0004):
            await opened.append([Record("api", b"%d" % number, number)] * 1100)
            acknowledged.append(number)
    await opened.append([Record("api", b"after")])
    stored = await everything(opened)
    counts = {number: sum(each.payload == b"%d" % number for each in stored) for number in range(41)}
    assert set(counts.values()) <= {0, 1100}, counts
    assert all(counts[number] == 1100 for number in acknowledged)
    assert len(acknowledged) < 41, "some were cancelled"
    assert (await opened.check()).whole


async def test_a_task_that_asyncio_cancels_leaves_its_append_whole(path: Path, anyio_backend_name: str) -> None:
    """No scope: `wait_for` and Ctrl-C strike the task itself."""
    if anyio_backend_name != "asyncio":
        pytest.skip("trio has no cancellation beside its scopes")
    async with await SqliteJournal.open(path) as journal:
        for number in range(41):
            append = asyncio.ensure_future(journal.append([Record("api", b"%d" % number, number)] * 1100))
            await asyncio.sleep(number * 0.0004)
            append.cancel()
            with suppress(asyncio.CancelledError):
                await append
        await journal.append([Record("api", b"after")])
        stored = await everything(journal)
        counts = {number: sum(each.payload == b"%d" % number for each in stored) for number in range(41)}
        assert set(counts.values()) <= {0, 1100}, counts
        assert (await journal.check()).whole
    async with await SqliteJournal.open(path) as journal:
        assert len(await everything(journal)) == len(stored)


async def test_opening_and_closing_may_be_cancelled(path: Path) -> None:
    for delay in range(12):
        with anyio.move_on_after(delay * 0.001):
            async with await SqliteJournal.open(path) as journal:
                await journal.append(records(1))
                await anyio.sleep(1)
    async with await SqliteJournal.open(path) as journal:
        assert (await journal.check()).whole


async def test_errors_are_of_one_tree() -> None:
    assert issubclass(OpenError, StorageError)
    assert str(DamagedError(7, "lost")) == "the journal is damaged at record 7: lost"


async def test_only_an_empty_journal_can_begin_after_another(path: Path) -> None:
    """The records of one that holds some already would be there, and never be found again."""
    elsewhere = bytes(range(16))
    async with await SqliteJournal.open(path) as journal:
        await journal.begin_after(40, elsewhere)
        head = await journal.head()
        assert (head.sequence, head.hash, head.cut, head.cut_hash) == (40, elsewhere, 40, elsewhere)
        with pytest.raises(ValueError, match="empty"):
            await journal.begin_after(60, elsewhere)
        assert await journal.append(records(2)) == 42
        with pytest.raises(ValueError, match="empty"):
            await journal.begin_after(60, elsewhere)
        assert [each.sequence for each in await everything(journal)] == [41, 42]
        assert (await journal.check()).whole
