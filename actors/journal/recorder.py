# SPDX-License-Identifier: Apache-2.0
"""The recorder: it writes everything of consequence to the journal before any actor acts on it.

Owns: the journal (no other actor writes it). Accepts: `Append` and `SaveCheckpoint`. Asked, it answers `Appended` once
the records are on disk; as a message without an answer, it writes them all the same. A checkpoint that cannot be kept
is said, and nothing else comes of it. Sends: nothing. When full: an actor with something to record waits; that is what
makes the journal the throttle of the system. Stops: last of all actors, after everything queued is on disk. When the
journal fails it crashes with RecorderFailedError, and the supervisor stops the process rather than run unlogged. So it
does when the journal's file is removed or replaced: every append finds out, and a look now and then while there is
nothing to append.

Group commit: all that waits in the mailbox goes to disk in one transaction.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import anyio

from pumice.actors.errors import RecorderFailedError
from pumice.actors.runtime.actor import Actor
from pumice.core.messages.commands import RecorderCommand, SaveCheckpoint
from pumice.core.messages.replies import Appended
from pumice.storage.errors import StorageError
from pumice.storage.journal import Checkpoint, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from pumice.actors.runtime.actor import Context
    from pumice.actors.runtime.envelope import Received
    from pumice.actors.runtime.level_signal import LevelSignal
    from pumice.actors.system.ports import RecorderPort
    from pumice.storage.journal import Journal


log = logging.getLogger(__name__)


class Recorder(Actor[RecorderCommand, Appended]):
    """The recorder. `last` is the sequence number of the newest record in the journal; `written` is raised to it.

    `look_s`: seconds between two looks whether the journal is still there; 0: never.
    """

    # Large: a commit costs about the same for one record and for hundreds.
    cap = 4096

    def __init__(
        self,
        name: str,
        mailbox: RecorderPort,
        context: Context,
        journal: Journal,
        last: int,
        written: LevelSignal | None = None,
        look_s: float = 0.0,
    ) -> None:
        super().__init__(name, mailbox, context)
        self._look_s = look_s
        self._written = written
        self._journal = journal
        self._last = last

    def loops(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """Check whether the journal still exists."""
        return (self._look,) if self._look_s else ()

    def delivers_inline(self, message: RecorderCommand) -> bool:
        """Return whether delivery is inline: a journal on virtual time lets no other task run (see
        `pumice.storage.memory`).
        """
        return True

    async def _look(self) -> None:
        while True:
            await anyio.sleep(self._look_s)
            try:
                await self._journal.confirm()
            except StorageError as error:
                raise RecorderFailedError(str(error)) from error

    async def handle_batch(self, batch: Sequence[Received[RecorderCommand, Appended]]) -> None:
        """Write the batch in one transaction and answer all senders, then keep the checkpoints."""
        now = self.clock.now()
        records: list[Record] = []
        answers: list[tuple[Received[RecorderCommand, Appended], Appended]] = []
        checkpoints: list[tuple[Received[RecorderCommand, Appended], SaveCheckpoint]] = []
        for item in batch:
            if isinstance(item.message, SaveCheckpoint):
                checkpoints.append((item, item.message))
                continue
            entries = item.message.entries
            first = self._last + len(records) + 1
            records += [  # a cause -k means the k-th entry of the same Append
                Record(each.kind, each.payload, each.cause if each.cause >= 0 else first - each.cause - 1, now)
                for each in entries
            ]
            answers.append((item, Appended(first, first + len(entries) - 1) if entries else Appended(0, 0)))
        if records:
            await self._write(records)
        # Before the checkpoints, which are large: senders wait only for their records.
        for item, answer in answers:
            item.reply(answer)
        for item, checkpoint in checkpoints:
            item.reply(await self._keep(checkpoint))

    async def _write(self, records: list[Record]) -> None:
        expected = self._last + len(records)
        try:
            last = await self._journal.append(records)
        except Exception as error:
            raise RecorderFailedError(f"the journal cannot be written: {error}") from error
        if last != expected:
            raise RecorderFailedError(f"the journal is at {last}, expected {expected}: another process writes to it")
        self._advance(last)

    async def _keep(self, taken: SaveCheckpoint) -> Appended:
        try:
            last = await self._journal.save_checkpoint(Checkpoint(taken.sequence, taken.at, taken.content))
        except StorageError as error:
            log.warning("no checkpoint was taken: %s", error)
            return Appended(0, 0)
        self._advance(last)
        return Appended(last, last)

    def _advance(self, last: int) -> None:
        self._last = last
        if self._written is not None:
            self._written.raise_to(last)
