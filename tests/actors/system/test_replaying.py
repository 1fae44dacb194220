"""What really ran is decided again to the same decisions, whatever happened to it in between."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import anyio
import pytest

from pumice.actors.runtime.clock import VirtualClock
from pumice.actors.system.system import System
from pumice.core.messages.commands import BindPod, Delete, Poke, StoreRequest
from pumice.core.messages.decisions import Bind
from pumice.core.messages.events import CycleRecord
from pumice.core.messages.replies import ApiReply, Refused
from pumice.questions.replay.verify import ReplayReport, verify
from pumice.storage import codec
from pumice.storage.journal import Journal, Record
from pumice.storage.memory import MemoryJournal
from tests.actors.rig import QUICK, cycles, idle, started, stored, tampered, three_nodes
from tests.actors.system.test_crashes import submit, take_away
from tests.kit.jobs import gang


async def assert_replays(journal: Journal) -> ReplayReport:
    """Every cycle there is comes out as recorded."""
    report = await verify(journal)
    assert report.first_difference is None, report.first_difference
    assert report.identical
    assert report.cycles > 0
    return report


async def run_gangs(system: System, first: int, last: int, **each: Any) -> None:
    """Gangs one after the other, so that cycles see different things."""
    for number in range(first, last):
        await system.submit(gang(f"g{number}", pods=3, cpu="1500m", **each))
        await anyio.sleep(0.004)
    await idle(system)


@pytest.mark.anyio
async def test_a_run_with_pods_that_end(anyio_backend: str) -> None:
    journal = MemoryJournal()
    async with started(journal) as system:
        await system.submit(three_nodes())
        await run_gangs(system, 0, 12, duration="20ms")
    report = await assert_replays(journal)
    assert report.cycles == len(await cycles(journal))
    assert report.events == (await journal.head()).sequence


@pytest.mark.anyio
async def test_over_restarts_and_from_a_checkpoint_on(anyio_backend: str) -> None:
    journal = MemoryJournal()
    for turn in range(3):
        async with started(journal, settings=replace(QUICK, checkpoint_every=100)) as system:
            if not turn:
                await system.submit(three_nodes())
            await run_gangs(system, 4 * turn, 4 * turn + 4, duration="30ms" if turn else "0")
            await system.switchboard.mailboxes["checkpointer"].ask(Poke())
    async with started(journal, settings=replace(QUICK, checkpoint_every=0)) as system:
        await run_gangs(system, 12, 16, duration="30ms")
    whole = await assert_replays(journal)
    newest = (await journal.checkpoints())[0]
    assert newest.sequence > 200
    assert await journal.cut(10**9) > 0
    cut = await assert_replays(journal)
    assert cut.cycles < whole.cycles


@pytest.mark.anyio
async def test_with_binds_that_are_refused(anyio_backend: str) -> None:
    chance, journal = random.Random(1), MemoryJournal()

    def fussy(request: StoreRequest, apply: Callable[[StoreRequest, float], ApiReply], now: float) -> ApiReply:
        if isinstance(request, BindPod) and chance.random() < 0.3:
            return Refused(500, "InternalError", "not now")
        return apply(request, now)

    async with started(journal, api=fussy) as system:
        await system.submit(three_nodes())
        await run_gangs(system, 0, 6, duration="0")
        (first, *_) = stored(system, "Pod")
        await system.api.ask(Delete("Pod", "default", first["metadata"]["name"], grace_period_s=1))
        await idle(system)
    operations = [one.__struct_config__.tag for cycle in await cycles(journal) for one in cycle.operations]
    assert {"anew", "relist", "assume", "forget"} <= set(operations)
    await assert_replays(journal)


@pytest.mark.anyio
async def test_cycles_that_were_lost(anyio_backend: str) -> None:
    journal, lost = MemoryJournal(), 0

    def sometimes(run: Callable[[Any, str], None], session: Any, action: str) -> None:
        nonlocal lost
        lost += 1
        if lost % 7 == 3:
            raise RuntimeError("lost")
        run(session, action)

    async with started(journal, decider=tampered(sometimes)) as system:
        await system.submit(three_nodes())
        await run_gangs(system, 0, 6, duration="20ms")
        assert system.memory.lost > 0
    await assert_replays(journal)


@pytest.mark.trio
@pytest.mark.parametrize("seed", range(12))
async def test_whoever_crashed(seed: int, autojump_clock: object) -> None:
    chance, journal = random.Random(seed), MemoryJournal()
    async with started(journal, settings=replace(QUICK, answer_timeout_s=1.0), clock=VirtualClock()) as system:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take_away, system, chance, 30)
            await submit(system, three_nodes())
            for number in range(8):
                await submit(system, gang(f"g{number}", pods=3, cpu="1500m", duration="20ms"))
                await anyio.sleep(0.01)
        await idle(system, 3600)
    await assert_replays(journal)


async def rewritten(journal: Journal, change: Callable[[Record], Record]) -> MemoryJournal:
    """The journal with records changed by somebody who knows how to chain them."""
    copy = MemoryJournal()
    for stored_record in await journal.read(limit=100_000):
        record = Record(stored_record.kind, stored_record.payload, stored_record.cause, stored_record.at)
        await copy.append([change(record)])
    return copy


@pytest.mark.anyio
async def test_a_decision_that_was_tampered_with_is_named(anyio_backend: str) -> None:
    journal = MemoryJournal()
    async with started(journal) as system:
        await system.submit(three_nodes())
        await run_gangs(system, 0, 3, duration="0")

    def elsewhere(record: Record) -> Record:
        if record.kind != "decision" or (bind := codec.decode(record.payload, Bind)).name != "g1-1":
            return record
        return Record("decision", codec.encode(Bind(bind.namespace, bind.name, bind.uid, "n9", bind.job)), record.cause)

    report = await verify(await rewritten(journal, elsewhere))
    difference = report.first_difference
    assert difference is not None
    assert difference.task == "default/g1-1"
    assert difference.recorded is not None
    assert difference.decided is not None
    assert (difference.recorded["node"], difference.decided["node"][0]) == ("n9", "n")
    decided_in = [one.cycle for one in await cycles(journal)]
    assert difference.cycle in decided_in


@pytest.mark.anyio
@pytest.mark.parametrize("field", ["digest", "statuses", "carry"])
async def test_a_cycle_that_was_tampered_with_is_named(anyio_backend: str, field: str) -> None:
    journal = MemoryJournal()
    async with started(journal) as system:
        await system.submit(three_nodes())
        await run_gangs(system, 0, 3, duration="0")
    chosen = next(one.cycle for one in await cycles(journal) if one.statuses)

    def other(record: Record) -> Record:
        if record.kind != "cycle" or codec.decode(record.payload, CycleRecord).cycle != chosen:
            return record
        plain = codec.unpack(record.payload)
        plain["digest"] = "0" * 32
        plain[field] = {"digest": "0" * 32, "statuses": b"", "carry": {"start": 5}}[field]
        return Record("cycle", codec.pack(plain))

    difference = (await verify(await rewritten(journal, other))).first_difference
    assert difference is not None
    assert difference.cycle == chosen
    assert difference.recorded != difference.decided
