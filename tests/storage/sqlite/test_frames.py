"""Which frames of a write-ahead file count, beside what SQLite makes of the same file; and its locks stay its own."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from contextlib import closing
from io import BytesIO
from typing import TYPE_CHECKING

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.storage.sqlite import SqliteJournal
from pumice.storage.sqlite.frames import FRAME, HEADER, read_frames
from tests.storage.examples import records

if TYPE_CHECKING:
    from pathlib import Path

DEAD_MAN_SWITCH = 128
"""The byte of the index on which every process that has it open holds a lock."""
SEIZE = f"import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+b'), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, {DEAD_MAN_SWITCH})"


def written(folder: Path, page: int, transactions: int) -> Path:
    """A database whose main file is empty but for its table: a row a transaction, some of several pages."""
    path = folder / "x.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(f"PRAGMA page_size = {page}; PRAGMA journal_mode = WAL; CREATE TABLE x (y)")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        for number in range(transactions):
            connection.execute("INSERT INTO x VALUES (?)", (bytes([number]) * (page * (number % 3)),))
        kept = folder / "kept"
        kept.mkdir()
        for file in (path, folder / "x.db-wal"):
            shutil.copy(file, kept)
    return kept / "x.db"


@pytest.fixture(scope="module", params=[512, 4096, 65536])
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("log"), request.param, 12)


def rows(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM x").fetchone()[0])


def transactions(content: bytes) -> tuple[int, int]:
    """Those that count, and those there are."""
    ends = [frame for frame in read_frames(BytesIO(content)) if frame.ends and frame.own]
    return sum(frame.accepted for frame in ends), len(ends)


def test_all_of_what_was_written_counts(log: Path) -> None:
    assert transactions(log.with_name("x.db-wal").read_bytes()) == (12, 12)


@settings(max_examples=25)
@given(data=st.data())
def test_as_many_count_as_sqlite_takes(
    log: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    content = bytearray(log.with_name("x.db-wal").read_bytes())
    where = data.draw(st.one_of(st.integers(0, HEADER.size + FRAME.size), st.integers(0, len(content) - 1)))
    content[where] ^= 1 << data.draw(st.integers(0, 7))
    shutil.copy(log, folder)
    (folder / "x.db-wal").write_bytes(content)
    assert transactions(bytes(content))[0] == rows(folder / "x.db")


@settings(max_examples=25)
@given(data=st.data())
def test_a_file_cut_anywhere_ends_with_what_is_whole(log: Path, data: st.DataObject) -> None:
    content = log.with_name("x.db-wal").read_bytes()
    counted, there = transactions(content[: data.draw(st.integers(0, len(content)))])
    assert counted == there <= 12


@given(st.binary(max_size=2000))
def test_what_is_no_such_file_has_none(content: bytes) -> None:
    assert not any(frame.accepted for frame in read_frames(BytesIO(content)))


@pytest.mark.skipif(sys.platform == "win32", reason="SQLite's locks on the index are others there")
@pytest.mark.parametrize("read_only", [True, False])
def test_the_locks_on_the_index_outlive_the_opening(tmp_path: Path, read_only: bool) -> None:
    """Without them the next process cuts the index, which those who have it in memory die of (SIGBUS)."""

    async def leave() -> None:
        async with await SqliteJournal.open(tmp_path / "pumice.db") as writer:
            await writer.append(records(5))
            for name in ("x.db", "x.db-wal"):
                shutil.copy(tmp_path / name.replace("x", "pumice"), tmp_path / name)

    async def look() -> int:
        seize = [sys.executable, "-c", SEIZE, str(tmp_path / "x.db-shm")]
        async with await SqliteJournal.open(tmp_path / "x.db", read_only=read_only):
            return (await anyio.run_process(seize, check=False)).returncode

    anyio.run(leave)
    assert anyio.run(look) == 1, "another process can take the lock"
