"""Group commit: whoever appends while a transaction is under way shares the next one.

A commit costs a wait for the disk whatever it holds, so 64 writers of one record each are served by one transaction.
No task of its own: the first to add to a batch commits it, as soon as the transaction before has ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import anyio
import anyio.lowlevel

from storage.errors import ClosedError
from storage.loop_thread import unbroken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.journal import Journal, Record

MAX_RECORDS: Final = 4096
MAX_BYTES: Final = 8 << 20


class Span(NamedTuple):
    """The sequence numbers of one append, both ends included; (0, 0) when it had no records."""

    first: int
    last: int


class Batch:
    """Appends that go into one transaction, each with its own answer."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.bytes = 0
        self._ends: list[int] = []

    def add(self, records: Sequence[Record]) -> int:
        """Take an append in; its place in `spans`."""
        self.records += records
        self.bytes += sum(len(record.payload) for record in records)
        self._ends.append(len(self.records))
        return len(self._ends) - 1

    @property
    def full(self) -> bool:
        """Whether the next append should go into another batch."""
        return len(self.records) >= MAX_RECORDS or self.bytes >= MAX_BYTES

    def spans(self, last: int) -> list[Span]:
        """Who got which numbers, once the journal has said that the last record is number `last`."""
        before = last - len(self.records)
        begins = [0, *self._ends]
        return [
            Span(before + begin + 1, before + end) if end > begin else Span(0, 0)
            for begin, end in zip(begins, self._ends, strict=False)
        ]


class _Pending(Batch):
    """A batch somebody waits for."""

    def __init__(self) -> None:
        super().__init__()
        self.done = anyio.Event()
        self.granted: list[Span] = []
        self.problem: Exception | None = ClosedError("the commit was broken off")


class GroupCommit:
    """Appends of many tasks of one event loop, committed together, in the order in which they came."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._turn = anyio.Lock()
        self._open: _Pending | None = None
        self.transactions = 0

    async def append(self, records: Sequence[Record]) -> Span:
        """Durable when this returns. A failure of the transaction reaches every append in it.

        Cancelled before it begins, nothing is written; later everything is, and one who commits for others ends that.
        """
        await anyio.lowlevel.checkpoint_if_cancelled()
        batch, leads = self._batch()
        place = batch.add(records)
        if leads:
            await unbroken(self._commit(batch))
        else:
            await batch.done.wait()
        if batch.problem is not None:
            raise batch.problem
        return batch.granted[place]

    def _batch(self) -> tuple[_Pending, bool]:
        """The batch to add to, and whether it is new, so that who adds commits it."""
        if self._open is not None and not self._open.full:
            return self._open, False
        self._open = _Pending()
        return self._open, True

    async def _commit(self, batch: _Pending) -> None:
        async with self._turn:
            if self._open is batch:
                self._open = None
            try:
                batch.granted = batch.spans(await self._journal.append(batch.records))
                batch.problem = None
                self.transactions += 1
            except Exception as problem:  # noqa: BLE001 - handed to everyone who waits
                batch.problem = problem
            finally:
                batch.done.set()
