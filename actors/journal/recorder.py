"""The recorder: everything of consequence, written to the journal before anybody acts on it.

Owns: the journal (nobody else writes it).
Accepts: `Append`. Asked, it answers `Appended` once the records are on disk; told, it writes them all the same.
Sends: nothing.
When full: whoever has something to record waits; that is what makes the journal the throttle of the system.
Stops: last of all actors, after everything queued is on disk. When the journal fails it crashes with
RecorderFailedError, and the supervisor stops the process rather than run unlogged.

Group commit: all that waits in the mailbox goes to disk in one transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.errors import RecorderFailedError
from actors.runtime.actor import Actor
from core.messages.commands import Append
from core.messages.replies import Appended
from storage.journal import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from actors.runtime.context import Context
    from actors.runtime.envelope import Received
    from actors.runtime.level_signal import LevelSignal
    from actors.system.ports import RecorderPort
    from storage.journal import Journal


class Recorder(Actor[Append, Appended]):
    """`last` is the sequence number of the newest record in the journal; `written` is raised to it."""

    cap = 4096

    def __init__(
        self,
        name: str,
        mailbox: RecorderPort,
        context: Context,
        journal: Journal,
        last: int,
        written: LevelSignal | None = None,
    ) -> None:
        super().__init__(name, mailbox, context)
        self._written = written
        self._journal = journal
        self._last = last

    async def handle_batch(self, batch: Sequence[Received[Append, Appended]]) -> None:
        """Write the batch in one transaction, then answer everybody."""
        now = self.clock.now()
        records: list[Record] = []
        spans: list[Appended] = []
        for item in batch:
            entries = item.message.entries
            first = self._last + len(records) + 1
            records += [  # a cause -k means the k-th entry of the same Append
                Record(each.kind, each.payload, each.cause if each.cause >= 0 else first - each.cause - 1, now)
                for each in entries
            ]
            spans.append(Appended(first, first + len(entries) - 1) if entries else Appended(0, 0))
        if records:
            await self._write(records)
        for item, span in zip(batch, spans, strict=True):
            item.reply(span)

    async def _write(self, records: list[Record]) -> None:
        expected = self._last + len(records)
        try:
            last = await self._journal.append(records)
        except Exception as error:
            raise RecorderFailedError(f"the journal cannot be written: {error}") from error
        if last != expected:
            raise RecorderFailedError(f"the journal is at {last}, expected {expected}: somebody else writes to it")
        self._last = last
        if self._written is not None:
            self._written.raise_to(last)
