"""The journal of a run on virtual time, in memory and in pieces in its file: the same records as written straight."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from pumice.runtime.journals import file_journal
from pumice.runtime.pieces import PieceJournal, file_in_pieces
from pumice.storage.errors import OpenError
from pumice.storage.journal import ACTOR, API, Checkpoint, Head, Record
from pumice.storage.retention import Retention
from pumice.storage.sqlite import SqliteJournal

RECORDS = [Record((ACTOR, API)[number % 2], bytes([number]), at=float(number)) for number in range(9)]
CHECKPOINT = Checkpoint(5, 4.0, b"state")


async def head(path: Path) -> Head:
    async with file_journal(path) as journal:
        assert (await journal.check()).whole
        return await journal.head()


async def straight(path: Path) -> Head:
    async with file_journal(path) as journal:
        await journal.append(RECORDS[:5])
        await journal.save_checkpoint(CHECKPOINT)
        await journal.append(RECORDS[5:])
    return await head(path)


async def live(journal: PieceJournal) -> None:
    for record in RECORDS[:5]:
        await journal.append([record])
    assert await journal.save_checkpoint(CHECKPOINT) == 6
    for record in RECORDS[5:]:
        await journal.append([record])


@pytest.mark.parametrize("held", [1, 3, 1000])
def test_however_large_the_pieces_the_records_are_the_same(tmp_path: Path, held: int) -> None:
    with file_in_pieces(tmp_path / "a.db", held=held) as journal:
        assert journal.last_at == 0.0
        anyio.run(live, journal)
    assert anyio.run(head, tmp_path / "a.db") == anyio.run(straight, tmp_path / "b.db")
    with file_in_pieces(tmp_path / "a.db") as journal:
        assert journal.last_at == 8.0
        assert anyio.run(journal.checkpoints) == [CHECKPOINT]


@pytest.mark.parametrize("held", [1, 3, 1000])
def test_what_is_read_does_not_tell_where_it_lies(tmp_path: Path, held: int) -> None:
    async def everything(journal: PieceJournal, *kinds: str) -> list[bytes]:
        found, after = list[bytes](), 0
        while batch := await journal.read(after, kinds or None, 2):
            found += [one.payload for one in batch]
            after = batch[-1].sequence
        return found

    async def look(journal: PieceJournal) -> None:
        await journal.append(RECORDS[:4])
        for record in RECORDS[4:]:
            await journal.append([record])
        payloads = [record.payload for record in RECORDS]
        assert await everything(journal) == payloads
        assert await everything(journal, ACTOR) == payloads[::2]
        newest = await journal.last(API)
        assert newest is not None
        assert newest.payload == payloads[7]
        found = await journal.head()
        assert (found.sequence, found.cut) == (9, 0)
        assert (await journal.check()).whole

    with file_in_pieces(tmp_path / "a.db", held=held) as journal:
        anyio.run(look, journal)


def test_as_far_as_it_was_written_it_is_whole(tmp_path: Path) -> None:
    async def seen_by_another() -> int:
        async with await SqliteJournal.open(tmp_path / "a.db", read_only=True) as journal:
            assert (await journal.check()).whole
            return (await journal.head()).sequence

    with file_in_pieces(tmp_path / "a.db", held=3) as journal:
        anyio.run(journal.append, RECORDS[:5])
        anyio.run(journal.append, RECORDS[5:6])
        assert anyio.run(seen_by_another) == 5
    assert anyio.run(seen_by_another) == 6


def test_what_nobody_keeps_is_cut_at_the_end(tmp_path: Path) -> None:
    with file_in_pieces(tmp_path / "a.db", Retention(events=1)) as journal:
        anyio.run(live, journal)
    assert anyio.run(head, tmp_path / "a.db").cut == 5


def test_a_file_that_cannot_be_written_is_found_out_immediately(tmp_path: Path) -> None:
    with pytest.raises(OpenError), file_in_pieces(tmp_path):
        pytest.fail("a folder is no journal")
