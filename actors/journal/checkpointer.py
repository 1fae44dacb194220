# SPDX-License-Identifier: Apache-2.0
"""The checkpointer: states from which a restart needs only the later records, and the removal of older records.

Owns: a state folded from the journal (`pumice.storage.checkpoint.CheckpointState`); it reads the journal, and cuts it.
Accepts: `Poke` (take one now).
Sends: asks the recorder to keep a checkpoint. That there is something to read is a level signal, which it raises.
When full: the actor that pokes waits.
Stops: immediately; a checkpoint that is not finished is as if it had never been begun.

Nothing waits for it: it reads the journal in small pieces, and packs in a thread. A checkpoint that cannot be written
costs a longer restart and nothing else, so it is said and tried again later.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from pumice.actors.runtime.actor import Actor
from pumice.core.messages.commands import Poke, SaveCheckpoint
from pumice.core.messages.replies import Done
from pumice.storage.checkpoint import CheckpointState
from pumice.storage.errors import StorageError
from pumice.storage.recovery import newest_state
from pumice.storage.retention import interval

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from pumice.actors.runtime.actor import Context
    from pumice.actors.runtime.level_signal import LevelSignal
    from pumice.actors.system.ports import PokePort, RecorderPort
    from pumice.storage.journal import Head, Journal
    from pumice.storage.retention import Retention

PIECE = 500
"""Records read at a time: the recorder waits no longer than for these."""

log = logging.getLogger(__name__)


class Checkpointer(Actor[Poke, Done]):
    """Takes a checkpoint after every `every` records (0: only when poked), or sooner for segments
    (`storage.retention.interval`), then cuts as `retention` says.
    """

    def __init__(
        self,
        name: str,
        mailbox: PokePort,
        context: Context,
        recorder: RecorderPort,
        journal: Journal,
        written: LevelSignal,
        every: int,
        retention: Retention,
        in_thread: bool = True,
    ) -> None:
        super().__init__(name, mailbox, context)
        self._recorder = recorder
        self._journal = journal
        self._written = written
        self._every = every
        self._retention = retention
        self._in_thread = in_thread
        self._state: CheckpointState | None = None
        self._taken = self._size = 0
        self._lock = anyio.Lock()

    def loops(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """Wait for enough records, and take checkpoints."""
        return (self._follow,) if self._every else ()

    async def handle(self, message: Poke) -> Done:
        """Take one of everything now."""
        await self._take(whole=True)
        return Done()

    async def _follow(self) -> None:
        newest = await self._journal.checkpoints()
        # A restart goes on counting from the last checkpoint: else a process that restarts often would take none.
        self._taken = newest[0].sequence if newest else (await self._journal.head()).cut
        self._size = len(newest[0].content) if newest else 0
        while True:
            await self._written.wait_beyond(self._next - 1)
            await self._take(whole=False)

    @property
    def _next(self) -> int:
        """Return the record at which the next checkpoint is due."""
        return self._taken + interval(self._every, self._retention, self._size)

    async def _take(self, *, whole: bool) -> None:
        async with self._lock:
            try:
                await self._checkpoint(whole=whole)
            except StorageError as error:
                # Not fatal: a restart reads more records then, and nothing is lost.
                log.warning("no checkpoint was taken: %s", error)
                self._try_later()

    def _try_later(self) -> None:
        # Folded anew the next time: what an error left half-applied cannot be trusted.
        self._state = None
        self._taken = self._written.value

    async def _checkpoint(self, *, whole: bool) -> None:
        # Where many records came while a segment was written, checkpoints stay as near to each other as ever: segments
        # end at them, and questions begin at them.
        head = await self._journal.head()
        state = await self._folded(head, head.sequence if whole else min(head.sequence, self._next))
        if state.sequence <= self._taken:
            return
        make = partial(state.checkpoint, self.clock.now())
        # Packing a large cluster takes seconds; on virtual time a thread would let the clock run ahead.
        made = await anyio.to_thread.run_sync(make) if self._in_thread else make()
        kept = await self._recorder.ask(SaveCheckpoint(made.sequence, made.at, made.content))
        if not kept.last:
            self._try_later()
            return
        # The record that vouches for a checkpoint is no reason to take another one.
        self._taken = made.sequence if made.sequence < head.sequence else kept.last
        self._size = len(made.content)
        # After the checkpoint is durable: cut before, a crash in between would leave neither records nor state.
        await self._journal.trim(self._retention, self.clock.now())

    async def _folded(self, head: Head, until: int) -> CheckpointState:
        """Return the state at the first record from `until` on after which no cycle is half written."""
        if self._state is None:
            self._state = await newest_state(self._journal, head) or CheckpointState()
        state = self._state
        while state.sequence < until or not state.between_cycles:
            records = await self._journal.read(state.sequence, limit=PIECE)
            for record in records:
                if state.sequence >= until and state.between_cycles:
                    break
                state.note(record)
            if not records:
                break
            await anyio.lowlevel.checkpoint()
        return state
