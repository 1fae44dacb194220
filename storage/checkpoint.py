# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: a state that stands for all records up to one, so that a restart and a replay need only the later ones.

The state is a fold over records, made in the background from the journal itself: writers are neither asked nor stopped.
It holds the api's truth, where the cycles were, and what the scheduler had seen and had in flight.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, assert_never

import msgspec

from pumice.core.fold.past import Past
from pumice.core.messages.decisions import Bind, BindContext, Decision, Evict
from pumice.core.messages.events import ConfigLoaded, CycleRecord, Mutation
from pumice.core.objects.metadata import Object
from pumice.storage import codec
from pumice.storage import journal as kinds
from pumice.storage.errors import CodecError
from pumice.storage.history import CycleReader
from pumice.storage.journal import Checkpoint
from pumice.storage.records import content
from pumice.storage.truth import StoredObject, Truth

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.storage.journal import Stored
    from pumice.storage.records import Content

# --- Recovered positions


@dataclass
class Recovered:
    """The state at the end of the journal.

    `sequence` is its newest record, `revision` the api's, `cycle`, `now` and `carry` the newest cycle's. `config` is
    the one in force (a refused one does not count). `unresolved` are the decisions without an outcome: sequence number
    → (cycle, decision). `mutations` counts those handed out, `records` all that were read.
    """

    sequence: int = 0
    revision: int = 0
    cycle: int = 0
    now: float = 0.0
    carry: Object = field(default_factory=Object)
    config: ConfigLoaded | None = None
    unresolved: dict[int, tuple[int, Decision]] = field(default_factory=dict[int, "tuple[int, Decision]"])
    mutations: int = 0
    records: int = 0

    @property
    def config_digest(self) -> str:
        """Return the digest of the configuration in force, "" without one."""
        return self.config.digest if self.config else ""

    @property
    def config_text(self) -> str | None:
        """Return the text of the configuration in force."""
        return self.config.text if self.config else None

    def note(self, stored: Stored, content: Content | None, restore: Callable[[Mutation], None]) -> None:
        """Apply the next record. A mutation goes to `restore`, a repeated one only once."""
        self.sequence = stored.sequence
        self.records += 1
        match content:
            case Mutation():
                self._note_mutation(content, restore)
            case CycleRecord():
                self.cycle, self.now, self.carry = content.cycle, content.now, content.carry
            case Bind() | Evict():
                self.unresolved[stored.sequence] = (self.cycle, content)
            case ConfigLoaded():
                # A refused configuration is on record as an event: the one before it stayed in force.
                self.config = self.config if content.error else content
            case None:
                if stored.kind == kinds.OUTCOME:
                    # The outcome names its decision by number; what is left at the end is in flight, or lost with the
                    # process.
                    self.unresolved.pop(stored.cause, None)
            case _:
                assert_never(content)

    def _note_mutation(self, mutation: Mutation, restore: Callable[[Mutation], None]) -> None:
        # A writer that lost its acknowledgement writes a change again; the second one must not be applied twice.
        if mutation.revision > self.revision:
            self.revision = mutation.revision
            self.mutations += 1
            restore(mutation)


FORMAT: Final = 1
LEVEL: Final = 1
"""Of deflate: what repeats is found all the same."""

_OF_CYCLES: Final = (Mutation, CycleRecord, Bind, Evict)


@dataclass
class CheckpointState:
    """The state of everything up to record `recovered.sequence`."""

    recovered: Recovered = field(default_factory=Recovered)
    truth: Truth = field(default_factory=Truth)
    past: Past = field(default_factory=lambda: Past(codec.unpack))

    def __post_init__(self) -> None:
        self._reader = CycleReader(self.past.note)

    @property
    def sequence(self) -> int:
        """Return the number of the last record in it."""
        return self.recovered.sequence

    @property
    def texts(self) -> dict[str, str]:
        """Return the configuration in force, by its digest."""
        config = self.recovered.config
        return {config.digest: config.text} if config else {}

    @property
    def between_cycles(self) -> bool:
        """Return whether no cycle is half read: only then may a checkpoint be taken."""
        return not self._reader.is_open

    def note(self, stored: Stored) -> None:
        """Apply the next record."""
        found = content(stored)
        self.recovered.note(stored, found, self.truth.apply)
        if isinstance(found, _OF_CYCLES):
            cycle = self._reader.take(stored, found)
            if cycle is not None:
                self.past.to_cycle(cycle.record)
                self.past.decide(cycle.record.cycle, cycle.decisions)

    def checkpoint(self, at: float) -> Checkpoint:
        """Return the state as bytes. This only reads, so it may run in a thread while nothing is noted."""
        # Before packing: flights that the api shows by now would only grow with every checkpoint.
        self.past.prune()
        content = {
            "format": FORMAT,
            "recovered": _recovered_out(self.recovered),
            "truth": _truth_out(self.truth),
            "past": _past_out(self.past, self.truth),
        }
        return Checkpoint(self.sequence, at, zlib.compress(codec.pack(content), LEVEL))


def read_checkpoint(checkpoint: Checkpoint, *, past: bool = True) -> CheckpointState:
    """Read a checkpoint. Raises CodecError when it cannot be read. Without `past`, which a restart does not need, it
    takes less time.
    """
    try:
        content: Object = codec.unpack(zlib.decompress(checkpoint.content))
        if content["format"] != FORMAT:
            raise CodecError(f"checkpoint {checkpoint.sequence} has format {content['format']}, known is {FORMAT}")
        recovered, truth = _recovered_in(content["recovered"]), _truth_in(content["truth"])
        return CheckpointState(recovered, truth, _past_in(content["past"], truth) if past else Past(codec.unpack))
    except (zlib.error, KeyError, TypeError, ValueError) as problem:
        raise CodecError(f"checkpoint {checkpoint.sequence} cannot be read: {problem!r}") from problem


# --- Positions of cycles


def _recovered_out(recovered: Recovered) -> Object:
    plain = {name: getattr(recovered, name) for name in ("sequence", "revision", "cycle", "now", "carry", "records")}
    plain["mutations"] = recovered.mutations
    plain["config"] = msgspec.to_builtins(recovered.config) if recovered.config else None
    plain["unresolved"] = [[number, *_decision_out(*found)] for number, found in recovered.unresolved.items()]
    return plain


def _recovered_in(plain: Object) -> Recovered:
    config = codec.convert(plain.pop("config"), ConfigLoaded | None)
    unresolved = {number: (cycle, codec.convert(one, Decision)) for number, cycle, one in plain.pop("unresolved")}
    return Recovered(config=config, unresolved=unresolved, **plain)


def _decision_out(cycle: int, decision: Decision) -> tuple[int, Any]:
    return cycle, msgspec.to_builtins(decision)


# --- The api's truth


def _truth_out(truth: Truth) -> Object:
    # Columns a kind rather than a row an object: equal parts lie together, which deflate finds at level 1.
    columns = {
        kind: [
            [list(name) for name in objects],
            [held.blob for held in objects.values()],
            [held.revision for held in objects.values()],
            [held.uid for held in objects.values()],
            [list(held.owners) for held in objects.values()],
        ]
        for kind, objects in truth.kinds.items()
    }
    return {
        "revision": truth.revision,
        "revisions": truth.revisions,
        "removed": list(truth.removed),
        "kinds": columns,
    }


def _truth_in(plain: Object) -> Truth:
    found: dict[str, dict[tuple[str, str], StoredObject]] = {}
    for kind, (names, blobs, revisions, uids, owners) in plain["kinds"].items():
        rows = zip(names, blobs, revisions, uids, owners, strict=True)
        found[kind] = {(name[0], name[1]): StoredObject(blob, at, uid, tuple(of)) for name, blob, at, uid, of in rows}
    return Truth(plain["revision"], found, plain["revisions"], dict.fromkeys(plain["removed"]))


# --- The scheduler's view


def _past_out(past: Past, truth: Truth) -> Object:
    return {
        "revision": past.revision,
        "listed": past.listed,
        "newest": past.newest,
        "seen": {kind: _seen_out(objects, truth.kinds.get(kind, {})) for kind, objects in past.seen.items()},
        "waiting": [msgspec.to_builtins(mutation, builtin_types=(bytes,)) for mutation in past.waiting],
        "assumed": [[*pod, *found] for pod, found in past.flights.binds.items()],
        "promised": [[*pod, msgspec.to_builtins(needs)] for pod, needs in past.flights.promised.items()],
        "evicting": [[*pod, uid] for pod, uid in past.flights.evictions.items()],
        "decided": [past.decided[0], [msgspec.to_builtins(one) for one in past.decided[1]]],
    }


def _seen_out(objects: dict[tuple[str, str], bytes], held: dict[tuple[str, str], StoredObject]) -> list[Any] | None:
    """Return None when it equals the api's objects, in that order; otherwise names, with the bytes where they
    differ.
    """
    if list(objects) == list(held) and all(held[name].blob == blob for name, blob in objects.items()):
        # Nearly always so between cycles, and then a checkpoint holds each object once instead of twice.
        return None
    return [[*name, None if name in held and held[name].blob == blob else blob] for name, blob in objects.items()]


def _past_in(plain: Object, truth: Truth) -> Past:
    past = Past(codec.unpack)
    flights = past.flights
    past.revision, past.listed, past.newest = plain["revision"], plain["listed"], plain["newest"]
    for kind, rows in plain["seen"].items():
        held = truth.kinds.get(kind, {})
        if rows is None:
            past.seen[kind] = {name: each.blob for name, each in held.items()}
        else:
            # The same bytes as in the truth, not a copy: a large cluster's objects are most of the process.
            past.seen[kind] = {(one, two): blob or held[(one, two)].blob for one, two, blob in rows}
    past.waiting.extend(codec.convert(mutation, Mutation) for mutation in plain["waiting"])
    flights.binds = {(one, two): (uid, node) for one, two, uid, node in plain["assumed"]}
    # Absent in checkpoints of versions that bound no claims.
    flights.promised = {(one, two): codec.convert(needs, BindContext) for one, two, needs in plain.get("promised", ())}
    flights.evictions = {(one, two): uid for one, two, uid in plain["evicting"]}
    cycle, decisions = plain["decided"]
    past.decided = (cycle, tuple(codec.convert(one, Decision) for one in decisions))
    return past
