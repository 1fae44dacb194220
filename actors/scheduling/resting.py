"""Cycles that would come to nothing, known before a session is opened: there is none then.

A cycle writes statuses, and hears of them as of all news. Where that is all the news and nobody waits for a place, the
next one would only say the same again: a third of the cycles of a cluster whose jobs come one by one. Part of the
session runner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.messages.commands import CycleSaid

if TYPE_CHECKING:
    from pumice.core.messages.decisions import CycleResult
    from pumice.core.messages.events import CycleRecord


def said_by(result: CycleResult, record: CycleRecord, *, may_rest: bool) -> CycleSaid:
    """What the next one may hear of a cycle; nothing where another is to follow in any case."""
    did = result.binds or result.evicts or result.pod_conditions or result.events
    alone = may_rest and not did and result.wake_at is None and result.carry == record.carry_before
    return CycleSaid(result.pod_groups, result.queues, alone) if alone else CycleSaid()
