"""A journal through memory and back: the same chain, and only what is new is written."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from pumice.runtime.journals import file_journal, read_into_memory, write_back
from storage.errors import OpenError
from storage.journal import ACTOR, Head, Record

RECORDS = [Record(ACTOR, bytes([number]), at=float(number)) for number in range(5)]


async def head(path: Path) -> Head:
    async with file_journal(path) as journal:
        assert (await journal.check()).whole
        return await journal.head()


def test_there_and_back(tmp_path: Path) -> None:
    path, other = tmp_path / "a.db", tmp_path / "b.db"
    memory, last = read_into_memory(path)
    assert last == 0.0
    anyio.run(memory.append, RECORDS[:2])
    write_back(memory, path)
    again, last = read_into_memory(path)
    assert last == 1.0
    anyio.run(again.append, RECORDS[2:])
    write_back(again, path)

    async def straight() -> None:
        async with file_journal(other) as journal:
            await journal.append(RECORDS)

    anyio.run(straight)
    assert anyio.run(head, path) == anyio.run(head, other)


def test_a_file_that_cannot_be_written_is_found_out_at_once(tmp_path: Path) -> None:
    with pytest.raises(OpenError):
        read_into_memory(tmp_path)
