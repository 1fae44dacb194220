"""Cycles that come to nothing, known before a session is opened: they are recorded, and not decided.

A cycle writes statuses, and hears of them as of all news. Where that is all the news and nobody waits for a place, the
next one would only say the same again: a third of the cycles of a cluster whose jobs come one by one. Part of the
session runner. A replay decides these cycles as all others, and so shows each time that they come to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from core.digest import digest
from core.messages.commands import CycleSaid
from core.messages.decisions import CycleResult

if TYPE_CHECKING:
    from actors.scheduling.cycle_memory import CycleMemory
    from core.messages.events import CycleRecord

NOTHING: Final = digest((), (), (), (), ())
"""What no decisions and no statuses hash to."""


def rested(memory: CycleMemory) -> CycleResult:
    """The next cycle, which comes to nothing; who waits for what is as it was."""
    report = replace(memory.report, binding={}, created=(), timings={})
    return CycleResult(memory.cycle + 1, NOTHING, carry=memory.carry, report=report)


def said_by(result: CycleResult, record: CycleRecord, *, may_rest: bool) -> CycleSaid:
    """What the next one may hear of a cycle."""
    did = result.binds or result.evicts or result.pod_conditions or result.events
    alone = may_rest and not did and result.wake_at is None and result.carry == record.carry_before
    return CycleSaid(result.pod_groups, result.queues, alone)
