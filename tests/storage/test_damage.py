"""Whatever is done to the file is found, and named by the number of the first bad record."""

# ruff: noqa: ASYNC240 - the files are small and nothing else waits for this loop

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pumice.storage.errors import DamagedError, OpenError, StorageError
from pumice.storage.journal import Checkpoint
from pumice.storage.sqlite import SqliteJournal
from tests.storage.examples import make, pod, run_sql

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("damage", "sequence", "why"),
    [
        ("UPDATE journal SET kind = 'cycle' WHERE sequence = 33", 33, "changed"),
        ("UPDATE journal SET cause = 5 WHERE sequence = 33", 33, "changed"),
        ("UPDATE journal SET at = 5 WHERE sequence = 33", 33, "changed"),
        ("UPDATE journal SET size = size - 1 WHERE sequence = 33", 33, "changed"),
        ("UPDATE journal SET hash = zeroblob(16) WHERE sequence = 33", 33, "changed"),
        ("UPDATE journal SET content = zeroblob(50) WHERE sequence = 31", 31, "unreadable"),
        ("UPDATE journal SET content = content || x'00' WHERE sequence = 31", 40, "unreadable"),
        ("UPDATE journal SET content = NULL WHERE sequence = 31", 31, "unreadable"),
        ("UPDATE journal SET content = 'text' WHERE sequence = 31", 31, "unreadable"),
        ("UPDATE journal SET hash = 'text' WHERE sequence = 33", 33, "changed"),
        ("UPDATE journal SET kind = CAST(x'ff' AS TEXT) WHERE sequence = 33", 33, "changed"),
        ("UPDATE journal SET kind = x'ff', at = 'text', cause = 'text' WHERE sequence = 33", 33, "changed"),
        ("UPDATE journal SET lead = 1 << 60 WHERE sequence = 33", 33, "lost"),
        ("UPDATE journal SET lead = -1, start = 'x' WHERE sequence = 33", 33, "changed"),
        ("UPDATE journal SET size = -1 WHERE sequence = 33", 33, "changed"),
        ("UPDATE anchor SET hash = 'text'", 1, "changed"),
        ("UPDATE journal SET packing = 9 WHERE sequence = 31", 31, "dictionary 9 is missing"),
        ("DELETE FROM journal WHERE sequence = 33", 33, "lost"),
        ("DELETE FROM journal WHERE sequence = 31", 31, "lost"),
        ("DELETE FROM journal WHERE sequence = 1", 1, "lost"),
        ("DELETE FROM journal WHERE sequence > 40", 41, "lost"),
        ("DELETE FROM journal", 1, "lost"),
        ("UPDATE journal SET sequence = 99 WHERE sequence = 50", 50, "lost"),
    ],
)
async def test_damage_is_found_and_named(path: Path, damage: str, sequence: int, why: str) -> None:
    await make(path)
    run_sql(path, damage)
    async with await SqliteJournal.open(path, read_only=True) as journal:
        report = await journal.check()
    assert not report.whole
    assert report.records == sequence - 1
    assert report.first_bad is not None
    assert report.first_bad.sequence == sequence
    assert why in report.first_bad.why


async def read_all(path: Path) -> None:
    """Read whatever a journal has. Raises StorageError."""
    async with await SqliteJournal.open(path, read_only=True) as journal:
        report = await journal.check()
        if report.first_bad is not None:
            raise DamagedError(report.first_bad.sequence, report.first_bad.why)
        await journal.head()
        await journal.read()
        await journal.last("api")
        await journal.checkpoints()


UNTYPED = (
    "CREATE TABLE other AS SELECT * FROM {table}",
    "DROP TABLE {table}",
    "ALTER TABLE other RENAME TO {table}",
)
"""Columns without a type and a key, as a changed schema may leave them: each value may be of any sort."""


@pytest.mark.parametrize("value", ["NULL", "'text'", "x'ff'", "99.5", "1e300"])
@pytest.mark.parametrize(
    ("table", "column"), [("journal", "sequence"), ("checkpoint", "sequence"), ("dictionary", "number")]
)
async def test_numbers_of_another_sort_end_in_errors_of_this_layer(
    path: Path, table: str, column: str, value: str
) -> None:
    async with await SqliteJournal.open(path) as journal:
        for number in range(100):
            await journal.append([pod(number)])
        await journal.save_checkpoint(Checkpoint(40, 1.0, b"state"))
    change = f"UPDATE {table} SET {column} = {value} WHERE {column} = (SELECT min({column}) FROM {table})"
    run_sql(path, *(each.format(table=table) for each in UNTYPED), change)
    with pytest.raises(StorageError):
        await read_all(path)


async def test_what_makes_no_sense_to_a_reader_is_damage_where_there_is_some(path: Path) -> None:
    await make(path)
    with pytest.raises(ValueError, match="no sense"):
        async with await SqliteJournal.open(path, read_only=True):
            raise ValueError("no sense")
    run_sql(path, "UPDATE journal SET cause = 5 WHERE sequence = 33")
    with pytest.raises(DamagedError, match="record 33: changed"):
        async with await SqliteJournal.open(path, read_only=True):
            raise ValueError("no sense")


async def test_two_records_swapped_are_found(path: Path) -> None:
    await make(path)
    swap = "UPDATE journal SET sequence = {} WHERE sequence = {}"
    run_sql(path, swap.format(-1, 12), swap.format(12, 13), swap.format(13, -1))
    async with await SqliteJournal.open(path, read_only=True) as journal:
        first_bad = (await journal.check()).first_bad
    assert first_bad is not None
    assert first_bad.sequence == 12


async def test_reading_gives_what_comes_before_the_damage(path: Path) -> None:
    await make(path)
    run_sql(path, "UPDATE journal SET content = NULL WHERE sequence = 31")
    async with await SqliteJournal.open(path) as journal:
        assert len(await journal.read()) == 30
        with pytest.raises(DamagedError, match="record 31"):
            await journal.read(30)


async def test_a_journal_that_lost_its_end_is_not_written_to(path: Path) -> None:
    await make(path)
    run_sql(path, "DELETE FROM journal WHERE sequence > 40")
    with pytest.raises(OpenError, match="records 41 to 50 are lost"):
        await SqliteJournal.open(path)


async def test_broken_pages_are_reported_not_raised(path: Path) -> None:
    """Overwrite the file page by page: opening or checking always says so in this layer's words."""
    await make(path, 40, 100)
    whole = path.read_bytes()
    outcomes: set[str] = set()
    for page in range(len(whole) // 4096):
        path.write_bytes(whole[: page * 4096] + b"\x5a" * 4096 + whole[page * 4096 + 4096 :])
        outcomes.add(await examine(path))
    assert "damaged" in outcomes
    assert outcomes <= {"damaged", "not opened", "whole"}, outcomes


async def examine(path: Path) -> str:
    try:
        async with await SqliteJournal.open(path, read_only=True) as journal:
            return "whole" if (await journal.check()).whole else "damaged"
    except OpenError:
        return "not opened"
