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
AFTER_S = 1.0
"""Delay of a checkpoint that ends a span of time: a timer may be early by the wall clock, and the span must be over."""
LOOK = 16
"""Records after which their bytes are counted, where bytes are limited; more where the largest ones would fit."""
LARGEST = 1_500_000
"""Bytes of a record with one object, about."""

log = logging.getLogger(__name__)


class Checkpointer(Actor[Poke, Done]):
    """Takes a checkpoint after every `every` records (0: only when poked), or sooner for segments, which end there
    (`storage.retention.interval`, `Rotation`), then cuts as `retention` says.
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
        self._since = 0.0
        """The moment from which the span of the next segment counts."""
        self._lock = anyio.Lock()

    def loops(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """Wait for enough records, and take checkpoints."""
        return (self._follow,) if self._every else ()

    async def handle(self, message: Poke) -> Done:
        """Take one of everything now."""
        await self._take()
        return Done()

    async def _follow(self) -> None:
        newest = await self._journal.checkpoints()
        # A restart goes on counting from the last checkpoint: else a process that restarts often would take none.
        self._taken = newest[0].sequence if newest else (await self._journal.head()).cut
        self._size = len(newest[0].content) if newest else 0
        first = await self._journal.read(self._taken, limit=1)
        self._since = first[0].at if first else self.clock.now()
        while True:
            await self._take(await self._due())

    async def _due(self) -> int:
        """Wait for as many records or bytes as a segment has, or for as long, and for one record at least; return the
        record that the checkpoint is to stand for.
        """
        rotation = self._retention.rotation
        if rotation is None or rotation.seconds is None:
            return await self._enough()
        with anyio.move_on_after(max(0.0, self._since + rotation.seconds + AFTER_S - self.clock.now())):
            return await self._enough()
        return await self._written.wait_beyond(self._taken)

    async def _enough(self) -> int:
        seen, end = self._taken, self._taken + interval(self._every, self._retention, self._size)
        rotation = self._retention.rotation
        if rotation is not None and rotation.bytes is not None:
            # As many as its checkpoint at least: else a journal would be checkpoints rather than records.
            left, step = max(rotation.bytes, self._size), LOOK
            while left > 0 and seen < end:
                upto = min(seen + step, end)
                await self._written.wait_beyond(upto - 1)
                try:
                    weight = await self._journal.weigh(seen, upto)
                except StorageError:
                    return upto  # the checkpoint meets it too, and says so
                left -= weight
                # No more than fit, if they are like those of this look.
                step = max(1, min(max(LOOK, left // LARGEST), left * (upto - seen) // max(weight, 1)))
                seen = upto
            return seen
        await self._written.wait_beyond(end - 1)
        return end

    async def _take(self, through: int | None = None) -> None:
        async with self._lock:
            try:
                await self._checkpoint(through)
            except StorageError as error:
                # Not fatal: a restart reads more records then, and nothing is lost.
                log.warning("no checkpoint was taken: %s", error)
                self._try_later()

    def _try_later(self) -> None:
        # Folded anew the next time: what an error left half-applied cannot be trusted.
        self._state = None
        self._taken, self._since = self._written.value, self.clock.now()

    async def _checkpoint(self, through: int | None) -> None:
        # Where many records came while a segment was written, checkpoints stay as near to each other as ever: segments
        # end at them, and questions begin at them.
        head = await self._journal.head()
        state = await self._folded(head, head.sequence if through is None else min(head.sequence, through))
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
        self._taken = kept.last if kept.last == made.sequence + 1 else made.sequence
        self._size, self._since = len(made.content), made.at
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
