"""Committing a cycle, in the one order that loses nothing: journal, then assume, then carry out.

Part of the session runner, which holds it.
"""

from __future__ import annotations

from itertools import cycle as rotation
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from actors.scheduling.cycle_memory import Unsent
from core.messages.commands import Assume
from core.messages.message import Message
from core.messages.orders import BindOrder, EvictOrder, WriteStatus
from core.messages.recording import Append, Entry
from storage import codec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from actors.scheduling.cycle_memory import CycleMemory
    from actors.system.ports import BindPort, CachePort, EvictPort, RecorderPort, StatusPort
    from core.messages.decisions import Bind, CycleResult
    from core.messages.events import CycleRecord

D = TypeVar("D")
M = TypeVar("M", bound=Message)

ORDER = 64
"""Binds in one order at most: what one worker carries to the api at a time."""


class Commit:
    """The mailboxes a cycle's decisions go to."""

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

    async def note(self, kind: str, event: Message) -> None:
        """Have an event written down some time."""
        await self._recorder.tell(Append((Entry(kind, codec.encode(event)),)))

    async def record(self, record: CycleRecord, result: CycleResult, memory: CycleMemory) -> None:
        """The cycle and its decisions are on disk on return; each decision has the cycle record as its cause."""
        decisions = (*result.binds, *result.evicts)
        cycle, *decided = codec.encode_many((record, *decisions))
        entries = (Entry("cycle", cycle), *[Entry("decision", decision, -1) for decision in decided])
        # written and not remembered, it would be written again
        appended = await self._recorder.ask(Append(entries), through=True)
        memory.cycle = record.cycle
        memory.carry = record.carry
        memory.unsent = Unsent(result, record.statuses, appended.first + 1, record.now, record.revision)

    async def carry_out(self, memory: CycleMemory) -> None:
        """Assume, then hand out, what is recorded and not yet sent: once, whoever crashes in between."""
        if memory.unsent is None:
            return
        await self._hand_out(memory.unsent)
        memory.unsent = None

    async def _hand_out(self, unsent: Unsent) -> None:
        """Through to the end whoever cancels: handed out in part, it would be handed out again as a whole."""
        result, first, now = unsent.result, unsent.first, unsent.now
        if result.binds or result.evicts:
            await self._cache.ask(Assume(result.cycle, result.binds, result.evicts), through=True)
        for start, binds in _cut(result.binds, _writes):
            binder = self._pre_binder if _writes(binds[0]) else next(self._binders)
            created = result.report.created[start : start + len(binds)]
            await binder.tell(BindOrder(result.cycle, first + start, binds, now, created), through=True)
        for start, evicts in _cut(result.evicts):
            order = EvictOrder(result.cycle, first + len(result.binds) + start, evicts)
            await next(self._evictors).tell(order, through=True)
        if result.events:
            await self._status.tell(replace(_statuses(result, unsent.seen), events=result.events), through=True)
        elif unsent.statuses:
            await self._status.tell(unsent.statuses, through=True)


def statuses_of(result: CycleResult, seen: int) -> bytes:
    """What a cycle that saw the api's revision `seen` writes beside its decisions, as the journal keeps it; empty when
    that is nothing.
    """
    if not (result.pod_conditions or result.pod_groups or result.queues):
        return b""
    return codec.encode(_statuses(result, seen))


def _statuses(result: CycleResult, seen: int) -> WriteStatus:
    return WriteStatus(result.cycle, result.pod_conditions, result.pod_groups, result.queues, seen=seen)


def _writes(bind: Bind) -> bool:
    """Whether other objects are written first: claims, volumes; annotations come with the bind itself."""
    return bind.pre_bind is not None and bind.pre_bind.writes


def _cut(decisions: tuple[D, ...], key: Callable[[D], bool] = lambda _: False) -> Iterator[tuple[int, tuple[D, ...]]]:
    """Runs of decisions with the same key, with the place of the first."""
    start = 0
    for _, run in groupby(decisions, key):
        alike = tuple(run)
        for offset in range(0, len(alike), ORDER):
            yield start + offset, alike[offset : offset + ORDER]
        start += len(alike)
