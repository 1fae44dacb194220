# SPDX-License-Identifier: Apache-2.0
"""Committing of a cycle, in the only order that loses nothing: journal, then assume, then carry out.

Part of the session runner, which holds it.
"""

from __future__ import annotations

from contextlib import nullcontext
from itertools import cycle as rotation
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

import anyio

from pumice.actors.errors import ActorFailedError
from pumice.actors.scheduling.cycle_memory import Unsent
from pumice.core.messages.commands import Append, Assume, BindOrder, Entry, EvictOrder, WriteStatus
from pumice.core.messages.message import Message
from pumice.storage import codec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pumice.actors.runtime.envelope import Answer
    from pumice.actors.scheduling.cycle_memory import CycleMemory
    from pumice.actors.system.ports import BindPort, CachePort, EvictPort, RecorderPort, StatusPort
    from pumice.core.messages.decisions import Bind, CycleResult, PodGroupEvent
    from pumice.core.messages.events import CycleRecord

D = TypeVar("D")
M = TypeVar("M", bound=Message)

ORDER = 64
"""Binds in one order at most: what one worker carries to the api at a time."""


class Commit:
    """Commits cycles. It holds the mailboxes to which a cycle's decisions go."""

    def __init__(
        self,
        *,
        cache: CachePort,
        recorder: RecorderPort,
        binders: Sequence[BindPort],
        pre_binder: BindPort,
        evictors: Sequence[EvictPort],
        status: StatusPort,
    ) -> None:
        self._cache = cache
        self._recorder = recorder
        self._binders = rotation(binders)
        self._pre_binder = pre_binder
        self._evictors = rotation(evictors)
        self._status = status
        self._patience = anyio.CancelScope()
        self._told: tuple[PodGroupEvent, ...] = ()  # by the last cycle

    async def note(self, kind: str, event: Message) -> None:
        """Have an event written at some later time."""
        await self._recorder.tell(Append((Entry(kind, codec.encode(event)),)))

    async def record(self, record: CycleRecord, result: CycleResult, memory: CycleMemory) -> None:
        """Write the cycle and its decisions to disk; each decision has the cycle record as its cause."""
        decisions = (*result.binds, *result.evicts)
        cycle, *decided = codec.encode_many((record, *decisions))
        entries = (Entry("cycle", cycle), *[Entry("decision", decision, -1) for decision in decided])
        # written and not remembered, it would be written again
        appended = await self._recorder.ask(Append(entries), through=True)
        memory.cycle = record.cycle
        memory.carry = record.carry
        memory.unsent = Unsent(result, record.statuses, appended.first + 1, record.now)

    async def carry_out(self, memory: CycleMemory) -> None:
        """Assume, then hand out, recorded and unsent decisions: once, also after a crash in between. On return its
        statuses are written, as Volcano's are at the end of a cycle (`JobUpdater.UpdateAll`): the next cycle would
        decide all of them again. Each was tried then; a later cycle repeats failed ones.
        """
        unsent = memory.unsent
        if unsent is None:
            return
        written = await self._hand_out(unsent)
        # not before all is handed out: after a crash until here the next instance does it
        memory.unsent = None
        if written is not None:
            await self._wait_for(written, unsent.statuses)

    def wait_no_more(self) -> None:
        """Note that the cycle in hand is the last one: its statuses need not be written."""
        self._patience.cancel()

    async def _wait_for(self, written: Answer, statuses: bytes) -> None:
        waits = written.missing > 0
        try:
            with self._patience if waits else nullcontext():
                await self._status.answered(written)
        except ActorFailedError:  # the next instance has them then, and no one waits until it is there
            await self._status.tell(statuses, through=True)
        if waits:
            self._patience = anyio.CancelScope()

    async def _hand_out(self, unsent: Unsent) -> Answer | None:
        """Hand out the decisions to the end, also when cancelled: handed out in part, they would be handed out again as
        a whole. Return the status writer's coming answer, where it was asked.
        """
        result, first, now = unsent.result, unsent.first, unsent.now
        if result.binds or result.evicts:
            # before any worker has them: an outcome must find its decision in flight
            await self._cache.ask(Assume(result.cycle, result.binds, result.evicts), through=True)
        for start, binds in _cut(result.binds, _writes):
            # binds that wait for claims have a worker of their own and do not hold up the others
            binder = self._pre_binder if _writes(binds[0]) else next(self._binders)
            created = result.report.created[start : start + len(binds)]
            await binder.tell(BindOrder(result.cycle, first + start, binds, now, created), through=True)
        for start, evicts in _cut(result.evicts):
            # journal numbers follow from places: `record` wrote all binds before the evictions
            order = EvictOrder(result.cycle, first + len(result.binds) + start, evicts)
            await next(self._evictors).tell(order, through=True)
        written = await self._status.ask_later(unsent.statuses, through=True) if unsent.statuses else None
        # The status writer leaves out what it said last; a thousand jobs that wait would get it every cycle.
        if result.events and result.events != self._told:
            await self._status.tell(WriteStatus(result.cycle, events=result.events), through=True)
        self._told = result.events
        return written


def statuses_of(result: CycleResult, seen: int) -> bytes:
    """Return the statuses that a cycle writes beside its decisions, as the journal keeps them; empty without any. The
    cycle saw the api's revision `seen`.
    """
    if not (result.pod_conditions or result.pod_groups or result.queues):
        return b""
    said = WriteStatus(result.cycle, result.pod_conditions, result.pod_groups, result.queues, seen=seen)
    return codec.encode(said)


def _writes(bind: Bind) -> bool:
    """Return whether other objects are written first: claims, volumes; annotations come with the bind itself."""
    return bind.pre_bind is not None and bind.pre_bind.writes


def _cut(decisions: tuple[D, ...], key: Callable[[D], bool] = lambda _: False) -> Iterator[tuple[int, tuple[D, ...]]]:
    """Yield runs of decisions with the same key, with the place of the first."""
    start = 0
    for _, run in groupby(decisions, key):
        alike = tuple(run)
        for offset in range(0, len(alike), ORDER):
            yield start + offset, alike[offset : offset + ORDER]
        start += len(alike)
