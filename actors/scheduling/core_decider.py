"""The real core as the actors use it."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from pumice.actors.scheduling.decider import Decider, Moment, always, no_tables
from pumice.core.actions import ACTIONS, DRY_RUNNING
from pumice.core.cycle import (
    cards_later,
    close_session,
    is_idle,
    may_rest,
    open_session,
    run_action,
    run_cycle,
    shares_later,
    tables_later,
)
from pumice.core.default_scheduler.profile import NAME
from pumice.core.default_scheduler.waiting import waiting
from pumice.core.messages.queue_tables import CardTable, JobShares
from pumice.core.plugins import PLUGINS, asks_outside
from pumice.core.session.carry import Carry, CycleClock
from pumice.core.state.view import View

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.actors.scheduling.decider import Steps
    from pumice.config.schema import SchedulerConfig
    from pumice.core.messages.decisions import CycleResult
    from pumice.core.messages.queue_tables import QueueTables
    from pumice.core.outside import Ask
    from pumice.core.session.session import Session
    from pumice.core.state.snapshot import Snapshot

# --- How long each plugin took to open and to close a session: for the metrics. Part of the decider.

Times = dict[str, dict[str, float]]
"""Seconds by point (OnSessionOpen, OnSessionClose) and plugin."""


class PluginTimes:
    """One session at a time: one that is lost on the way is forgotten at the next opening."""

    def __init__(self, stopwatch: Callable[[], float]) -> None:
        self._stopwatch = stopwatch
        self._taken: Times = {}

    def forget(self) -> None:
        """A session begins."""
        self._taken = {}

    def watch(self, plugin: str, point: str, work: Callable[[Any], None], session: Any) -> None:
        """Let a plugin work, and note how long it took, unless it raised."""
        began = self._stopwatch()
        work(session)
        self._taken.setdefault(point, {})[plugin] = self._stopwatch() - began

    def told(self, result: CycleResult) -> CycleResult:
        """The result with the times in its report."""
        return replace(result, report=replace(result.report, timings=self._taken))


# ---


def core_decider(*, report: bool = False, stopwatch: Callable[[], float] = time.perf_counter) -> Decider:
    """`report`: every cycle computes its full report. `stopwatch` (seconds) feeds the metrics and nothing else."""
    times, queues = PluginTimes(stopwatch), NewestTables()
    stepped: dict[str, Callable[[Session], Steps]] = {name: partial(_steps, name) for name in DRY_RUNNING}
    return Decider(
        View,
        partial(_open, report, times),
        run_action,
        partial(_close, times, queues),
        is_idle,
        tuple(ACTIONS),
        plugins=tuple(PLUGINS),
        stepped=stepped,
        queue_tables=queues.tables,
        card_table=queues.cards,
        job_shares=queues.shares,
        asks=asks_outside,
        may_rest=always if report else may_rest,
        others_waiting=waiting,
        decide_others=_decide_others,
    )


class NewestTables:
    """What the newest session left to be told of the queues, of cards and of shares."""

    def __init__(self) -> None:
        self._tables = no_tables
        self._cards: Callable[[], CardTable] = CardTable
        self._shares: Callable[[], JobShares] = JobShares

    def keep(self, session: Session) -> None:
        """A session is about to close."""
        self._tables, self._cards = tables_later(session), cards_later(session)
        self._shares = shares_later(session)

    def tables(self) -> tuple[QueueTables, ...]:
        """Made anew by every call; () before the first session."""
        return self._tables()

    def cards(self) -> CardTable:
        """In the same way; empty where there are none."""
        return self._cards()

    def shares(self) -> JobShares:
        """In the same way; empty where no plugin reckons any."""
        return self._shares()


def _open(
    report: bool,
    times: PluginTimes,
    snapshot: Snapshot,
    config: SchedulerConfig,
    moment: Moment,
    carry: Mapping[str, Any],
    ask: Ask,
) -> Session:
    clock, carried = CycleClock(moment.cycle, moment.now, moment.seed), Carry.from_dict(carry)
    times.forget()
    return open_session(snapshot, config, clock, carried, report=report, watch=times.watch, ask=ask, sparing=True)


def _decide_others(
    snapshot: Snapshot, config: SchedulerConfig, moment: Moment, carry: Mapping[str, Any]
) -> CycleResult:
    clock, carried = CycleClock(moment.cycle, moment.now, moment.seed), Carry.from_dict(carry)
    return run_cycle(snapshot, config, clock, carried, scheduler=NAME)


def _close(times: PluginTimes, queues: NewestTables, session: Session) -> CycleResult:
    queues.keep(session)
    return times.told(close_session(session, times.watch))


def _steps(name: str, session: Session) -> Steps:
    session.action = name
    return DRY_RUNNING[name](session)
