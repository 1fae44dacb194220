"""A record under another configuration: as it was until the decisions part, on virtual time from there on.

The record itself is one side. The other has its arrivals, ends and effects at their times until the first cycle that
decides otherwise; then a whole system goes on from that moment, node agents too, with what came from outside at its
recorded times. Both sides end when the record does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import anyio
from msgspec import structs

from pumice.actors.outside.over_http import supposing
from pumice.actors.runtime.clock import VirtualClock
from pumice.actors.scheduling.core_decider import core_decider
from pumice.actors.system.settings import SystemSettings, config_source
from pumice.actors.system.system import System
from pumice.cluster.timers import moment
from pumice.core.messages.commands import ApiRequest
from pumice.core.messages.events import ConfigLoaded, CycleRecord
from pumice.questions.replay.comparison import Comparison, Lived, lived
from pumice.questions.replay.handover import hand_over, hand_over_again
from pumice.questions.replay.measure import Measurer
from pumice.questions.replay.parting import Parting, Shared, shared
from pumice.questions.replay.recording import BATCH, Recording, begin_with, checkpoint_at, read
from pumice.runtime.determinism import deterministic
from pumice.runtime.leaping import leaping
from pumice.storage import codec
from pumice.storage.checkpoint import read_checkpoint
from pumice.storage.journal import CYCLE, Checkpoint, Head, Journal, Record
from pumice.storage.memory import MemoryJournal
from pumice.storage.sqlite import SqliteJournal
from pumice.storage.vouching import voucher

Advance = Callable[[int], None]
SETTLE_S: Final = 0.01
"""What happens at the very end still happens."""


@dataclass(frozen=True)
class Other:
    """The other configuration: its text, where that comes from, and what tells versions of users' plugins apart."""

    text: str
    source: str
    plugins: dict[str, str] = field(default_factory=dict[str, str])

    def settings(self) -> SystemSettings:
        """Of the system that goes on."""
        return SystemSettings(
            config_text=self.text, lenient=True, checkpoint_every=0, user_plugins=self.plugins, post=supposing
        )

    def told(self) -> ConfigLoaded:
        """The record that a journal has of the other configuration."""
        told = config_source(self.settings(), core_decider()).loaded.told()
        return structs.replace(told, source=self.source, default_duration_s=None)  # that of the record stays


@dataclass
class Second:
    """The run under the other configuration, beside the record; `journal` holds all of it. `records`: of the record."""

    comparison: Comparison
    parting: Parting | None
    journal: MemoryJournal
    records: int


@dataclass
class _Start:
    """What both runs have in common, in `journal`, and what comes after. `leaving`: when pods that were leaving at the
    parting will be gone, by uid.
    """

    journal: MemoryJournal
    common: Shared
    record: Recording
    leaving: dict[str, float] = field(default_factory=dict[str, float])


def second_run(file: Path, other: Other, advance: Advance = lambda records: None) -> Second:
    """Of a journal in a file, which is only read. Raises OpenError, DamagedError."""
    start = anyio.run(_common, file, other, advance)
    record, parting = start.record, start.common.parting
    before = after = lived(record.measured, record.cycles)
    if parting is not None:
        clock = VirtualClock(parting.at)
        settings, options = leaping(_settings(start, other))
        with deterministic(start.common.seed):
            anyio.run(_go_on, start, settings, clock, backend="trio", backend_options=options)
        after = anyio.run(_measured, start.journal, record)
    return Second(Comparison(before, after), parting, start.journal, record.records)


async def _common(file: Path, other: Other, advance: Advance) -> _Start:
    told = other.told()
    async with await SqliteJournal.open(file, read_only=True) as journal:
        common = await shared(journal, told, advance)
        record = await read(journal, common.begun, len(common.records))
        head, before = await _base(journal, common.begun)
    after = [_under(checkpoint, told) for checkpoint in before]
    memory = MemoryJournal(head, after)
    await memory.append(_vouching(common.records, before, after))
    start, parting = _Start(memory, common, record), common.parting
    if parting is not None:
        start.leaving = await hand_over(memory, record.reader.remainder, record.beginnings, parting.at, common.seed)
    return start


async def _base(journal: Journal, begun: int) -> tuple[Head, list[Checkpoint]]:
    """Where the second journal begins: nowhere, or with the checkpoint before a record that was cut."""
    if not begun:
        return Head(), []
    head, checkpoint = await journal.head(), await checkpoint_at(journal, begun)
    hash_ = head.cut_hash if begun == head.cut else (await journal.read(begun - 1, limit=1))[0].hash
    return Head(begun, hash_, begun, hash_, begun), [checkpoint]


def _under(checkpoint: Checkpoint, told: ConfigLoaded) -> Checkpoint:
    """The checkpoint as though the other configuration had been in force when it was taken."""
    state = read_checkpoint(checkpoint)
    known = state.recovered.config
    if known is not None and (known.digest, known.plugins) == (told.digest, told.plugins):
        return checkpoint
    state.recovered.config = told
    return state.checkpoint(checkpoint.at)


def _vouching(records: list[Record], before: Sequence[Checkpoint], after: Sequence[Checkpoint]) -> list[Record]:
    """The records, with those that vouch for a checkpoint vouching for what has become of it."""
    found = list(records)
    for old, new in zip(map(voucher, before), map(voucher, after), strict=True):
        places = [row for row, record in enumerate(found) if (record.kind, record.payload) == (old.kind, old.payload)]
        for row in places:
            found[row] = structs.replace(found[row], payload=new.payload)
        if not places and found:
            found.append(structs.replace(new, at=found[-1].at))
    return found


# --- on virtual time


async def _go_on(start: _Start, settings: SystemSettings, clock: VirtualClock) -> None:
    """From the parting to the end of the record, one process after the other as there were in the record."""
    remainder, ended = start.record.reader.remainder, start.record.ended
    ends = [*(restart.down_at for restart in remainder.restarts), ended]
    begins = [clock.start, *(restart.up_at for restart in remainder.restarts)]
    arrivals, began = deque(remainder.arrivals), anyio.current_time() - clock.start
    for life, (up_at, down_at) in enumerate(zip(begins, ends, strict=True)):
        await anyio.sleep_until(moment(began + up_at))
        start.journal.reopen()
        if life:
            await hand_over_again(start.journal, start.leaving, up_at, start.common.seed)
        system = System(replace(settings, uid_seed=start.common.seed + 1 + life), start.journal, clock)
        async with system.running():
            while arrivals and arrivals[0].at <= down_at:
                at, batch = arrivals[0].at, list[ApiRequest]()
                while arrivals and arrivals[0].at == at:
                    batch.append(arrivals.popleft().request)
                await anyio.sleep_until(moment(began + at))
                await system.api.ask_many(batch)
            await anyio.sleep_until(moment(began + down_at + SETTLE_S))


def _settings(start: _Start, other: Other) -> SystemSettings:
    record, seed = start.record, start.common.seed
    return replace(
        other.settings(),
        seed=seed,
        controllers=record.controllers,
        default_duration_s=record.beginnings.default_duration_s,
    )


async def _measured(journal: MemoryJournal, record: Recording) -> Lived:
    journal.reopen()
    measured, after, cycles = Measurer(record.ended), (await journal.head()).cut, 0
    if record.state is not None:
        begin_with(measured, record.state)
        cycles = record.state.recovered.cycle
    while batch := await journal.read(after, limit=BATCH):
        for stored in batch:
            measured.follow(stored)
            if stored.kind == CYCLE:
                cycles = codec.decode(stored.payload, CycleRecord).cycle
        after = batch[-1].sequence
    return lived(measured, cycles)
