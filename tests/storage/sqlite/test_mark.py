"""How far a journal had come, in the lock file: what one version left at a kill is read by every later one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from pumice.storage.journal import Head
from pumice.storage.sqlite import SqliteJournal
from pumice.storage.sqlite.lock import JournalLock, Mark, beside, read_mark
from tests.storage.examples import records

IDENTITY: Final = bytes(range(16))
MARK: Final = Mark(IDENTITY, 50, bytes(range(16, 32)))
WRITTEN: Final = bytes.fromhex(
    "000102030405060708090a0b0c0d0e0f3200000000000000101112131415161718191a1b1c1d1e1fc542889906194030"
)


def test_it_stands_where_it_always_stood(tmp_path: Path) -> None:
    journal = tmp_path / "pumice.db"
    lock = JournalLock(journal)
    lock.note(MARK)
    lock.release(clean=False)
    assert beside(journal).read_bytes() == (b"%d\n" % os.getpid()).ljust(64) + WRITTEN
    assert read_mark(beside(journal)) == MARK


@pytest.mark.anyio
async def test_each_append_is_told_of_while_the_journal_is_open(tmp_path: Path) -> None:
    path = tmp_path / "pumice.db"
    async with await SqliteJournal.open(path) as journal:
        for last in (5, 10):
            await journal.append(records(5, last - 4))
            mark, head = read_mark(beside(path)), await journal.head()
            assert mark is not None
            assert (mark.sequence, mark.hash) == (last, head.hash)


@pytest.mark.parametrize("place", [64, 80, 88, 104, 111])
def test_one_that_is_damaged_says_nothing(tmp_path: Path, place: int) -> None:
    path = tmp_path / "lock"
    content = bytearray(b"4711\n".ljust(64) + WRITTEN)
    path.write_bytes(content)
    assert read_mark(path) == MARK
    content[place] ^= 1
    path.write_bytes(content)
    assert read_mark(path) is None
    path.write_bytes(content[:-1])
    assert read_mark(path) is None


@pytest.mark.parametrize(
    ("head", "missing"),
    [
        (Head(50, MARK.hash), ""),
        (Head(51, b"another"), ""),
        (Head(50, b"another"), "record 50 is not the one that was written"),
        (Head(47, b"earlier"), "records 48 to 50 are lost"),
    ],
)
def test_what_a_journal_lacks_of_it(head: Head, missing: str) -> None:
    assert MARK.missing(IDENTITY, head) == missing
    assert MARK.missing(b"another journal", head) == ""
