# SPDX-License-Identifier: Apache-2.0
"""A journal in memory, inline: for simulation on virtual time, where waiting for a thread would count as idling.

It outlives a simulated crash when the same object is handed to the next system. `failure`, when set, is raised by every
append, which then writes nothing. Records are chained at the first read: most records of a simulation are never read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio.lowlevel

from pumice.storage.chain import check, link
from pumice.storage.errors import ClosedError
from pumice.storage.journal import Checkpoint, Head, Stored
from pumice.storage.records import is_vouched, voucher
from pumice.storage.retention import KEPT_CHECKPOINTS, trim

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from pumice.storage.journal import ChainReport, Record
    from pumice.storage.retention import Retention


class MemoryJournal:
    """A `pumice.storage.journal.Journal` in memory; durable as long as the object lives."""

    def __init__(self, begin: Head | None = None, checkpoints: Iterable[Checkpoint] = ()) -> None:
        """Start as the copy of a journal, with its `begin` and `checkpoints`; the records follow."""
        self.failure: Exception | None = None
        self.appends = 0
        self._records: list[Stored] = []
        self._unchained: list[Record] = []
        self._checkpoints: list[Checkpoint] = newest(checkpoints)
        begin = begin or Head()
        self._head = Head(begin.cut, begin.cut_hash, begin.cut, begin.cut_hash, begin.cut)
        self._closed = False

    async def append(self, records: Sequence[Record]) -> int:
        """Write the records without yielding to other tasks, and return the number of the last one."""
        self._ready()
        if self.failure is not None:
            raise self.failure
        self.appends += 1
        self._unchained += records
        # The last number without the chain, which is hashed only when somebody reads.
        return self._head.sequence + len(self._unchained)

    def _chain(self) -> Head:
        """Return both ends, once every written record is chained."""
        if not self._unchained:
            return self._head
        hash_, last, cut = self._head.hash, self._head.sequence, self._head.cut
        for record in self._unchained:
            last += 1
            kind, payload, cause, at = record.kind, record.payload, record.cause, record.at
            hash_ = link(hash_, last, kind, cause, at, payload)
            self._records.append(Stored(last, kind, payload, cause, at, hash_))
        self._unchained.clear()
        self._head = Head(last, hash_, cut, self._head.cut_hash, last)
        return self._head

    async def read(self, after: int = 0, kinds: Collection[str] | None = None, limit: int = 10_000) -> Sequence[Stored]:
        """Return at most `limit` records (of these kinds) above `after`."""
        await anyio.lowlevel.checkpoint()
        self._ready()
        begin = max(0, after - self._chain().cut)
        if kinds is None:
            return self._records[begin : begin + limit]
        found: list[Stored] = []
        for index in range(begin, len(self._records)):
            if len(found) == limit:
                break
            if self._records[index].kind in kinds:
                found.append(self._records[index])
        return found

    async def weigh(self, after: int, through: int) -> int:
        """Return the bytes of the records above `after`, up to `through`."""
        self._ready()
        cut = self._chain().cut
        return sum([len(record.payload) for record in self._records[max(0, after - cut) : max(0, through - cut)]])

    async def last(self, kind: str) -> Stored | None:
        """Return the newest record of a kind."""
        await anyio.lowlevel.checkpoint()
        self._ready()
        self._chain()
        return next((record for record in reversed(self._records) if record.kind == kind), None)

    async def head(self) -> Head:
        """Return both ends."""
        self._ready()
        return self._chain()

    async def check(self) -> ChainReport:
        """Verify the chain."""
        return await check(self)

    async def save_checkpoint(self, checkpoint: Checkpoint) -> int:
        """Keep this checkpoint and the one before, and return the number of the newest record."""
        self._ready()
        self._chain()
        if not is_vouched(checkpoint, self._records[max(0, checkpoint.sequence - self._head.cut) :]):
            self._unchained.append(voucher(checkpoint))
        self._checkpoints = newest([*self._checkpoints, checkpoint])
        return self._chain().sequence

    async def checkpoints(self) -> Sequence[Checkpoint]:
        """Return the checkpoints, newest first."""
        self._ready()
        return tuple(self._checkpoints)

    async def cut(self, through: int) -> int:
        """Forget records up to `through`, at most to the oldest checkpoint kept."""
        self._ready()
        head = self._chain()
        through = min(through, self._checkpoints[-1].sequence if self._checkpoints else 0)
        if through <= head.cut:
            return head.cut
        gone = self._records[: through - head.cut]
        del self._records[: len(gone)]
        self._head = Head(head.sequence, head.hash, through, gone[-1].hash, head.written)
        return through

    async def trim(self, retention: Retention, now: float) -> None:
        """Forget the records that no rule keeps."""
        await trim(self, retention, now)

    async def confirm(self) -> None:
        """Do nothing: the journal is always in its place."""

    async def close(self) -> None:
        """Refuse further use until `reopen`."""
        self._closed = True

    def reopen(self) -> None:
        """Reset the journal as a restarted process finds a file."""
        self._closed = False

    def _ready(self) -> None:
        if self._closed:
            raise ClosedError("the journal is closed")


def newest(checkpoints: Iterable[Checkpoint]) -> list[Checkpoint]:
    """Return the checkpoints to keep, newest first."""
    return sorted(checkpoints, key=lambda each: each.sequence, reverse=True)[:KEPT_CHECKPOINTS]
