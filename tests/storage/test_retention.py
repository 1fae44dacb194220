"""What of a journal is kept."""

from __future__ import annotations

import pytest

from pumice.storage.checkpoint import CheckpointState
from pumice.storage.journal import Journal
from pumice.storage.memory import MemoryJournal
from pumice.storage.retention import (
    APART,
    BYTES_PER_RECORD,
    DAY_S,
    Retention,
    Rotation,
    cut_point,
    interval,
    parse_keep,
    too_near,
)
from tests.storage.examples import bind, cycle, mutation, record

pytestmark = pytest.mark.anyio
LARGE = 2 * APART * BYTES_PER_RECORD
"""Bytes of a checkpoint that stands for twice as many records as a small one."""


def test_how_it_is_written() -> None:
    assert parse_keep(None, None) == Retention()
    assert parse_keep("7d", None) == Retention(seconds=7 * DAY_S)
    assert parse_keep("50", 9) == Retention(cycles=50, events=9)
    with pytest.raises(ValueError, match="weeks"):
        parse_keep("2weeks", None)


async def test_the_last_so_many_records(journal: Journal) -> None:
    await journal.append([record(number) for number in range(1, 101)])
    assert await cut_point(journal, Retention(events=30), 0.0) == 70
    assert await cut_point(journal, Retention(events=1000), 0.0) == 0
    assert await cut_point(journal, Retention(), 0.0) == 0


@pytest.mark.parametrize("days", [0.0, 1.0, 17.5, 99.0, 100.0])
async def test_the_last_days(days: float) -> None:
    journal = MemoryJournal()
    await journal.append([mutation(number) for number in range(1, 101)])  # record i was written at second i
    assert await cut_point(journal, Retention(seconds=days), 100.0) == max(99 - int(days), 0)


async def test_the_last_cycles() -> None:
    journal = MemoryJournal()
    for number in range(1, 21):
        await journal.append([mutation(number), cycle(number, number, 1), bind("a")])
    point = await cut_point(journal, Retention(cycles=5), 0.0)
    left = await journal.read(point, ("cycle",))
    assert len(left) == 5
    assert await cut_point(journal, Retention(cycles=20), 0.0) == 0


async def test_a_record_stays_while_any_rule_keeps_it() -> None:
    journal = MemoryJournal()
    await journal.append([mutation(number) for number in range(1, 101)])
    assert await cut_point(journal, Retention(seconds=10.0, events=60), 100.0) == 40


async def test_what_recovery_needs_is_never_cut(journal: Journal) -> None:
    await journal.append([mutation(number, f"p{number}") for number in range(1, 51)])
    assert await journal.cut(await cut_point(journal, Retention(events=1), 0.0)) == 0
    state = CheckpointState()
    for stored in await journal.read(limit=30):
        state.note(stored)
    await journal.save_checkpoint(state.checkpoint(0.0))
    assert await journal.cut(await cut_point(journal, Retention(events=1), 0.0)) <= 30


@pytest.mark.parametrize(
    ("every", "rotation", "size", "expected"),
    [
        (50_000, None, 0, 50_000),
        (50_000, Rotation(seconds=60.0), 0, APART * 5 // 4),
        (50_000, Rotation(records=100_000), 0, APART * 5 // 4),
        (50_000, Rotation(records=100), 0, 100),
        (50_000, Rotation(records=100), 32 * 5_000, 5_000),
        (50_000, Rotation(seconds=60.0), 32 * 32_000, 40_000),
        (50_000, Rotation(records=100), 1 << 30, 50_000),
        (40, Rotation(records=100), 0, 40),
    ],
    ids=[
        "one file",
        "small states",
        "large segments",
        "small segments",
        "small segments of larger states",
        "larger states",
        "large states",
        "as often as set",
    ],
)
def test_checkpoints_for_segments_are_taken_sooner(
    every: int, rotation: Rotation | None, size: int, expected: int
) -> None:
    assert interval(every, Retention(rotation=rotation), size) == expected


@pytest.mark.parametrize("size", [0, 600_000, 1_200_000])
def test_checkpoint_that_has_grown_is_kept(size: int) -> None:
    apart = interval(50_000, Retention(rotation=Rotation(seconds=100.0)), size)
    assert too_near([(0, size), (apart, size * 6 // 5)]) == []


@pytest.mark.parametrize(
    ("sizes", "near"),
    [
        ([], []),
        ([(7, 10)], []),
        ([(0, 0), (APART - 1, 10), (APART, 10), (APART + 1, 10), (2 * APART, 10)], [APART - 1, APART + 1]),
        ([(0, 0), (APART, LARGE), (2 * APART, LARGE), (3 * APART, LARGE)], [APART, 3 * APART]),
    ],
    ids=["none", "one", "apart by records", "apart by bytes"],
)
def test_checkpoints_of_a_segment_stand_apart(sizes: list[tuple[int, int]], near: list[int]) -> None:
    assert too_near(sizes) == near
