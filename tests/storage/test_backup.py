"""A copy of a journal that somebody writes meanwhile."""

# ruff: noqa: ASYNC240 - the files are small and nothing else waits for this loop

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from pumice.questions.replay.verify import verify
from pumice.storage.errors import DiskFailedError, ForeignFileError, MissingFileError, TakenError, UnwritableError
from pumice.storage.journal import Checkpoint
from pumice.storage.sqlite import SqliteJournal, back_up, backup, queries
from pumice.storage.sqlite.lock import PRIVATE
from tests.storage.examples import everything, make, records, run_sql
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


def only_these(folder: Path) -> bool:
    """Journal and copy, and what SQLite lays beside a journal that somebody reads."""
    return {file.name.partition("-")[0] for file in folder.iterdir()} == {"copy.db", "pumice.db"}


async def checkpointed(path: Path, *sequences: int, cut: int = 0) -> None:
    await make(path)
    async with await SqliteJournal.open(path) as journal:
        for sequence in sequences:
            await journal.save_checkpoint(Checkpoint(sequence, float(sequence), b"state %d" % sequence))
        await journal.cut(cut)


@pytest.mark.parametrize(
    ("edited", "cut", "left"),
    [("sequence = 40", 0, [20]), ("sequence = 40", 20, [20]), ("sequence = 20", 20, [40]), ("1", 0, [])],
)
async def test_an_edited_checkpoint_is_left_out_of_the_copy(
    path: Path, tmp_path: Path, edited: str, cut: int, left: list[int]
) -> None:
    await checkpointed(path, 20, 40, cut=cut)
    run_sql(path, f"UPDATE checkpoint SET content = x'00' WHERE {edited}")
    async with await SqliteJournal.open(path, read_only=True) as journal:
        report = await journal.check()
        kept = await everything(journal)
    assert report.first_bad is not None
    assert "all records are whole: go on with a copy" in report.first_bad.why
    copied = await back_up(path, tmp_path / "copy.db")
    assert copied.whole
    assert sorted(copied.without) == [each for each in (20, 40) if each not in left]
    async with await SqliteJournal.open(tmp_path / "copy.db") as copy:
        assert [each.sequence for each in await copy.checkpoints()] == left
        assert await everything(copy) == kept
        assert await copy.append(records(1)) == kept[-1].sequence + 1
    assert only_these(tmp_path)


async def test_one_that_nothing_can_take_the_place_of_stays(path: Path, tmp_path: Path) -> None:
    await checkpointed(path, 40, 45, cut=40)
    run_sql(path, "UPDATE checkpoint SET content = x'00'")
    report = await back_up(path, tmp_path / "copy.db")
    assert not report.whole
    assert report.first_bad is not None
    assert "the records that it stood for were cut" in report.first_bad.why
    assert run_sql(tmp_path / "copy.db", "SELECT count(*) FROM checkpoint") == [(2,)]


async def test_a_record_that_is_bad_comes_before_an_edited_checkpoint(path: Path, tmp_path: Path) -> None:
    await checkpointed(path, 20, 40)
    run_sql(path, "UPDATE checkpoint SET content = x'00'", "UPDATE journal SET at = 5 WHERE sequence = 33")
    report = await back_up(path, tmp_path / "copy.db")
    assert report.first_bad is not None
    assert (report.first_bad.sequence, report.without) == (33, ())


async def test_a_copy_whose_name_is_taken_meanwhile_leaves_that_file_alone(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make(path)
    target = tmp_path / "copy.db"

    def taken(source: Path, part: Path, named: Path) -> None:
        copy(source, part, named)
        named.write_text("precious")

    copy = backup._copy  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(backup, "_copy", taken)
    with pytest.raises(TakenError):
        await back_up(path, target)
    assert target.read_text() == "precious"
    assert only_these(tmp_path)


async def test_a_copy_where_files_have_one_name_only(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError("no hard links here")

    await make(path)
    monkeypatch.setattr(os, "link", refused)
    assert (await back_up(path, tmp_path / "copy.db")).whole
    assert only_these(tmp_path)
