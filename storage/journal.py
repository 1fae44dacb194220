# SPDX-License-Identifier: Apache-2.0
"""The journal: an append-only, durable, hash-chained log of everything of consequence.

What every implementation guarantees:

* **Order.** Records are numbered 1, 2, 3, … without gaps in the order of the appends; those of one append are in a row.
* **Whole or absent.** An append is in the journal with all its records or with none, also when the process is killed or
  the caller cancelled; a cancelled append may still happen, so replay accepts an effect twice.
* **Durable on return.** When `append` returns, its records survive a kill -9 and a power cut.
* **Chained.** The hash of a record covers the hash before it, so an edited, lost or swapped record is found (`check`).
* **Failing loudly.** A full or read-only disk raises one of `pumice.storage.errors` and leaves the journal as it was.
* **One writer.** A second process that opens the same file is refused; readers are welcome at any time.

Time is the caller's: `Record.at` is in seconds since the epoch and nothing in here reads a clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct

from pumice.core.messages.decisions import Decision
from pumice.core.messages.events import (
    ActorEvent,
    CheckpointTaken,
    ConfigLoaded,
    CycleRecord,
    FaultEvent,
    Mutation,
    Outcome,
    ShadowCompared,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pumice.storage.retention import Retention

API: Final = "api"
CYCLE: Final = "cycle"
DECISION: Final = "decision"
OUTCOME: Final = "outcome"
ACTOR: Final = "actor"
CONFIG: Final = "config"
CHECKPOINT: Final = "checkpoint"
"""A checkpoint was taken: what is in it stands in no record, so its hash does."""
SHADOW: Final = "shadow"
"""How far another cluster's scheduler and Pumice decided alike."""
FAULT: Final = "fault"
"""A fault that a client of the served API met, or the profile that it comes from."""
RECORDS: Final[dict[str, Any]] = {
    API: Mutation,
    CYCLE: CycleRecord,
    DECISION: Decision,
    OUTCOME: Outcome,
    ACTOR: ActorEvent,
    CONFIG: ConfigLoaded,
    CHECKPOINT: CheckpointTaken,
    SHADOW: ShadowCompared,
    FAULT: FaultEvent,
}
"""Contents of records, by kind; a reader skips kinds that it does not know."""
KINDS: Final = tuple(RECORDS)

GENESIS: Final = bytes(16)
"""The hash before record 1."""


class Record(Struct, frozen=True, gc=False):
    """A record to be written. `cause` is the sequence number of the record that led to it (0: none)."""

    kind: str
    payload: bytes
    cause: int = 0
    at: float = 0.0


class Stored(Struct, frozen=True, gc=False):
    """A written record, under its number; `hash` (16 bytes) chains it to the record before."""

    sequence: int
    kind: str
    payload: bytes
    cause: int
    at: float
    hash: bytes

    @property
    def record(self) -> Record:
        """Return it as it is written once more, to another file."""
        return Record(self.kind, self.payload, self.cause, self.at)


class Head(Struct, frozen=True, gc=False):
    """Both ends of the journal.

    `sequence` and `hash` are those of the newest record (0 and GENESIS when there is none). `cut` is the last record
    that retention removed (0: none), `cut_hash` its hash. `written` is the highest number ever given out; when it lies
    above `sequence`, records were lost from the end.
    """

    sequence: int = 0
    hash: bytes = GENESIS
    cut: int = 0
    cut_hash: bytes = GENESIS
    written: int = 0


class FirstBad(Struct, frozen=True, gc=False):
    """The first record that differs from what was written, and the evidence."""

    sequence: int
    why: str


class ChainReport(Struct, frozen=True, gc=False):
    """Findings of a check: `records` is the number of records read and found good.

    `without`: the checkpoints, by the last record that they stood for, that a copy does without (`back_up`).
    """

    whole: bool
    records: int
    first_bad: FirstBad | None = None
    without: tuple[int, ...] = ()


class Checkpoint(Struct, frozen=True, gc=False):
    """A state that stands for all records up to and including `sequence`; only its maker reads `content`."""

    sequence: int
    at: float
    content: bytes


class Journal(Protocol):
    """An append-only, durable, hash-chained log; the module's docstring has the guarantees."""

    async def append(self, records: Sequence[Record]) -> int:
        """Write the records in one transaction, and return the number of the last one (of the head, without
        records).
        """
        ...

    async def read(self, after: int = 0, kinds: Collection[str] | None = None, limit: int = 10_000) -> Sequence[Stored]:
        """Return at most `limit` records (of these kinds) numbered above `after`, oldest first.

        Stops short before a damaged record, and raises DamagedError when that is the first of the answer.
        """
        ...

    async def weigh(self, after: int, through: int) -> int:
        """Return the bytes that the records above `after`, up to `through`, take."""
        ...

    async def last(self, kind: str) -> Stored | None:
        """Return the newest record of a kind."""
        ...

    async def head(self) -> Head:
        """Return both ends."""
        ...

    async def check(self) -> ChainReport:
        """Read everything and verify the chain (`pumice.storage.chain`)."""
        ...

    async def save_checkpoint(self, checkpoint: Checkpoint) -> int:
        """Keep a checkpoint, durably; earlier ones may be dropped, except the newest but one.

        A record of its hash is written in the same transaction, unless there is one: the number of the newest record.
        """
        ...

    async def checkpoints(self) -> Sequence[Checkpoint]:
        """Return the existing checkpoints, newest first. Raises DamagedError for one that differs from its record."""
        ...

    async def cut(self, through: int) -> int:
        """Forget the records up to `through`, at most to the oldest kept checkpoint, and return the last forgotten
        one.
        """
        ...

    async def trim(self, retention: Retention, now: float) -> None:
        """Forget the records that no rule of the retention keeps at that moment (seconds since the epoch)."""
        ...

    async def confirm(self) -> None:
        """Check the files. Raises GoneError when the journal is no longer where it was opened."""
        ...

    async def close(self) -> None:
        """Release the file. Appends in flight are finished; later calls raise ClosedError."""
        ...
