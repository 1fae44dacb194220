"""What retention frees goes back to the disk, and a file from before that was possible is written anew once."""

# ruff: noqa: ASYNC240 - the files are small and nothing else waits for this loop

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from pumice.storage.journal import Checkpoint, Record
from pumice.storage.sqlite import SqliteJournal, opening, queries
from tests.storage.examples import everything, run_sql

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


async def filled(path: Path, appends: int = 60) -> None:
    """A closed journal of so many appends of 50 records, of which nothing can be packed away."""
    chance = random.Random(1)
    async with await SqliteJournal.open(path) as journal:
        for _ in range(appends):
            await journal.append([Record("api", chance.randbytes(400), place) for place in range(50)])


async def cut(path: Path, through: int) -> None:
    async with await SqliteJournal.open(path) as journal:
        kept = await everything(journal)
        await journal.save_checkpoint(Checkpoint(through + 50, 1.0, b"state"))
        assert await journal.cut(through) == through
        [(free,)] = await journal._loop.call(journal._database._rows, queries.FREE_PAGES)  # pyright: ignore[reportPrivateUsage]
        assert free == 0
        assert (await journal.check()).whole
        assert (await everything(journal))[: len(kept) - through] == kept[through:]


async def test_a_file_after_retention_is_as_long_as_what_is_in_it(path: Path) -> None:
    await filled(path)
    before = path.stat().st_size
    await cut(path, 2500)
    assert path.stat().st_size < before / 4
    assert run_sql(path, "PRAGMA freelist_count", "PRAGMA integrity_check") == [(0,), ("ok",)]


async def test_a_file_while_it_is_open_shrinks_as_well(path: Path) -> None:
    await filled(path)
    before = path.stat().st_size
    async with await SqliteJournal.open(path) as journal:
        await journal.save_checkpoint(Checkpoint(2900, 1.0, b"state"))
        await journal.cut(2800)
        assert path.stat().st_size < before / 4
        assert await journal.append([Record("api", b"")]) == 3002


async def test_an_append_gets_its_turn_between_two_steps(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are given back a few at a time."""
    monkeypatch.setattr(queries, "GIVE_BACK", "PRAGMA incremental_vacuum(10)")
    await filled(path)
    async with await SqliteJournal.open(path) as journal:
        database = journal._database  # pyright: ignore[reportPrivateUsage]
        write, steps = database._write, list[str]()  # pyright: ignore[reportPrivateUsage]

        async def watched(*statements: queries.Statement) -> None:
            steps.extend(sql for sql, _ in statements)
            await write(*statements)

        monkeypatch.setattr(database, "_write", watched)
        await journal.save_checkpoint(Checkpoint(2900, 1.0, b"state"))
        await journal.cut(2800)
        assert steps.count(queries.GIVE_BACK) > 5


async def of_old(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(queries, "SHRINKING", "PRAGMA auto_vacuum")
        await filled(path)
    assert run_sql(path, "PRAGMA auto_vacuum") == [(0,)]


async def test_a_file_that_cannot_shrink_is_written_anew_when_opened(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await of_old(path, monkeypatch)
    async with await SqliteJournal.open(path, read_only=True) as journal:
        before = await everything(journal)
    await cut(path, 2500)
    async with await SqliteJournal.open(path, read_only=True) as journal:
        assert (await everything(journal))[:500] == before[2500:]
    assert run_sql(path, "PRAGMA auto_vacuum", "PRAGMA freelist_count") == [(2,), (0,)]


async def test_a_large_file_that_cannot_shrink_stays_as_it_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await of_old(path, monkeypatch)
    monkeypatch.setattr(opening, "REBUILT_PAGES", 10)
    async with await SqliteJournal.open(path) as journal:
        await journal.save_checkpoint(Checkpoint(2900, 1.0, b"state"))
        assert await journal.cut(2800) == 2800
        assert (await journal.check()).whole
    assert run_sql(path, "PRAGMA auto_vacuum") == [(0,)]


async def test_a_file_that_is_broken_inside_is_not_written_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await of_old(path, monkeypatch)
    monkeypatch.setattr(queries, "REBUILD", "no statement")
    async with await SqliteJournal.open(path) as journal:
        assert await journal.append([Record("api", b"")]) == 3001
