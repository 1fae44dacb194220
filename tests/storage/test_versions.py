"""A journal is judged by what it was recorded by: the rules and the digest of then."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pumice.config import rules
from pumice.config.errors import NewerVersionError
from pumice.core import digest
from pumice.core.messages.decisions import Bind
from pumice.core.messages.events import CycleRecord
from pumice.questions.replay.compare import compare
from pumice.questions.replay.verify import ReplayReport, recorded, verify
from pumice.storage import codec
from pumice.storage.journal import CYCLE, Record
from pumice.storage.memory import MemoryJournal
from pumice.storage.sqlite import SqliteJournal
from tests.actors.rig import idle, started, three_nodes
from tests.kit.jobs import gang
from tests.storage.test_golden import copied

pytestmark = pytest.mark.anyio
SWITCH = "discard-pipelined-only"
"""`preemption` comes out otherwise with it."""


class LaterBind(Bind, frozen=True, tag="LaterBind"):
    """A bind that has come to say more."""

    reservation: str = "r"


async def rewritten(path: Path, **changes: int) -> MemoryJournal:
    """The journal with these fields in all its cycles."""
    memory = MemoryJournal()
    async with await SqliteJournal.open(path, read_only=True) as journal:
        for stored in await journal.read():
            payload = stored.payload
            if stored.kind == CYCLE:
                record = codec.decode(payload, CycleRecord)
                payload = codec.encode(msgspec.structs.replace(record, **changes))
            await memory.append([Record(stored.kind, payload, stored.cause, stored.at)])
    return memory


async def test_a_cycle_is_decided_by_the_rules_it_was_decided_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = copied("preemption", tmp_path)
    monkeypatch.setattr(rules, "CHANGED", {2: frozenset({SWITCH})})
    monkeypatch.setattr(rules, "VERSION", 2)
    assert (await verify(await rewritten(path, rules=2))).identical
    report = await verify(await rewritten(path, rules=1))
    assert report.first_difference is not None
    assert report.first_difference.cycle == 7


@pytest.mark.parametrize("what", ["rules", "digest_version"])
async def test_a_newer_version_is_refused_by_name(tmp_path: Path, what: str) -> None:
    with pytest.raises(NewerVersionError, match="version 99 is newer than"):
        await verify(await rewritten(copied("stock", tmp_path), **{what: 99}))


async def test_a_field_that_binds_gain_makes_no_old_journal_differ(tmp_path: Path) -> None:
    compared = 0
    async with await SqliteJournal.open(copied("volumes", tmp_path), read_only=True) as journal:
        async for replayer, cycle in recorded(journal, ReplayReport()):
            result = replayer.decide(cycle.record)
            binds = [LaterBind(*(getattr(bind, name) for name in Bind.__struct_fields__)) for bind in result.binds]
            assert compare(cycle, msgspec.structs.replace(result, binds=tuple(binds))) is None
            compared += len(binds)
    assert compared == 10


async def test_what_counts_is_still_compared(tmp_path: Path) -> None:
    compared = 0
    async with await SqliteJournal.open(copied("volumes", tmp_path), read_only=True) as journal:
        async for replayer, cycle in recorded(journal, ReplayReport()):
            result = replayer.decide(cycle.record)
            for place, bind in enumerate(result.binds):
                binds = list(result.binds)
                binds[place] = msgspec.structs.replace(bind, node="elsewhere")
                found = compare(cycle, msgspec.structs.replace(result, binds=tuple(binds)))
                assert found is not None
                assert found.task == f"default/{bind.name}"
                compared += 1
    assert compared == 10


async def test_a_run_says_what_it_decides_by() -> None:
    journal = MemoryJournal()
    async with started(journal) as system:
        await system.submit([*three_nodes(), *gang("g", pods=2, duration="10ms")])
        await idle(system)
    records = [codec.decode(stored.payload, CycleRecord) for stored in await journal.read(kinds=(CYCLE,))]
    assert {(record.rules, record.digest_version) for record in records} == {(rules.VERSION, digest.VERSION)}
    assert (await verify(journal)).identical
