"""What every journal guarantees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pumice.storage.errors import ClosedError
from pumice.storage.journal import CHECKPOINT, GENESIS, ChainReport, Checkpoint, Head, Record
from tests.storage.examples import contents, everything, record, records

if TYPE_CHECKING:
    from pumice.storage.journal import Journal

pytestmark = pytest.mark.anyio


async def test_it_begins_empty(journal: Journal) -> None:
    assert await journal.head() == Head()
    assert await journal.read() == []
    assert await journal.last("api") is None
    assert await journal.check() == ChainReport(True, 0)
    assert list(await journal.checkpoints()) == []


async def test_what_was_appended_is_read_in_order(journal: Journal) -> None:
    assert await journal.append(records(3)) == 3
    assert await journal.append([]) == 3
    assert await journal.append([Record("cycle", b"", 2, 7.5)]) == 4
    stored = await everything(journal)
    assert [each.sequence for each in stored] == [1, 2, 3, 4]
    assert [contents(each) for each in stored] == [*records(3), Record("cycle", b"", 2, 7.5)]
    head = await journal.head()
    assert (head.sequence, head.hash, head.cut, head.cut_hash, head.written) == (4, stored[3].hash, 0, GENESIS, 4)


async def test_what_it_gives_out_nobody_changes(journal: Journal) -> None:
    """One that is held in memory gives out what it has."""
    await journal.append(records(1))
    for given in (await journal.head(), *await journal.read()):
        with pytest.raises(AttributeError):
            setattr(given, "sequence", 9)  # noqa: B010
    assert (await journal.head()).sequence == 1


async def test_what_nothing_led_to_has_no_cause(journal: Journal) -> None:
    await journal.append([Record("api", b"first"), Record("cycle", b"because of it", 1)])
    assert [each.cause for each in await journal.read() if each.cause] == [1]


async def test_an_append_of_many_packs_is_one(journal: Journal) -> None:
    assert await journal.append(records(3000)) == 3000
    assert [contents(each) for each in await everything(journal)] == records(3000)
    assert await journal.check() == ChainReport(True, 3000)


async def test_reading_picks_kinds_and_stops_at_the_limit(journal: Journal) -> None:
    await journal.append([record(number, ("api", "cycle", "decision")[number % 3]) for number in range(1, 31)])
    assert [each.sequence for each in await journal.read(4, ["cycle", "decision"], 3)] == [5, 7, 8]
    assert [each.sequence for each in await journal.read(28)] == [29, 30]
    assert list(await journal.read(30)) == []
    assert list(await journal.read(0, [])) == []
    assert list(await journal.read(0, ["nonsense"])) == []
    last = await journal.last("cycle")
    assert last is not None
    assert contents(last) == record(28, "cycle")


async def test_large_records_are_kept(journal: Journal) -> None:
    large = [Record("api", bytes([number]) * 1_500_000) for number in range(3)]
    await journal.append(large)
    assert [contents(each) for each in await everything(journal)] == large


async def test_after_closing_nothing_works(journal: Journal) -> None:
    await journal.append(records(2))
    await journal.close()
    await journal.close()
    with pytest.raises(ClosedError):
        await journal.append(records(1))
    with pytest.raises(ClosedError):
        await journal.read()
    with pytest.raises(ClosedError):
        await journal.head()


async def test_the_newest_checkpoint_and_the_one_before_are_kept(journal: Journal) -> None:
    await journal.append(records(30))
    kept = [Checkpoint(sequence, float(sequence), b"state %d" % sequence) for sequence in (10, 20, 30)]
    for checkpoint in kept:
        await journal.save_checkpoint(checkpoint)
    assert list(await journal.checkpoints()) == [kept[2], kept[1]]


async def test_cutting_forgets_what_the_checkpoints_stand_for(journal: Journal) -> None:
    for first in range(1, 41, 10):
        await journal.append(records(10, first))
    assert await journal.cut(15) == 0, "no checkpoint, no cut"
    whole = await everything(journal)
    for sequence in (25, 40):
        await journal.save_checkpoint(Checkpoint(sequence, 0.0, b"state"))
    whole = await everything(journal)
    assert [each.kind for each in whole[40:]] == [CHECKPOINT, CHECKPOINT]
    cut = await journal.cut(35)
    assert cut in {20, 25}, "at most to the oldest checkpoint, and where a pack ends"
    assert list(await everything(journal)) == whole[cut:]
    assert await journal.check() == ChainReport(True, 42 - cut)
    head = await journal.head()
    assert (head.sequence, head.cut, head.cut_hash) == (42, cut, whole[cut - 1].hash)
    assert await journal.append(records(1)) == 43
    assert await journal.check() == ChainReport(True, 43 - cut)


async def test_cutting_everything_keeps_the_count(journal: Journal) -> None:
    await journal.append(records(10))
    assert await journal.save_checkpoint(Checkpoint(10, 0.0, b"state")) == 11
    before = await journal.head()
    assert await journal.cut(10) == 10
    after = await journal.head()
    assert (after.sequence, after.hash) == (11, before.hash)
    assert await journal.append(records(1)) == 12
    assert (await journal.check()).whole
