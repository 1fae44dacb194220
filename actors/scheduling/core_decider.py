# SPDX-License-Identifier: Apache-2.0
"""The decider that is the real core: steps that stop at questions to processes outside, and times of plugins."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import greenlet
from msgspec.structs import replace

from pumice.actors.scheduling.decider import Decider, Moment, always, no_tables
from pumice.core.actions import ACTIONS, DRY_RUNNING
from pumice.core.cycle import (
    cards_later,
    close_session,
    is_idle,
    may_skip_no_op,
    open_session,
    run_action,
    run_cycle,
    shares_later,
    tables_later,
)
from pumice.core.default_scheduler.cycle import waiting
from pumice.core.default_scheduler.profile import NAME
from pumice.core.messages.questions import AskOutside
from pumice.core.messages.queue_tables import CardTable, JobShares
from pumice.core.outside import AskedOutside, Asking, ask_nothing
from pumice.core.plugins import asks_outside
from pumice.core.session.carry import Carry, CycleClock
from pumice.core.state.view import View

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from pumice.actors.scheduling.decider import Steps
    from pumice.actors.system.ports import OutsidePort
    from pumice.config.schema import SchedulerConfig
    from pumice.core.messages.decisions import CycleResult
    from pumice.core.messages.questions import OutsideAnswer, OutsideAnswers, OutsideQuestion
    from pumice.core.messages.queue_tables import QueueTables
    from pumice.core.outside import Ask
    from pumice.core.session.session import Session
    from pumice.core.state.snapshot import Snapshot

# --- Steps that stop at questions to processes outside
# The core is plain functions; a question may come up deep inside one. So a step runs on a stack of its own (a
# greenlet), which stops there and goes on with the answers: a coroutine, without a word about it in the core.

T = TypeVar("T")


def stopping(cycle: int) -> Ask:
    """Return the function with which a session asks while its steps are `driven`."""

    def ask(questions: Sequence[OutsideQuestion]) -> Sequence[OutsideAnswer]:
        driver = greenlet.getcurrent().parent
        assert driver is not None, "a question outside of a step that is driven"
        answers: Sequence[OutsideAnswer] = driver.switch(Asking(cycle, questions))
        return answers

    return ask


async def driven(step: Callable[[], T], ask: Callable[[Asking], Awaitable[Sequence[OutsideAnswer]]]) -> T:
    """Run the step to its end, and ask its questions. Raises the errors of the step and of `ask`."""
    # A greenlet: the core is synchronous and asks deep within a call, where no `await` can stand.
    stack = greenlet.greenlet(step)
    said: Any = stack.switch()
    try:
        while not stack.dead:
            said = stack.switch(await ask(said))
    finally:
        if not stack.dead:  # it will not be continued
            stack.throw()
    done: T = said
    return done


async def asked_of(outside: OutsidePort, asking: Asking) -> Sequence[OutsideAnswer]:
    """Let the extender's client ask."""
    return (await outside.ask(AskOutside(asking.cycle, tuple(asking.questions)))).answers


class SessionSteps:
    """The steps of one session: driven where there is an outside to ask (`outside`), otherwise called directly.

    `ask`: what the session is to ask with.
    """

    def __init__(self, outside: OutsidePort | None, cycle: int) -> None:
        self._outside = outside
        self.asking = outside is not None
        self.ask: Ask = ask_nothing if outside is None else AskedOutside(stopping(cycle))

    async def run(self, step: Callable[[], T]) -> T:
        """Run one step to its end."""
        if self._outside is None:
            return step()
        return await driven(step, partial(asked_of, self._outside))

    def answers(self) -> OutsideAnswers | None:
        """Return the outside answers so far, for the record."""
        return self.ask.answers() if isinstance(self.ask, AskedOutside) else None


# --- Times of plugins
# Part of the decider.

Times = dict[str, dict[str, float]]
"""Seconds by point (OnSessionOpen, OnSessionClose) and plugin."""


class PluginTimes:
    """Times of plugins, one session at a time: a session that is lost is forgotten at the next opening."""

    def __init__(self, stopwatch: Callable[[], float]) -> None:
        self._stopwatch = stopwatch
        self._taken: Times = {}

    def forget(self) -> None:
        """Forget the times as a session begins."""
        self._taken = {}

    def watch(self, plugin: str, point: str, work: Callable[[Any], None], session: object) -> None:
        """Run a plugin, and note how long it took, unless it raised."""
        began = self._stopwatch()
        work(session)
        self._taken.setdefault(point, {})[plugin] = self._stopwatch() - began

    def told(self, result: CycleResult) -> CycleResult:
        """Return the result with the times in its report."""
        return replace(result, report=replace(result.report, timings=self._taken))


def core_decider(*, report: bool = False, stopwatch: Callable[[], float] = time.perf_counter) -> Decider:
    """Return the decider. `report`: every cycle computes its full report. `stopwatch` (seconds) feeds the metrics and
    nothing else.
    """
    times, queues = PluginTimes(stopwatch), NewestTables()
    stepped: dict[str, Callable[[Session], Steps]] = {name: partial(_steps, name) for name in DRY_RUNNING}
    return Decider(
        View,
        partial(_open, report, times),
        run_action,
        partial(_close, times, queues),
        is_idle,
        tuple(ACTIONS),
        stepped=stepped,
        queue_tables=queues.tables,
        card_table=queues.cards,
        job_shares=queues.shares,
        asks=asks_outside,
        # Who reads reports wants one of every cycle, also of those that decide nothing.
        may_skip_no_op=always if report else may_skip_no_op,
        others_waiting=waiting,
        decide_others=_decide_others,
    )


class NewestTables:
    """The tables of queues, cards and shares of the newest session."""

    def __init__(self) -> None:
        self._tables = no_tables
        self._cards: Callable[[], CardTable] = CardTable
        self._shares: Callable[[], JobShares] = JobShares

    def keep(self, session: Session) -> None:
        """Keep the tables of a session that is about to close."""
        # Closures: tables of a thousand queues are made when a reader asks, not in each cycle.
        self._tables, self._cards = tables_later(session), cards_later(session)
        self._shares = shares_later(session)

    def tables(self) -> tuple[QueueTables, ...]:
        """Return the queues' tables, made anew by every call; () before the first session."""
        return self._tables()

    def cards(self) -> CardTable:
        """Return the cards, likewise; empty without any."""
        return self._cards()

    def shares(self) -> JobShares:
        """Return the shares, likewise; empty where no plugin computes any."""
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
    # Before the close: after it the columns belong to the next session.
    queues.keep(session)
    return times.told(close_session(session, times.watch))


def _steps(name: str, session: Session) -> Steps:
    session.action = name
    return DRY_RUNNING[name](session)
