# SPDX-License-Identifier: Apache-2.0
"""A record under another configuration: unchanged until the decisions part, on virtual time from there on.

The record itself is one side. The other has its arrivals, ends and effects at their times until the first cycle that
decides otherwise; then a whole system goes on from that moment, node agents too, with what came from outside at its
recorded times. Both sides end when the record does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypedDict

import anyio
from msgspec import structs

from pumice.actors.outside.over_http import supposing
from pumice.actors.runtime.clock import VirtualClock
from pumice.actors.system.settings import SystemSettings, config_source
from pumice.actors.system.system import System
from pumice.cluster.timers import moment
from pumice.core.messages.commands import ApiRequest
from pumice.core.messages.events import ActorEvent, ActorStarted, ConfigLoaded, CycleRecord, Mutation
from pumice.core.objects.metadata import Object
from pumice.questions.measures.amounts import ClusterFigures
from pumice.questions.measures.figures import JobFigures, Measurer, QueueFigures
from pumice.questions.measures.lives import there_at
from pumice.questions.replay.compare import CycleDifference
from pumice.questions.replay.handover import Beginnings, hand_over, hand_over_again
from pumice.questions.replay.parting import Parting, Shared, shared
from pumice.questions.replay.remainder import Key, Reader, note
from pumice.questions.replay.replayer import ProcessReader
from pumice.results import Result, Sides
from pumice.runtime.determinism import deterministic
from pumice.runtime.leaping import leaping
from pumice.storage.checkpoint import CheckpointState, read_checkpoint
from pumice.storage.journal import ACTOR, API, CONFIG, CYCLE, Checkpoint, Head, Journal, Record, Stored
from pumice.storage.memory import MemoryJournal
from pumice.storage.records import read_as, voucher
from pumice.storage.sqlite import open_history

# --- The recording

BATCH: Final = 5_000
CONTROLLER: Final = "job-controller"


class Recording:
    """Record from its beginning (the first `kept` records are common) to its end."""

    def __init__(self, state: CheckpointState | None, kept: int, ended: float) -> None:
        self.measured, self.ended = Measurer(ended), ended
        self.beginnings = Beginnings()
        self.objects: dict[Key, bytes] = {}
        self.reader = Reader(self.objects)
        self.controllers = state is not None  # whose starts may be cut
        self.cycles = self.records = 0
        self.state, self._kept, self._lives = state, kept, ProcessReader()
        if state is not None:
            self.cycles = state.recovered.cycle
            self.beginnings.told(state.recovered.config)
            self.objects |= {(kind, *name): held.blob for kind, name, held in state.truth.rows()}
            begin_with(self.measured, state)

    def follow(self, stored: Stored) -> None:
        """Follow the next record."""
        self.records += 1
        self.measured.follow(stored)
        if stored.kind == CONFIG:
            self.beginnings.told(read_as(stored, ConfigLoaded))
        elif stored.kind == CYCLE:
            record = read_as(stored, CycleRecord)
            self.cycles = record.cycle
            self.beginnings.decided(record)
            self.controllers |= record.observed  # every cluster has some
        elif stored.kind == ACTOR:
            event = read_as(stored, ActorEvent)
            self.controllers |= isinstance(event, ActorStarted) and event.actor == CONTROLLER
        restart = self._lives.follow(stored)
        if restart is not None:
            self.beginnings.restarted()
        if self.records > self._kept:
            self.reader.follow(stored)
            self.reader.remainder.restarts += [restart] if restart is not None else []
        elif stored.kind == API:
            note(self.objects, read_as(stored, Mutation))
        if stored.kind == API:
            self.beginnings.note(read_as(stored, Mutation), stored.at)


async def read(journal: Journal, begun: int, kept: int) -> Recording:
    """Return all records from number `begun` on."""
    head = await journal.head()
    ended = (await journal.read(head.sequence - 1, limit=1))[0].at if head.sequence else 0.0
    state = read_checkpoint(await checkpoint_at(journal, begun)) if begun else None
    record, after = Recording(state, kept, ended), begun
    while batch := await journal.read(after, limit=BATCH):
        for stored in batch:
            record.follow(stored)
        after = batch[-1].sequence
    return record


async def checkpoint_at(journal: Journal, sequence: int) -> Checkpoint:
    """Return the checkpoint that stands for all records up to that one."""
    return next(one for one in await journal.checkpoints() if one.sequence == sequence)


def begin_with(measured: Measurer, state: CheckpointState) -> None:
    """Add the objects that exist when the record begins."""
    for mutation in there_at(state):
        measured.lives.note(mutation, state.recovered.now)


# --- The comparison

Figure = float | int | str | dict[str, str] | None
"""A number, a queue's name, or pods with their nodes."""


class FigureSides(TypedDict):
    """A figure of the record, and under the other configuration."""

    before: Figure
    after: Figure


ChangedFigures = dict[str, dict[str, FigureSides]]


@dataclass
class Lived:
    """One run: figures by job, by queue and by resource, and the number of its cycles."""

    jobs: dict[str, JobFigures] = field(default_factory=dict[str, JobFigures])
    queues: dict[str, QueueFigures] = field(default_factory=dict[str, QueueFigures])
    cluster: dict[str, ClusterFigures] = field(default_factory=dict[str, ClusterFigures])
    cycles: int = 0


def lived(measured: Measurer, cycles: int) -> Lived:
    """Return the measures as a result."""
    return Lived(measured.jobs(), measured.queues(), measured.cluster(), cycles)


@dataclass
class Comparison:
    """The record, and the same under another configuration."""

    before: Lived
    after: Lived

    @property
    def changed(self) -> dict[str, ChangedFigures]:
        """Return jobs, queues and resources whose figures differ: figure -> before and after."""
        before, after = self.before, self.after
        return {
            "jobs": _changes(before.jobs, after.jobs, JobFigures()),
            "queues": _changes(before.queues, after.queues, QueueFigures()),
            "cluster": _changes(before.cluster, after.cluster, ClusterFigures()),
        }


class Reconfigured(Result, kw_only=True, tag="replay/1"):
    """A record, and the same under another configuration: where the decisions part (`parted_at`: when, in seconds since
    the epoch), and the differences of jobs, queues and the cluster, figure by figure; then all figures by queue,
    `before` and `after`, and by resource of the `cluster`. `supposed`: sentences on questions to outside processes that
    were not asked.
    """

    cycles: int
    events: int
    events_per_s: float
    identical: bool
    first_difference: CycleDifference | None
    parted_at: float | None
    changed: dict[str, ChangedFigures]
    before: dict[str, QueueFigures]
    after: dict[str, QueueFigures]
    cluster: Sides[dict[str, ClusterFigures]]
    supposed: list[str]


def _changes(before: Object, after: Object, nothing: object) -> ChangedFigures:
    found = {name: changes(before.get(name, nothing), after.get(name, nothing)) for name in sorted({*before, *after})}
    return {name: changed for name, changed in found.items() if changed}


def changes(before: object, after: object) -> dict[str, FigureSides]:
    """Return figure -> before and after, of the figures that differ; `moved`: the pods that went to different nodes."""
    was, now = _flat(before), _flat(after)
    for one, other in ((was, now), (now, was)):
        if "placements" in one:
            placed = other["placements"]
            one["moved"] = {pod: node for pod, node in one["placements"].items() if placed.get(pod) != node}
    names = [name for name in {**was, **now} if name != "placements"]
    found: dict[str, FigureSides] = {
        name: {"before": was.get(name, 0.0), "after": now.get(name, 0.0)} for name in names
    }
    return {name: sides for name, sides in found.items() if sides["before"] != sides["after"]}


def _flat(figures: Any) -> Object:
    """Return its fields; those of a resource under the resource's name."""
    plain = asdict(figures)
    for resource, amounts in plain.pop("resources", {}).items():
        plain |= {f"{resource} {name}": value for name, value in amounts.items()}
    return plain


Advance = Callable[[int], None]
SETTLE_S: Final = 0.01
"""Margin after the end, so that events at the very end still happen."""


@dataclass(frozen=True)
class Other:
    """The other configuration: its text, its source, and the versions of users' plugins."""

    text: str
    source: str
    plugins: dict[str, str] = field(default_factory=dict[str, str])

    def settings(self) -> SystemSettings:
        """Return the settings of the system that goes on."""
        return SystemSettings(
            config_text=self.text, lenient=True, checkpoint_every=0, user_plugins=self.plugins, post=supposing
        )

    def told(self) -> ConfigLoaded:
        """Return the record that a journal has of the other configuration."""
        told = config_source(self.settings()).loaded.told()
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
    """Start of the second run: the common records, in `journal`, and the later ones. `leaving`: when pods that were
    leaving at the parting will be gone, by uid.
    """

    journal: MemoryJournal
    common: Shared
    record: Recording
    leaving: dict[str, float] = field(default_factory=dict[str, float])


def second_run(file: Path, other: Other, advance: Advance = lambda records: None) -> Second:
    """Return the second run of a journal in a file, which is only read. Raises OpenError, DamagedError."""
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
    async with open_history(file) as journal:
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
    """Return the beginning of the second journal: empty, or the checkpoint before a record that was cut."""
    if not begun:
        return Head(), []
    head, checkpoint = await journal.head(), await checkpoint_at(journal, begun)
    hash_ = head.cut_hash if begun == head.cut else (await journal.read(begun - 1, limit=1))[0].hash
    return Head(begun, hash_, begun, hash_, begun), [checkpoint]


def _under(checkpoint: Checkpoint, told: ConfigLoaded) -> Checkpoint:
    """Return the checkpoint as though the other configuration had been in force when it was taken."""
    state = read_checkpoint(checkpoint)
    known = state.recovered.config
    if known is not None and (known.digest, known.plugins) == (told.digest, told.plugins):
        return checkpoint
    state.recovered.config = told
    return state.checkpoint(checkpoint.at)


def _vouching(records: list[Record], before: Sequence[Checkpoint], after: Sequence[Checkpoint]) -> list[Record]:
    """Return the records, with those that vouch for a checkpoint vouching for its changed form."""
    found = list(records)
    for old, new in zip(map(voucher, before), map(voucher, after), strict=True):
        places = [row for row, record in enumerate(found) if (record.kind, record.payload) == (old.kind, old.payload)]
        for row in places:
            found[row] = structs.replace(found[row], payload=new.payload)
        if not places and found:
            found.append(structs.replace(new, at=found[-1].at))
    return found


# --- The second run, on virtual time


async def _go_on(start: _Start, settings: SystemSettings, clock: VirtualClock) -> None:
    """Run from the parting to the end of the record, one process after the other as there were in the record."""
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
                cycles = read_as(stored, CycleRecord).cycle
        after = batch[-1].sequence
    return lived(measured, cycles)
