"""A copy of a journal that somebody writes meanwhile."""

# ruff: noqa: ASYNC240 - the files are small and nothing else waits for this loop

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from pumice.replay.verify import verify
from storage.errors import DiskFailedError, ForeignFileError, MissingFileError, TakenError, UnwritableError
from storage.sqlite import SqliteJournal, back_up, queries
from storage.sqlite.lock import PRIVATE
from tests.storage.examples import everything, make, records
from tests.storage.test_golden import copied
from tests.storage.test_promises import killed, log_of

pytestmark = pytest.mark.anyio


async def test_while_somebody_writes(path: Path, tmp_path: Path) -> None:
    copies = [tmp_path / f"copy{number}.db" for number in range(3)]
    async with await SqliteJournal.open(path) as journal:
        last = await journal.append(records(10))

        async def write() -> None:
            for _ in range(30):
                await journal.append(records(3))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            for copy in copies:
                report = await back_up(path, copy)
                assert report.whole
                assert report.records >= last, "what was acknowledged before is in it"
                last = report.records
        whole = await everything(journal)
    for copy in copies:
        async with await SqliteJournal.open(copy, read_only=True) as read:
            found = await everything(read)
        assert found == whole[: len(found)]
        assert copy.stat().st_mode & 0o777 == PRIVATE


async def test_what_is_in_the_write_ahead_file_alone(tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    source = copied("waiting", tmp_path)
    log = log_of(source).read_bytes()
    assert (await back_up(source, copy)).whole
    assert log_of(source).read_bytes() == log
    async with await SqliteJournal.open(copy, read_only=True) as journal:
        assert (await verify(journal)).identical


async def test_where_nothing_may_be_made_beside_it(
    path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a read-only medium: what SQLite would share with others is not made to read it."""

    def access(at: Any, mode: int) -> bool:
        return not (Path(at) == path.parent and mode == os.W_OK)

    await make(path)
    path.with_name(f"{path.name}-shm").symlink_to("nowhere/at-all")  # nor can whoever may do everything
    monkeypatch.setattr(os, "access", access)
    report = await back_up(path, tmp_path_factory.mktemp("elsewhere") / "copy.db")
    assert (report.whole, report.records) == (True, 50)


async def test_it_goes_on_from_the_copy(path: Path, tmp_path: Path) -> None:
    await make(path)
    await back_up(path, tmp_path / "copy.db")
    async with await SqliteJournal.open(tmp_path / "copy.db") as journal:
        assert await journal.append(records(1)) == 51


async def test_what_is_lost_is_not_in_the_copy_either(tmp_path: Path) -> None:
    source = tmp_path / "pumice.db"
    await killed(source)
    log_of(source).unlink()
    report = await back_up(source, tmp_path / "copy.db")
    assert report.first_bad is not None
    assert (report.whole, report.first_bad.sequence) == (False, 1)


async def test_a_copy_that_fails_leaves_nothing(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of one would be in the way of the next."""
    await make(path)
    with monkeypatch.context() as failing:
        failing.setattr(queries, "CLOSED", "no statement")
        with pytest.raises(DiskFailedError, match=r"copy\.db: the copy failed"):
            await back_up(path, tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()
    assert (await back_up(path, tmp_path / "copy.db")).whole


async def test_what_cannot_be_copied_and_where_to(path: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        await back_up(path, tmp_path / "copy.db")
    path.write_bytes(b"my shopping list\n" * 100)
    with pytest.raises(ForeignFileError):
        await back_up(path, tmp_path / "copy.db")
    path.unlink()
    await make(path)
    with pytest.raises(UnwritableError):
        await back_up(path, tmp_path / "missing" / "copy.db")
    (tmp_path / "copy.db").write_text("precious")
    with pytest.raises(TakenError, match="there is a file already"):
        await back_up(path, tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_text() == "precious"
