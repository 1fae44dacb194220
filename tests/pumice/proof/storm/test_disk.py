"""What becomes of an append that the disk was at when the power went."""

from __future__ import annotations

import random
from contextlib import suppress

import anyio
import pytest

from pumice.actors.api_server.faults.strikes import Fault, ListedFaults
from pumice.proof.storm.simulation import SECTOR, JournalLostError, StormDisk, StormJournal
from pumice.storage.journal import Record

SEEDS = range(60)


def batch(size: int) -> list[Record]:
    chance = random.Random(size)
    return [Record("api", chance.randbytes(100), number, float(number)) for number in range(size)]


def test_an_append_of_many_sectors_is_whole_or_absent_and_each_happens() -> None:
    wanted = batch(30)
    found: list[list[Record]] = []
    for seed in SEEDS:
        disk = StormDisk(seed)
        disk.write(wanted)
        found.append(disk.lose_power())
    assert all(records in ([], wanted) for records in found)
    assert 0 < sum(map(bool, found)) < len(SEEDS) / 2, "a quarter gets there whole"


def test_one_missing_sector_is_enough_to_disbelieve_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def but_one(disk: StormDisk, data: bytes) -> bytes:
        return data[:SECTOR] + bytes(SECTOR) + data[2 * SECTOR :]

    monkeypatch.setattr(StormDisk, "_torn", but_one)
    disk = StormDisk(1)
    disk.write(batch(30))
    assert disk.lose_power() == []


def test_what_was_synced_is_not_on_its_way_any_more() -> None:
    disk = StormDisk(1)
    disk.write(batch(3))
    disk.sync()
    assert disk.lose_power() == []


async def life(seed: int, what: str) -> tuple[list[Record], list[Record]]:
    """Acknowledged records, and those that the next life finds."""
    seen: list[Record] = []
    journal = StormJournal(seen.extend, StormDisk(seed))
    await journal.append(batch(2))
    journal.faults = ListedFaults([Fault(what, "append #1", 5.0)])
    with anyio.move_on_after(0.01):
        with suppress(JournalLostError):
            await journal.append(batch(20))
    acknowledged = list(seen)
    await journal.begin_again()
    found = [Record(each.kind, each.payload, each.cause, each.at) for each in await journal.read()]
    assert found == seen, "whoever looks on sees what is there"
    await journal.append(batch(1))
    return acknowledged, found


@pytest.mark.anyio
@pytest.mark.parametrize("what", ["journal-torn", "journal-slow"])
async def test_the_next_life_finds_all_that_was_acknowledged_and_at_most_what_was_on_its_way(what: str) -> None:
    ends: set[int] = set()
    for seed in range(12):
        acknowledged, found = await life(seed, what)
        assert acknowledged == batch(2)
        assert found in (batch(2), [*batch(2), *batch(20)])
        ends.add(len(found))
    assert ends == {2, 22}
