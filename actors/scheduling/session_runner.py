# SPDX-License-Identifier: Apache-2.0
"""The session runner: one scheduling cycle at a time, Volcano's and then that of Kubernetes' own scheduler.

Owns: the cycle number, the carry, the configuration in force, and the session whenever no action worker holds it.
Accepts: `RunCycle` (run one now, changed or not), `OfferConfig`, `AwaitCycle`, `TellQueues`.
Sends: asks the cache (snapshot, assume), the recorder (append), the action workers (the baton; an action that would
find nothing to do is run here) and the status writer; tells the bind and evict workers and the metrics.
When full: askers of `RunCycle` wait.
Stops: after the cycle in hand, before the actors it sends to; its statuses are not awaited then.

A cycle starts when the view changed, when a plugin's time has come or when the configuration changed; a schedule
period after the end of the one before (as in Volcano), and after the actors that answer to the same change. Nothing is
sent before the cycle record and its decisions are on disk; then the cache assumes them, the workers carry them out, and
the statuses are written. So a crash before the record loses a session whose decisions were not sent; after it, the next
instance carries out what was recorded, and the next process resolves it against the api.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

import anyio

from pumice.actors.errors import ActorFailedError, CycleLostError
from pumice.actors.runtime.activity import SCHEDULER
from pumice.actors.runtime.actor import Actor
from pumice.actors.runtime.mailbox import expected
from pumice.actors.scheduling.commit import statuses_of
from pumice.actors.scheduling.core_decider import SessionSteps
from pumice.actors.scheduling.decider import Moment
from pumice.config import rules
from pumice.config.errors import ConfigError
from pumice.core import digest
from pumice.core.default_scheduler.profile import NAME
from pumice.core.messages.commands import (
    AwaitCycle,
    CycleSaid,
    CyclesRun,
    OfferConfig,
    RunAction,
    RunCycle,
    RunnerCommand,
    TakeSnapshot,
    TellQueues,
)
from pumice.core.messages.events import ConfigLoaded, CycleDropped, CycleMeasured, CycleRecord
from pumice.core.messages.queue_tables import QueuesMeasured
from pumice.core.messages.replies import ActionFailed, Done, SnapshotTaken
from pumice.core.objects.metadata import Object
from pumice.core.state.volumes import volume_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from pumice.actors.runtime.actor import Context
    from pumice.actors.runtime.clock import Clock
    from pumice.actors.runtime.envelope import Received
    from pumice.actors.scheduling.commit import Commit
    from pumice.actors.scheduling.config_source import LoadedConfig
    from pumice.actors.scheduling.cycle_memory import CycleMemory, RunnerSettings
    from pumice.actors.scheduling.decider import Decider
    from pumice.actors.system.ports import ActionPort, CachePort, MetricsPort, OutsidePort, RunnerPort
    from pumice.cluster.handles import HandleTable
    from pumice.config.schema import SchedulerConfig
    from pumice.core.messages.decisions import CycleReport, CycleResult
    from pumice.core.messages.questions import OutsideAnswers
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session
    from pumice.core.state.snapshot import Snapshot

# --- The record of a cycle


def record_of(
    taken: SnapshotTaken,
    config_digest: str,
    moment: Moment,
    result: CycleResult,
    carry: Object,
    answers: OutsideAnswers | None = None,
    scheduler: str = "",
) -> CycleRecord:
    """Return the record of a cycle: its input and its result. `carry`: the memory it started with; `scheduler`: its
    scheduler, "" for Volcano's.
    """
    return CycleRecord(
        cycle=moment.cycle,
        now=moment.now,
        seed=moment.seed,
        revision=taken.revision,
        version=taken.version,
        config_digest=config_digest,
        digest=result.digest,
        decisions=len(result.binds) + len(result.evicts),
        carry_before=carry,
        carry=result.carry,
        operations=taken.operations,
        statuses=statuses_of(result, taken.revision),
        wake_at=result.wake_at,
        rules=rules.VERSION,
        digest_version=digest.VERSION,
        answers=answers,
        scheduler=scheduler,
        failed=result.failed,
    )


# --- Kubernetes' own scheduler
# Part of the session runner, which holds it. What Volcano's cycle decided is assumed by then, so it looks at nodes as
# they will be, and the next cycle of Volcano's sees what it decided in the same way. A cycle in which nothing is
# decided and nothing new is said leaves no record. While room is being made for one of its pods, it also has a turn
# before Volcano's. kube-scheduler does not wait for a period: it is woken when its victims have gone. Were Volcano's
# always first, the pods that are made anew in the place of the victims would have the room again, and so on for ever.


class OtherScheduler:
    """Runs Kubernetes' own scheduler in its turn, when the session runner calls it."""

    def __init__(
        self, *, cache: CachePort, commit: Commit, decider: Decider, snapshots: HandleTable[Snapshot], clock: Clock
    ) -> None:
        self._cache = cache
        self._commit = commit
        self._decider = decider
        self._snapshots = snapshots
        self._clock = clock
        self._makes_room = False

    async def before(self, loaded: LoadedConfig, memory: CycleMemory, seed: int) -> None:
        """Run the turn before a cycle of Volcano's."""
        if self._makes_room:
            await self._cycle(loaded, memory, seed)

    async def after(self, loaded: LoadedConfig, memory: CycleMemory, seed: int, waiting: Sequence[Task]) -> None:
        """Run the turn after a cycle of Volcano's, in whose snapshot these pods of its own were waiting."""
        self._makes_room = any(task.nominated for task in waiting)
        if waiting:
            await self._cycle(loaded, memory, seed)

    async def _cycle(self, loaded: LoadedConfig, memory: CycleMemory, seed: int) -> None:
        """Run one cycle from snapshot to commit."""
        asked = TakeSnapshot(memory.seen, memory.cycle + 1, volume_rules(loaded.config))
        taken = expected(await self._cache.ask(asked), SnapshotTaken)
        moment = Moment(memory.cycle + 1, self._clock.now(), seed)
        try:
            result = self._decider.decide_others(
                self._snapshots.take(taken.handle), loaded.config, moment, memory.carry
            )
        except Exception as error:
            log.exception("bug in Pumice: a cycle of %s", NAME)
            raise CycleLostError(f"{NAME}: {error!r}") from error
        if not (result.binds or result.evicts or result.pod_conditions):
            return
        self._makes_room = self._makes_room or bool(result.evicts)
        record = record_of(taken, loaded.digest, moment, result, memory.carry, scheduler=NAME)
        await self._commit.record(record, result, memory)
        await self._commit.carry_out(memory)


# --- Measurements
# Part of the session runner.


class Measure:
    """One cycle's stopwatch. `stopwatch()` gives seconds."""

    def __init__(self, stopwatch: Callable[[], float]) -> None:
        self._stopwatch = stopwatch
        self._began = self._close_began = stopwatch()
        self._open_s = self._close_s = 0.0
        self._actions: dict[str, float] = {}

    def opened(self) -> None:
        """Note that the session is open, the first step of the cycle."""
        self._open_s = self._stopwatch() - self._began

    def closing(self) -> None:
        """Note that the session is about to be closed."""
        self._close_began = self._stopwatch()

    def closed(self) -> None:
        """Note that the session is closed."""
        self._close_s = self._stopwatch() - self._close_began

    def action(self, name: str, seconds: float) -> None:
        """Note that an action has run."""
        self._actions[name] = seconds

    def finish(self, result: CycleResult, now: float) -> CycleMeasured:
        """Return all measures of this cycle; `now` is its moment."""
        unschedulable = len([None for condition in result.pod_conditions if condition.reason])
        return CycleMeasured(
            cycle=result.cycle,
            total_s=self._stopwatch() - self._began,
            open_s=self._open_s,
            close_s=self._close_s,
            actions=self._actions,
            plugins=result.report.timings,
            attempts={"scheduled": len(result.binds), "unschedulable": unschedulable},
            victims=len(result.evicts),
            preemption_attempts=len({evict.preemptor for evict in result.evicts if evict.preemptor}),
            unscheduled=result.report.unready,
            now=now,
            binding=result.report.binding,
            created=result.report.created,
        )


# --- No-op cycles: those that would decide nothing
# A cycle writes statuses, and sees them come back as changes. Where there are no other changes, and no pod waits for a
# place or only queues were written, the next one would only say the same again: a third of the cycles of a cluster
# whose jobs come one by one. Part of the session runner.


def said_by(result: CycleResult, record: CycleRecord, *, may_skip_no_op: bool) -> CycleSaid:
    """Return the part of a cycle that the next one may read; empty where another cycle follows in any case."""
    # Events are no reason: those of the next cycle would be the same, and are not written twice.
    did = result.binds or result.evicts or result.pod_conditions
    alone = may_skip_no_op and not did and result.wake_at is None and result.carry == record.carry_before
    return CycleSaid(result.pod_groups, result.queues, alone) if alone else CycleSaid()


GIVE_UP_AFTER = 5
"""Cycles lost in a row on one view; then the runner waits for a change instead of losing more."""

FIRST_PAUSE_S = 0.01
YIELD_S = 0.2e-6
"""Delay of a cycle after its time and its reason, so that all other work of that moment comes first."""

log = logging.getLogger(__name__)


class SessionRunner(Actor[RunnerCommand, Done | CyclesRun]):
    """Runs one cycle after the other, in the one order that loses no decision: journal, cache, workers, statuses.

    `memory` outlives a restart of this actor: cycle numbers, carry, the last seen state, and what is recorded and not
    yet sent.
    """

    answers_later = True

    def __init__(
        self,
        name: str,
        mailbox: RunnerPort,
        context: Context,
        *,
        cache: CachePort,
        actions: dict[str, ActionPort],
        commit: Commit,
        metrics: MetricsPort,
        outside: OutsidePort,
        decider: Decider,
        snapshots: HandleTable[Snapshot],
        sessions: HandleTable[Session],
        memory: CycleMemory,
        settings: RunnerSettings,
    ) -> None:
        super().__init__(name, mailbox, context)
        self._cache = cache
        self._actions = actions
        self._commit = commit
        self._metrics = metrics
        self._outside = outside
        self._decider = decider
        self._snapshots = snapshots
        self._sessions = sessions
        self._memory = memory
        self._settings = settings
        self._other = OtherScheduler(cache=cache, commit=commit, decider=decider, snapshots=snapshots, clock=self.clock)
        self._lock = anyio.Lock(fast_acquire=True)
        self._awaited: list[tuple[int, Received[RunnerCommand, Done | CyclesRun]]] = []
        self._earliest = -YIELD_S  # the first one comes immediately
        self._alarm = context.alarm()

    def loops(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """Run cycles, and watch the configuration file."""
        return (self._cycles, self._reloads)

    async def handle_batch(self, batch: Sequence[Received[RunnerCommand, Done | CyclesRun]]) -> None:
        """Run a cycle now, keep a configuration for the next one, or keep an asker waiting for one."""
        for item in self.each(batch):
            message = item.message
            match message:
                case RunCycle():
                    await self.run_cycle()
                    item.reply(Done())
                case OfferConfig(text=text, source=source):
                    self._settings.source.offer(text, source)
                    item.reply(Done())
                case AwaitCycle(number=number):
                    self._awaited.append((number, item))
                    self._tell_who_waits()
                case TellQueues():  # made when they are read: a cycle of few pods would be a tenth longer
                    decider = self._decider
                    told = QueuesMeasured(decider.queue_tables(), decider.card_table(), decider.job_shares())
                    await self._metrics.tell(told)
                    item.reply(Done())
                case _:
                    assert_never(message)

    def at_end(self) -> None:
        """Answer the askers that wait for a cycle: they ask again if another runner follows."""
        for _, item in self._awaited:
            item.fail(self.name, "stopped, or crashed, before that cycle", stopped=self.mailbox.closed)

    def _tell_who_waits(self) -> None:
        done = self._memory.done
        for number, item in self._awaited:
            if number <= done:
                item.reply(CyclesRun(done))
        self._awaited = [(number, item) for number, item in self._awaited if number > done]

    async def on_stop(self) -> None:
        """Let the cycle in hand end, and start no other."""
        self._commit.wait_no_more()
        # never released: no other cycle can begin
        await self._lock.acquire()

    async def _cycles(self) -> None:
        while await self._settings.permitted():
            await self._wait_for_reason()
            # the period runs from the end of a cycle, as with Volcano's `wait.Until` (pkg/scheduler/scheduler.go)
            await self._alarm.sleep_until(max(self._earliest, self._alarm.now()) + YIELD_S)
            await self.run_cycle(skips_no_op=True)

    async def _wait_for_reason(self) -> None:
        changed, seen, wake_at = self._memory.changed, self._memory.seen, self._memory.wake_at
        if wake_at is None:
            await changed.wait_beyond(seen)
            return
        with self._alarm.scope_until(self._alarm.after(wake_at - self.clock.now()) + YIELD_S):
            await changed.wait_beyond(seen)

    async def _reloads(self) -> None:
        if not self._settings.source.can_change:
            return
        while True:
            await anyio.sleep(self._settings.reload_s)
            if await self._settings.permitted() and await self._look_at_config():
                await self.run_cycle()

    # --- one cycle

    async def run_cycle(self, *, skips_no_op: bool = False) -> None:
        """Run one cycle from snapshot to commit. A lost cycle is noted and tried again later on a new snapshot; with
        `skips_no_op`, a no-op cycle is left out and only takes its time.
        """
        async with self._lock:
            with self.activity.busy():
                await self._look_at_config()
                try:
                    await self._cycle(skips_no_op=skips_no_op)
                    self._earliest = self._alarm.after(self._settings.period_s)
                except (CycleLostError, ActorFailedError) as error:
                    await self._lost(error)

    async def _cycle(self, *, skips_no_op: bool) -> None:
        memory = self._memory
        await self._commit.carry_out(memory)  # of the cycle before, after a crash during it
        loaded = self._settings.source.loaded  # one configuration for the whole cycle
        said, memory.said = memory.said, CycleSaid()  # of a cycle that is lost nothing is known
        await self._other.before(loaded, memory, self._settings.seed)
        volumes, number = volume_rules(loaded.config), memory.cycle + 1
        # Kept columns are Volcano's alone: readers of its queue tables read them after the other scheduler's turn, too.
        asked = TakeSnapshot(memory.seen, number, volumes, said if skips_no_op else None, kept=True)
        taken = expected(await self._cache.ask(asked), SnapshotTaken)
        if not taken.handle:
            memory.said = CycleSaid(alone=True)
            self._settle(taken.version, memory.wake_at, in_vain=False)
            return
        measure = Measure(self._settings.stopwatch)
        moment = Moment(memory.cycle + 1, self.clock.now(), self._settings.seed)
        steps = SessionSteps(self._outside if self._decider.asks(loaded.config) else None, moment.cycle)
        snapshot = self._snapshots.take(taken.handle)
        others = self._decider.others_waiting(snapshot) if self._settings.serves_others else ()
        result = await self._decide(snapshot, loaded.config, moment, measure, steps)
        self._warn_of(result.report)
        record = record_of(taken, loaded.digest, moment, result, memory.carry, steps.answers())
        await self._commit.record(record, result, memory)
        await self._commit.carry_out(memory)
        await self._other.after(loaded, memory, self._settings.seed, others)
        memory.said = said_by(result, record, may_skip_no_op=self._decider.may_skip_no_op(loaded.config))
        in_vain = memory.recurrence.is_in_vain(result, moment.now)
        self._settle(taken.version, result.wake_at, in_vain=in_vain)
        await self._metrics.tell(measure.finish(result, moment.now))
        # after the metrics have the cycle: an asker that is answered now may read them next
        memory.done = memory.cycle
        self._tell_who_waits()

    def _warn_of(self, report: CycleReport) -> None:
        """Log why a plugin refuses every job, when that began or changed; and the questions that a plugin could not
        ask, when that began: their number differs in each cycle.
        """
        memory = self._memory
        for plugin, sentence in report.obstacles.items():
            if memory.obstacles.get(plugin) != sentence:
                log.warning("%s", sentence)
        for plugin, sentence in report.troubles.items():
            if plugin not in memory.troubles:
                log.warning("%s", sentence)
        for plugin in memory.troubles:
            if plugin not in report.troubles:
                log.warning("plugin %s got all its answers again", plugin)
        memory.obstacles, memory.troubles = report.obstacles, report.troubles

    async def _decide(
        self, snapshot: Snapshot, config: SchedulerConfig, moment: Moment, measure: Measure, steps: SessionSteps
    ) -> CycleResult:
        """Open, hand the baton round, close. Nothing leaves the session."""
        opening = partial(self._decider.open_session, snapshot, config, moment, self._memory.carry, steps.ask)
        try:
            session = await steps.run(opening)
        except Exception as error:
            raise _lost_in("open", error) from error
        measure.opened()
        baton = self._sessions.put(session)
        try:
            for action in config.actions:
                here = not steps.asking and self._decider.is_idle(session, action)
                handed = None if here else await self._hand_over(RunAction(baton, action, steps.asking))
                measure.action(action, self._run_here(session, action) if handed is None else handed)
        finally:
            # after a lost cycle, too: a worker must not begin on a session that was given up
            self._sessions.drop(baton)
        measure.closing()
        try:
            result = await steps.run(partial(self._decider.close_session, session))
        except Exception as error:
            raise _lost_in("close", error) from error
        measure.closed()
        return result

    async def _hand_over(self, order: RunAction) -> float:
        """Let the action's worker run it, and return how many seconds that took."""
        reply = await self._actions[order.action].ask(order)
        if isinstance(reply, ActionFailed):
            raise CycleLostError(f"action {order.action}: {reply.error}")
        return reply.seconds

    def _run_here(self, session: Session, action: str) -> float:
        """Run the action here: that takes less time than to hand the session over. Returns the seconds it took."""
        began = self._settings.stopwatch()
        try:
            self._decider.run_action(session, action)
        except Exception as error:
            raise _lost_in(action, error) from error
        return self._settings.stopwatch() - began

    def _settle(self, version: int, wake_at: float | None, *, in_vain: bool) -> None:
        """Wait for news, or for `wake_at`; no other actor waits for a moment that changes nothing."""
        memory = self._memory
        memory.seen, memory.wake_at, memory.lost_in_a_row = version, wake_at, 0
        self.activity.timers(self.name, 0 if memory.wake_at is None or in_vain else 1)
        self.activity.settled(SCHEDULER, memory.changed.value <= version)

    async def _lost(self, error: Exception) -> None:
        memory = self._memory
        memory.lost += 1
        memory.lost_in_a_row += 1
        log.error("cycle %d is lost: %s", memory.cycle + 1, error)
        await self._commit.note("actor", CycleDropped(memory.cycle + 1, self.clock.now(), str(error)))
        pause = FIRST_PAUSE_S * 2.0**memory.lost_in_a_row
        self._earliest = self._alarm.after(max(pause, self._settings.period_s))
        if memory.lost_in_a_row >= GIVE_UP_AFTER:
            log.error("%d cycles lost in a row: waiting until something changes", memory.lost_in_a_row)
            # as though this version were scheduled: the next one wakes the runner
            memory.seen = memory.changed.value
            self.activity.settled(SCHEDULER, True)

    # --- configuration

    async def _look_at_config(self) -> bool:
        """Take over a changed file; an invalid one is reported and the old configuration kept."""
        source = self._settings.source
        try:
            loaded = source.look()
        except ConfigError as error:
            log.error("the configuration was not reloaded, the old one stays in force: %s", error)
            await self._commit.note("config", ConfigLoaded("", "", source.name, str(error)))
            return False
        if loaded is None:
            return False
        # under another configuration the same news may lead to other decisions: no cycle is skipped
        self._memory.said = CycleSaid()
        log.info("configuration reloaded from %s", source.name)
        for warning in loaded.config.warnings:
            log.warning("%s", warning)
        await self._commit.note("config", loaded.told())
        return True


def _lost_in(step: str, error: Exception) -> CycleLostError:
    """Return where a bug in the core lost the cycle; the log has the trace. Called while the error is being handled."""
    log.exception("bug in Pumice: %s of a session", step)
    return CycleLostError(f"{step} of the session: {error!r}")
