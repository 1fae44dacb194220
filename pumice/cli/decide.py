# SPDX-License-Identifier: Apache-2.0
"""`pumice decide`: the scheduler's decisions about these objects; nothing is written anywhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import anyio
import msgspec
import typer

from pumice.cli.exits import Exit, UsageError
from pumice.cli.inputs import load_config
from pumice.cli.manifests import take_manifests
from pumice.cli.options import Config, Manifests, Now, PluginsDir, moment_said
from pumice.cli.tables.decide import show
from pumice.cli.terminal import Terminal, speaking
from pumice.collecting import rarely
from pumice.config.load import default_text
from pumice.config.schema import SchedulerConfig
from pumice.core.actions import ACTIONS
from pumice.core.configuration import parse_scheduler_config
from pumice.core.messages.decisions import CycleReport, CycleResult
from pumice.core.plugins import given_cards
from pumice.core.session.carry import Carry, SessionOptions
from pumice.core.session.trail.trail import Trail
from pumice.load.documents import usage_of
from pumice.load.remarks import InputCounts
from pumice.questions.history.rewind import demand_volcano, rewind_file, warn_of_damage
from pumice.questions.oneshot.cycles import Cycle, Setup, run_cycles
from pumice.questions.oneshot.identity import identity
from pumice.questions.oneshot.outcome import Outcome
from pumice.questions.oneshot.pending import LeftPending, WithoutPods, endings, left_pending, waiting_jobs, without_pods
from pumice.questions.oneshot.supposing import as_recorded, over_http
from pumice.questions.replay.plugins import demand_plugins
from pumice.results import Result


class DecideResult(Result, kw_only=True, tag="decide/1"):
    """Decisions that the scheduler would make: the outcome of each cycle; the gauges of the `queues` as the last one
    opened; and the pods that are left without a node after it, by "namespace/name". `without_pods`: Jobs that have no
    pods; `cards`: the assigned cards by pod; `ended`: by PodGroup, where each action ended for it; `input`: the number
    of objects read in each way. `supposed`: sentences on questions to outside processes that were not asked.
    """

    cycles: list[Outcome]
    queues: dict[str, dict[str, float]]
    pending: dict[str, LeftPending]
    without_pods: dict[str, WithoutPods]
    cards: dict[str, list[str]]
    supposed: list[str]
    ended: dict[str, list[str]]
    input: InputCounts


@speaking
@rarely()
def decide(
    manifests: Manifests = None,
    db: Annotated[
        Path | None,
        typer.Option(
            "--db", metavar="FILE", help="Journal to read instead of manifests; needs --cycle.", show_default=False
        ),
    ] = None,
    at: Annotated[
        int | None, typer.Option("--cycle", "--at", metavar="N", min=1, help="Cycle of --db to decide again.")
    ] = None,
    config: Config = None,
    actions: Annotated[
        str | None,
        typer.Option("--actions", metavar="a,b", help="Run these actions instead of the configured ones."),
    ] = None,
    cycles: Annotated[
        int, typer.Option("--cycles", metavar="N", min=1, help="Number of cycles; bound pods run in the next one.")
    ] = 1,
    now: Now = None,
    plugins_dir: PluginsDir = None,
    *,
    terminal: Terminal,
    lenient: bool = False,
) -> int:
    """Run the cycles; the exit code is 2 when some of the input could not be used."""
    moment = moment_said(now)
    if db is not None and at is not None:
        anyio.run(demand_plugins, db, plugins_dir, terminal.warn)
        setup, whole, read = from_journal(db, at, moment, terminal), True, InputCounts()
        if config is not None:
            settings = load_config(config, lenient, terminal, plugins=plugins_dir)
            setup = dataclasses.replace(setup, config=settings)
        if manifests:
            setup, whole, read = with_manifests(setup, manifests, terminal)
    elif manifests and db is None and at is None:
        settings = load_config(config, lenient, terminal, plugins=plugins_dir)
        setup, whole, read = from_manifests(manifests, settings, moment, terminal)
    elif db is not None:
        raise UsageError("expected a cycle of the journal (pumice journal FILE lists them)", path="--cycle")
    else:
        raise UsageError("nothing to decide about: give -f PATH (- for stdin), or --db FILE with --cycle N")
    setup = dataclasses.replace(setup, config=with_actions(setup.config, actions))
    setup = dataclasses.replace(setup, trail=partial(Trail, frozenset[str](), waiting_jobs(setup.objects)))
    decided = list(run_cycles(setup, cycles))
    report = decided[-1].result.report
    for sentence in (*report.obstacles.values(), *report.troubles.values()):
        terminal.warn(sentence)
    result = result_of(decided, read)
    terminal.emit(result, lambda console: show(console, decided, result))
    return Exit.DONE if whole else Exit.USAGE


def from_manifests(
    paths: Sequence[str], settings: SchedulerConfig, moment: float | None, terminal: Terminal
) -> tuple[Setup, bool, InputCounts]:
    """Return the set-up of the manifests, whether every object could be used, and the counts by reading."""
    objects, whole, now, read = take_manifests(paths, (), moment, terminal)
    options = SessionOptions(node_usage=usage_of(objects))
    return Setup(objects, settings, now, options=options, ask=over_http, others=True), whole, read


def with_manifests(setup: Setup, paths: Sequence[str], terminal: Terminal) -> tuple[Setup, bool, InputCounts]:
    """Return a recorded state with more objects in it."""
    objects, whole, _, read = take_manifests(paths, setup.objects, setup.now, terminal)
    known = set(map(identity, setup.objects))
    if setup.view is not None:
        for obj in objects:
            if identity(obj) not in known:
                setup.view.apply("ADDED", obj)
    return dataclasses.replace(setup, objects=objects), whole, read


def from_journal(db: Path, cycle: int, moment: float | None, terminal: Terminal) -> Setup:
    """Return the state that a recorded cycle saw: objects, configuration, clock, seed, carry."""
    past = anyio.run(rewind_file, db, cycle)
    demand_volcano(past)
    warn_of_damage(past, db, terminal.warn)
    record = past.cycle.record
    settings = parse_scheduler_config(
        past.config or default_text(),
        source=f"{db}: configuration of cycle {cycle}",
        lenient=True,
        rules=record.rules,
    )
    return Setup(
        past.objects,
        settings,
        record.now if moment is None else moment,
        first=cycle,
        seed=record.seed,
        carry=Carry.from_dict(record.carry_before),
        in_flight=past.in_flight,
        view=past.view,
        ask=as_recorded(record.answers),
    )


def result_of(decided: Sequence[Cycle], read: InputCounts) -> DecideResult:
    """Return the result to print."""
    last = decided[-1]
    pending = left_pending(last.objects, last.result, last.reasons)
    return DecideResult(
        cycles=[cycle.outcome for cycle in decided],
        queues=queues_of(last.result.report),
        pending=pending,
        without_pods=without_pods(last.objects),
        cards={name: cards for cycle in decided for name, cards in cards_of(cycle.result)},
        supposed=list({sentence: None for cycle in decided for sentence in cycle.supposed}),
        ended={} if last.trail is None else endings(last.trail, pending, last.objects),
        input=read,
    )


def cards_of(result: CycleResult) -> Iterator[tuple[str, list[str]]]:
    """Yield each pod that was bound to cards, with its parts of them."""
    for bind in result.binds:
        given = given_cards(bind.annotations)
        if given:
            yield f"{bind.namespace}/{bind.name}", given


def queues_of(report: CycleReport) -> dict[str, dict[str, float]]:
    """Return every queue's numbers: Volcano's gauges, and those without a gauge (guarantee, inqueue, elastic)."""
    return report.queue_amounts.beside(report.queues).by_queue()


def with_actions(config: SchedulerConfig, actions: str | None) -> SchedulerConfig:
    """Return the configuration with other actions. UsageError for a name that is none."""
    if actions is None:
        return config
    names = tuple(name.strip() for name in actions.split(",") if name.strip())
    for name in names:
        if name not in ACTIONS:
            raise UsageError(f"unknown action {name!r}; known: {', '.join(ACTIONS)}", path="--actions")
    return msgspec.structs.replace(config, actions=names)
