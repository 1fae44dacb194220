# SPDX-License-Identifier: Apache-2.0
"""From a plan to its end: start the system, submit the manifests, wait, stop in order, sum up."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

import anyio
from msgspec.structs import asdict

from pumice.actors.gateway.settings import GatewaySettings
from pumice.actors.metrics.summary import PodCounts
from pumice.actors.runtime.clock import Clock, RealClock, VirtualClock
from pumice.actors.runtime.mailbox import ask_many_again
from pumice.actors.system.settings import SystemSettings
from pumice.actors.system.system import System
from pumice.cluster.api.origin import unfinished
from pumice.cluster.kernel.intake import in_order
from pumice.cluster.kube.statuses import timestamp
from pumice.config.errors import ConflictError
from pumice.config.input_file import demand_output
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object
from pumice.plugins.loader import AT_WORK
from pumice.plugins.watchdog import watched
from pumice.proof.storm.live import LiveStorm
from pumice.runtime.allocator import give_back, live_long
from pumice.runtime.arrivals import Arriving, part
from pumice.runtime.built_in import builtin_nodes, example_gang
from pumice.runtime.journals import file_journal
from pumice.runtime.pieces import file_in_pieces
from pumice.runtime.serving import kubeconfig_of, write
from pumice.runtime.standing import apart, differs, is_fresh, lay_over, named
from pumice.runtime.summary import RunResult
from pumice.runtime.waiting import LeftWaiting, Until, left_waiting, reached
from pumice.storage.journal import Journal
from pumice.storage.retention import Retention

# --- The mean cycle

LATENCY: Final = "volcano_e2e_scheduling_latency_milliseconds"


def mean_cycle_s(exposition: bytes) -> float:
    """Return the mean seconds of a cycle from snapshot to written statuses; 0.0 before the first one."""
    values = {name: float(value) for name, _, value in map(_split, exposition.decode().splitlines())}
    count = values.get(f"{LATENCY}_count", 0.0)
    return values.get(f"{LATENCY}_sum", 0.0) / count / 1000 if count else 0.0


def _split(line: str) -> tuple[str, str, str]:
    if line.startswith("#"):
        return "", "", "0"
    name, space, value = line.rpartition(" ")
    return name, space, value or "0"


CONFLICT = 409
LOOK_S = 1.0
"""Seconds between two checks that the journal still exists."""
BATCH = 500
"""Number of objects that are handed in at a time."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Plan of a run. `bare`: no manifests were named at all, so an example may be added; `start`: when virtual time
    begins (seconds since the epoch), None: where the journal ends, and not before the moment `shown` by the objects; at
    a fixed time without either (`shown` 0.0).
    """

    objects: Sequence[Object]
    bare: bool
    db: Path
    until: Until
    backend: Literal["asyncio", "trio"] = "asyncio"
    virtual: bool = False
    start: float | None = None
    shown: float = 0.0
    settings: SystemSettings = field(default_factory=SystemSettings)
    storm: LiveStorm | None = None

    def close(self) -> None:
        """Stop listening; the system closes the other descriptors of a run."""
        if self.settings.gateway is not None:
            self.settings.gateway.listener.close()


def nothing_yet() -> RunResult:
    """Return the result of a run that has not begun."""
    return RunResult(cycles=0, pods=PodCounts(), jobs={}, seconds=0.0, pods_per_s=0.0, db="")


@dataclass(slots=True)
class RunOutcome:
    """Outcome of a run. `refused`: objects that the API refused, with its answer; `known`: existing objects,
    `differing`: those among them ("Queue q") that have another spec there. `continued`: the journal held a cluster.
    """

    summary: RunResult = field(default_factory=nothing_yet)
    refused: list[tuple[Object, Refused]] = field(default_factory=list[tuple[Object, Refused]])
    known: int = 0
    differing: list[str] = field(default_factory=list[str])
    added: list[str] = field(default_factory=list[str])
    interrupted: bool = False
    continued: bool = False
    waiting: LeftWaiting = field(default_factory=LeftWaiting)


class Watching:
    """Events that a run reports while it runs; the default does nothing."""

    def refused(self, obj: Object, answer: Refused) -> None:
        """Note that the API refused an object."""

    def serving(self, gateway: GatewaySettings, kubeconfig: Path) -> None:
        """Note that clients may come; the file is their kubeconfig."""

    def submitted(self, outcome: RunOutcome) -> None:
        """Note that all objects have been submitted."""

    async def follow(self, system: System) -> None:
        """Run beside the system until it ends."""
        await anyio.sleep_forever()


def run_plan(plan: RunPlan, watching: Watching) -> RunOutcome:
    """Run to the end. Raises OpenError, ConfigError, or what a vital actor died of."""
    # First: a name that cannot be written is refused before anything has been started.
    demand_output(plan.db)
    if plan.settings.gateway is not None:
        demand_output(_kubeconfig(plan))
    live_long()
    with watched(AT_WORK):
        return _run_plan(plan, watching)


def _run_plan(plan: RunPlan, watching: Watching) -> RunOutcome:
    if not plan.virtual:
        return anyio.run(_run_on_file, plan, watching, backend=plan.backend)
    from pumice.runtime.determinism import deterministic  # noqa: PLC0415 - Trio is a tenth of a start
    from pumice.runtime.leaping import leaping  # noqa: PLC0415

    # `leaping` makes the clock: its time so far is what `_clock` below adds to the beginning.
    # Segments are made and deleted meanwhile; without segments records are cut at the end.
    retention = plan.settings.retention if plan.settings.retention.rotation else Retention()
    settings, options = leaping(replace(plan.settings, retention=retention))
    whole = replace(plan, settings=settings)
    with file_in_pieces(plan.db, plan.settings.retention) as journal:
        clock = _clock(plan, journal.last_at, options["clock"].current_time)
        with deterministic(plan.settings.seed):
            return anyio.run(_run, whole, watching, journal, clock, backend="trio", backend_options=options)


def _clock(plan: RunPlan, last: float, elapsed: Callable[[], float]) -> VirtualClock:
    """Return a clock that does not go back in a journal, whose last record is of `last` (0.0 without one)."""
    start = plan.start
    if start is not None and start <= last:
        raise ConflictError(f"the journal goes on until {timestamp(last)}: expected a later time", path="--start")
    if start is not None:
        return VirtualClock(start, elapsed)
    # A second after the last record: times in a journal rise, and `--start` refuses an equal one, too.
    return VirtualClock(max(last + 1.0 if last else 0.0, plan.shown) or VirtualClock.start, elapsed)


async def _run_on_file(plan: RunPlan, watching: Watching) -> RunOutcome:
    async with file_journal(plan.db, plan.settings.retention) as journal:
        settings = replace(plan.settings, journal_look_s=LOOK_S)
        return await _run(replace(plan, settings=settings), watching, journal, RealClock())


async def _run(plan: RunPlan, watching: Watching, journal: Journal, clock: Clock) -> RunOutcome:
    outcome = RunOutcome()
    arriving = part(plan.objects, clock.now())
    if arriving.later:
        plan = replace(plan, settings=replace(plan.settings, arrivals=True))
    storm = plan.storm
    if storm is None:
        system = System(plan.settings, journal, clock)
    else:
        journal = await storm.watch(journal)
        system = System(storm.settings(plan.settings), journal, clock, decider=storm.decider())
    async with system.running():
        _serve(plan, watching)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_until_signal, tasks.cancel_scope, outcome)
            tasks.start_soon(watching.follow, system)
            if not plan.virtual:
                # Not on virtual time: its sleep would be one more deadline to leap to, again and again.
                tasks.start_soon(give_back)
            await _hand_in(plan, arriving, system, outcome, watching)
            await reached(plan.until, system)
            if storm is not None:
                await storm.rest(system, journal, interrupted=False, cut=plan.until.kind != "idle")
            tasks.cancel_scope.cancel()
        # Outside the scope that the signal has cancelled: this waits, too.
        if storm is not None and outcome.interrupted:
            await storm.rest(system, journal, interrupted=True)
        # While the system still runs: this and what follows ask its actors.
        cycle_s = mean_cycle_s(await system.metrics_text())
        summary = await system.summary()
        outcome.waiting = await left_waiting(system.each, plan.settings.served)
    outcome.summary = RunResult(**asdict(summary), db=str(plan.db), mean_cycle_s=cycle_s)
    if storm is not None:
        found = storm.found()
        outcome.summary.faults_injected, outcome.summary.violations = found.faults_injected, found.violations
    if ever := system.client_faults.ever:
        outcome.summary.faults_injected = {**(outcome.summary.faults_injected or {}), **ever}
    return outcome


def _serve(plan: RunPlan, watching: Watching) -> None:
    """Write the kubeconfig of the gateway, if there is one, beside the journal."""
    gateway = plan.settings.gateway
    if gateway is not None:
        path = _kubeconfig(plan)
        write(kubeconfig_of(gateway.url, gateway.token, gateway.certificate), path)
        watching.serving(gateway, path)


def _kubeconfig(plan: RunPlan) -> Path:
    return plan.db.with_suffix(".kubeconfig")


async def _until_signal(scope: anyio.CancelScope, outcome: RunOutcome) -> None:
    """Wait for the first Ctrl-C or SIGTERM, which ends the run in order; after it the usual handlers are back, for a
    second one.
    """
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            outcome.interrupted = True
            break
    scope.cancel()


async def _hand_in(plan: RunPlan, arriving: Arriving, system: System, outcome: RunOutcome, watching: Watching) -> None:
    for obj, why in arriving.problems:
        outcome.refused.append((obj, Refused(422, "Invalid", why)))
        watching.refused(*outcome.refused[-1])
    # Of a continued journal people may have changed the system queues: theirs stay as they are.
    outcome.continued = not is_fresh(system)
    own, others = ([], arriving.now) if outcome.continued else apart(arriving.now)
    for obj in own:  # first of all: the scheduler is at work as soon as there are pods
        said = await lay_over(system, obj)
        if isinstance(said, Refused):
            outcome.refused.append((obj, said))
            watching.refused(obj, said)
    # In order: admission refuses what names a queue or namespace that does not exist yet.
    await _submit(in_order(others), system, outcome, watching)
    # After all objects: a deletion that goes on needs the dependents that it waits for.
    await ask_many_again(system.api, unfinished(others))
    for first in range(0, len(arriving.later), BATCH):
        await system.announce(arriving.later[first : first + BATCH])
    # Asked of the api: nodes may be in the manifests, or in the journal from an earlier run.
    if not await system.listed("Node"):
        await _submit(builtin_nodes(), system, outcome, watching)
        outcome.added.append("three built-in nodes (cpu 8, memory 16Gi, pods 110)")
        if plan.bare and plan.settings.gateway is None:
            await _submit([example_gang()], system, outcome, watching)
            outcome.added.append("an example gang")
    gc.collect()
    gc.freeze()  # what was loaded stays; the collector need not look at it again and again
    watching.submitted(outcome)


async def _submit(objects: Sequence[Object], system: System, outcome: RunOutcome, watching: Watching) -> None:
    for first in range(0, len(objects), BATCH):
        batch = objects[first : first + BATCH]
        for obj, answer in zip(batch, await system.submit(batch), strict=True):
            if isinstance(answer, Accepted):
                continue
            # No failure: who continues a journal hands in the same manifests again.
            if answer.code == CONFLICT and answer.reason == "AlreadyExists":
                outcome.known += 1
                if await differs(system, obj):
                    outcome.differing.append(named(obj))
                continue
            outcome.refused.append((obj, answer))
            watching.refused(obj, answer)
