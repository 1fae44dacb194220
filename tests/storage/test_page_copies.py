"""A page of the file that another page's copy stands in for: whoever reads comes to an end, and is told."""

# ruff: noqa: ASYNC240 - the files are small and nothing else waits for this loop

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Final

import anyio
import pytest

from pumice.storage.chain import leniently
from pumice.storage.errors import DamagedError, StorageError
from pumice.storage.journal import KINDS, Record
from pumice.storage.rows import JournalRow
from pumice.storage.sqlite import SqliteJournal
from pumice.storage.sqlite.queries import is_without_gaps, rising

if TYPE_CHECKING:
    from pathlib import Path

    from pumice.storage.journal import Stored

pytestmark = pytest.mark.anyio
PAGE: Final = 4096
ENOUGH: Final = 30
"""Reads after which everything there is was read."""


async def made(path: Path) -> bytes:
    chance = random.Random(3)
    async with await SqliteJournal.open(path) as journal:
        for _ in range(16):
            await journal.append([Record(chance.choice(KINDS[:4]), chance.randbytes(60)) for _ in range(40)])
    return path.read_bytes()


async def read_on(journal: SqliteJournal, kinds: tuple[str, ...] | None) -> list[Stored]:
    """As all who read do: after the last record that came."""
    found: list[Stored] = []
    for _ in range(ENOUGH):
        chunk = await journal.read(found[-1].sequence if found else 0, kinds, 50)
        if not chunk:
            return found
        found += chunk
    raise AssertionError("there is no end to it")


async def outcome(path: Path, kinds: tuple[str, ...] | None, whole: list[Stored]) -> str:
    try:
        async with await SqliteJournal.open(path, read_only=True) as journal:
            with anyio.fail_after(20):
                found = await read_on(journal, kinds)
                assert await whole_or_not(journal) or found == whole, "records are missing, and nobody was told"
                async for _ in leniently(journal):
                    pass
    except StorageError:
        return "told"
    return "read"


async def whole_or_not(journal: SqliteJournal) -> bool:
    return (await journal.check()).whole


@pytest.mark.parametrize("kinds", [None, ("api",), ("cycle", "decision")])
async def test_a_page_that_is_another_pages_copy_ends_in_an_error(path: Path, kinds: tuple[str, ...] | None) -> None:
    content = await made(path)
    async with await SqliteJournal.open(path, read_only=True) as journal:
        whole = await read_on(journal, kinds)
    count = len(content) // PAGE
    pairs = [(into, source) for into in range(count) for source in range(count) if into != source]
    told = 0
    chosen = pairs if os.environ.get("PUMICE_TEST_POINTS") else random.Random(str(kinds)).sample(pairs, 60)
    for into, source in chosen:
        copy = content[source * PAGE : (source + 1) * PAGE]
        path.write_bytes(content[: into * PAGE] + copy + content[(into + 1) * PAGE :])
        told += await outcome(path, kinds, whole) == "told"
    assert told > len(chosen) / 4


def row(sequence: int) -> JournalRow:
    return JournalRow(sequence, "api", 0, 0.0, 0, 0, 0, b"")


def test_rows_are_taken_as_far_as_their_numbers_rise() -> None:
    assert rising([row(5), row(7), row(5), row(8)], 4, all_kinds=False) == [row(5), row(7)]
    assert rising([row(5), row(6), row(8)], 4, all_kinds=True) == [row(5), row(6)]
    assert rising([row(8), row(9)], 4, all_kinds=True) == [row(8), row(9)], "what was cut was before"
    assert rising([], 4, all_kinds=True) == []
    with pytest.raises(DamagedError, match="record 7: lost: record 5 comes after record 6"):
        rising([row(5), row(6)], 6, all_kinds=False)


@pytest.mark.parametrize(
    ("numbers", "gapless"),
    [([4, 5, 6, 7], True), ([4], True), ([4, 6, 7], False), ([4, 5, 5, 7], False), ([4, 4, 6, 7], False)],
)
def test_numbers_are_without_gaps_when_each_is_there_once(numbers: list[int], gapless: bool) -> None:
    assert is_without_gaps(len(numbers), min(numbers), max(numbers), sum(numbers)) is gapless
