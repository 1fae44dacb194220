"""The record from its beginning to its end: what it comes to, and what a run that parts from it has to know."""

from __future__ import annotations

from typing import Final

from pumice.core.messages.events import ActorEvent, ActorStarted, ConfigLoaded, CycleRecord, Mutation
from pumice.questions.measures.lives import there_at
from pumice.questions.replay.handover import Beginnings
from pumice.questions.replay.measure import Measurer
from pumice.questions.replay.processes import ProcessReader
from pumice.questions.replay.remainder import Key, Reader, note
from pumice.storage import codec
from pumice.storage.checkpoint import CheckpointState, read_checkpoint
from pumice.storage.journal import ACTOR, API, CONFIG, CYCLE, Checkpoint, Journal, Stored

BATCH: Final = 5_000
CONTROLLER: Final = "job-controller"


class Recording:
    """What the record says from its beginning (`kept` records of which are common) to its end."""

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
        """The next record."""
        self.records += 1
        self.measured.follow(stored)
        if stored.kind == CONFIG:
            self.beginnings.told(codec.decode(stored.payload, ConfigLoaded))
        elif stored.kind == CYCLE:
            record = codec.decode(stored.payload, CycleRecord)
            self.cycles = record.cycle
            self.beginnings.decided(record)
            self.controllers |= record.observed  # every cluster has some
        elif stored.kind == ACTOR:
            event = codec.decode(stored.payload, ActorEvent)
            self.controllers |= isinstance(event, ActorStarted) and event.actor == CONTROLLER
        restart = self._lives.follow(stored)
        if restart is not None:
            self.beginnings.restarted()
        if self.records > self._kept:
            self.reader.follow(stored)
            self.reader.remainder.restarts += [restart] if restart is not None else []
        elif stored.kind == API:
            note(self.objects, codec.decode(stored.payload, Mutation))
        if stored.kind == API:
            self.beginnings.note(codec.decode(stored.payload, Mutation), stored.at)


async def read(journal: Journal, begun: int, kept: int) -> Recording:
    """All of it from number `begun` on."""
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
    """The one that stands for all records up to that one."""
    return next(one for one in await journal.checkpoints() if one.sequence == sequence)


def begin_with(measured: Measurer, state: CheckpointState) -> None:
    """What was there when the record begins."""
    for mutation in there_at(state):
        measured.note(mutation, state.recovered.now)
