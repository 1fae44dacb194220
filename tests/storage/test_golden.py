"""Journals that earlier versions wrote verify for ever; `golden/README.md` says how each came about."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from pumice.core.messages.decisions import Bind, Decision
from pumice.core.messages.events import CycleRecord
from pumice.questions.replay.verify import verify
from pumice.storage import codec
from pumice.storage.journal import CYCLE, DECISION
from pumice.storage.sqlite import SqliteJournal

pytestmark = pytest.mark.anyio
GOLDEN: Final = Path(__file__).parent / "golden"
MOST_BYTES: Final = 200_000
CYCLES: Final = {
    "checkpoints": (61, 92),
    "faults": (1, 59),
    "fractions": (1, 15),
    "full": (1, 12),
    "http": (1, 27),
    "killed": (1, 15),
    "locks": (1, 28),
    "morning": (1, 16),
    "refused": (1, 12),
    "preemption": (1, 15),
    "reach": (1, 10),
    "stock": (1, 9),
    "topology": (1, 6),
    "urgent": (1, 16),
    "volumes": (1, 9),
    "vouched": (17, 23),
    "waiting": (1, 10),
    "zones": (1, 11),
}
LOCKS: Final = {"gpu", "hamivgpu"}
OPERATIONS: Final = {"anew", "relist", "assume", "forget", "unevict", "hold", "hold-eviction"}


def copied(name: str, folder: Path) -> Path:
    """The journal where it may be written; the write-ahead file belongs to it."""
    for file in GOLDEN.glob(f"{name}.db*"):
        shutil.copy(file, folder)
    return folder / f"{name}.db"


def test_every_one_is_listed_and_small() -> None:
    assert {file.stem for file in GOLDEN.glob("*.db")} == set(CYCLES)
    sizes = {name: sum(file.stat().st_size for file in GOLDEN.glob(f"{name}.db*")) for name in CYCLES}
    assert not [name for name, size in sizes.items() if size > MOST_BYTES]


@pytest.mark.parametrize("name", CYCLES)
async def test_it_verifies_cycle_by_cycle(name: str, tmp_path: Path) -> None:
    async with await SqliteJournal.open(copied(name, tmp_path), read_only=True) as journal:
        assert (await journal.check()).whole
        report = await verify(journal)
    assert report.first_difference is None
    assert report.identical
    assert (report.first_cycle, report.last_cycle) == CYCLES[name]
    assert report.cycles == report.last_cycle - report.first_cycle + 1


@pytest.mark.parametrize("name", CYCLES)
async def test_it_verifies_after_it_was_opened_for_writing(name: str, tmp_path: Path) -> None:
    """A schema of a later version changes nothing that was recorded."""
    path = copied(name, tmp_path)
    async with await SqliteJournal.open(path):
        pass
    async with await SqliteJournal.open(path, read_only=True) as journal:
        assert (await journal.check()).whole
        assert (await verify(journal)).identical


async def test_together_they_hold_every_operation_of_the_cache(tmp_path: Path) -> None:
    found: set[str] = set()
    for name in CYCLES:
        async with await SqliteJournal.open(copied(name, tmp_path), read_only=True) as journal:
            for stored in await journal.read(kinds=(CYCLE,)):
                found |= {
                    str(each.__struct_config__.tag) for each in codec.decode(stored.payload, CycleRecord).operations
                }
    assert found == OPERATIONS


async def test_one_holds_the_locks_that_binds_set(tmp_path: Path) -> None:
    async with await SqliteJournal.open(copied("locks", tmp_path), read_only=True) as journal:
        decisions = [codec.decode(stored.payload, Decision) for stored in await journal.read(kinds=(DECISION,))]
    binds = [each for each in decisions if isinstance(each, Bind)]
    assert {name for bind in binds if bind.pre_bind for name, _ in bind.pre_bind.locks} == LOCKS
