"""Checkpoints in the background: taken every so many records, and a failure costs nothing but a longer restart."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import anyio
import pytest

from pumice.actors.journal import checkpointer
from pumice.core.messages.commands import Poke
from pumice.storage.checkpoint import read_checkpoint
from pumice.storage.errors import DiskFullError
from pumice.storage.journal import Checkpoint
from pumice.storage.memory import MemoryJournal
from pumice.storage.retention import Retention, Rotation
from tests.actors.rig import QUICK, idle, placed, started, three_nodes
from tests.kit.jobs import gang

pytestmark = pytest.mark.anyio
EVERY = 40
OFTEN = replace(QUICK, checkpoint_every=EVERY)


async def until_taken(journal: MemoryJournal, after: int = 0) -> Checkpoint:
    """The next checkpoint beyond a record."""
    with anyio.fail_after(10):
        while True:
            for checkpoint in await journal.checkpoints():
                if checkpoint.sequence > after:
                    return checkpoint
            await anyio.sleep(0.005)


async def test_every_so_many_records(anyio_backend: str) -> None:
    journal = MemoryJournal()
    async with started(journal, settings=OFTEN) as system:
        await system.submit(three_nodes())
        for number in range(8):
            await system.submit(gang(f"g{number}", pods=3, duration="0"))
        await idle(system)
        first = await until_taken(journal)
        assert first.sequence >= EVERY
        taken = (await journal.head()).sequence
        for number in range(EVERY):  # as many as it takes: cycles that decide for several jobs are fewer records
            if (await journal.head()).sequence >= taken + EVERY:
                break
            await system.submit(gang(f"h{number}", pods=1, cpu="10m", duration="0"))
            await idle(system)
        second = await until_taken(journal, first.sequence)
    state = read_checkpoint(second)
    assert state.sequence == second.sequence
    assert state.truth.revision <= system.store.revision
    async with started(journal) as again:
        assert placed(again) == placed(system)


async def test_what_nobody_keeps_is_cut(anyio_backend: str) -> None:
    journal = MemoryJournal()
    async with started(journal, settings=replace(OFTEN, retention=Retention(events=10))) as system:
        await system.submit(three_nodes())
        for number in range(20):
            await system.submit(gang(f"g{number}", pods=1, cpu="10m", duration="0"))
        await idle(system)
        await system.switchboard.mailboxes["checkpointer"].ask(Poke())
        head = await journal.head()
        assert 0 < head.cut <= (await journal.checkpoints())[-1].sequence
        before = placed(system)
    assert (await journal.check()).whole
    async with started(journal) as again:
        await idle(again)
        assert placed(again) == before
        assert len(before) == 20


async def checkpoints_taken(rotation: Rotation) -> int:
    """Submit to a system whose journal goes into such segments, and return how often a checkpoint was taken."""
    taken = 0

    class Counting(MemoryJournal):
        async def save_checkpoint(self, checkpoint: Checkpoint) -> int:
            nonlocal taken
            taken += 1
            return await super().save_checkpoint(checkpoint)

    settings = replace(QUICK, checkpoint_every=50_000, retention=Retention(rotation=rotation))
    async with started(Counting(), settings=settings) as system:
        await system.submit(three_nodes())
        for number in range(6):
            await system.submit(gang(f"g{number}", pods=3, cpu="10m", duration="0"))
            await idle(system)
            await anyio.sleep(0.05)
    return taken


@pytest.mark.parametrize(
    ("rotation", "least"),
    [(Rotation(records=100_000), 0), (Rotation(records=100_000, bytes=20_000), 2), (Rotation(seconds=0.01), 1)],
    ids=["neither", "bytes", "span"],
)
async def test_segments_by_bytes_and_span_get_checkpoints(
    anyio_backend: str, rotation: Rotation, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpointer, "AFTER_S", 0.01)
    taken = await checkpoints_taken(rotation)
    assert taken >= least if least else taken == 0


async def test_a_checkpoint_that_cannot_be_written_stops_nothing(
    anyio_backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Full(MemoryJournal):
        async def save_checkpoint(self, checkpoint: Checkpoint) -> int:
            raise DiskFullError("the disk is full")

    journal = Full()
    async with started(journal, settings=OFTEN) as system:
        await system.submit(three_nodes())
        for number in range(8):
            await system.submit(gang(f"g{number}", pods=3, duration="0"))
        await idle(system)
        await system.switchboard.mailboxes["checkpointer"].ask(Poke())
        assert len(placed(system)) == 24
        assert system.supervisor.restarts["checkpointer"] == 0
    assert "no checkpoint was taken: the disk is full" in caplog.text


async def test_checkpoints_stay_near_where_many_records_came_meanwhile(anyio_backend: str) -> None:
    class Slow(MemoryJournal):
        async def save_checkpoint(self, checkpoint: Checkpoint) -> int:
            taken.append(checkpoint.sequence)
            return await super().save_checkpoint(checkpoint)

        async def trim(self, retention: Retention, now: float) -> None:
            await cutting.wait()
            await super().trim(retention, now)

    taken, cutting = list[int](), anyio.Event()
    journal = Slow()
    async with started(journal, settings=replace(OFTEN, retention=Retention(events=10))) as system:
        await system.submit(three_nodes())
        for number in range(40):
            await system.submit(gang(f"g{number}", pods=1, cpu="10m", duration="0"))
        await idle(system)
        (first,) = taken
        head = (await journal.head()).sequence
        assert head > first + 4 * EVERY
        cutting.set()
        with anyio.fail_after(10):
            while taken[-1] < head - EVERY:  # noqa: ASYNC110
                await anyio.sleep(0.005)
    assert all(EVERY <= later - earlier < 2 * EVERY for earlier, later in pairwise(taken))


async def test_none_when_nobody_asks_for_any(anyio_backend: str) -> None:
    journal = MemoryJournal()
    async with started(journal, settings=replace(QUICK, checkpoint_every=0)) as system:
        await system.submit(three_nodes())
        await idle(system)
        assert await journal.checkpoints() == ()
        await system.switchboard.mailboxes["checkpointer"].ask(Poke())
        assert len(await journal.checkpoints()) == 1
