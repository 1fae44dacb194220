"""`pumice decide`: what would the scheduler do with these objects? Nothing is written anywhere."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import anyio
import msgspec
import typer
from rich.console import Console
from rich.table import Table

from config.load import default_text, parse_scheduler_config
from config.schema import SchedulerConfig
from core.actions import ACTIONS
from core.messages.decisions import CycleReport
from core.plugins import PLUGINS
from core.session.carry import Carry, SessionOptions
from pumice.cli.exits import Exit, UsageError, guarded
from pumice.cli.inputs import load_config, load_manifests
from pumice.cli.options import Config, Lenient, Level, LogLevel, Manifests, Output, PluginsDir, Quiet
from pumice.cli.terminal import Terminal
from pumice.history.rewind import rewind_file, warn_of_damage
from pumice.load.node_metrics import usage_of
from pumice.oneshot.cycles import Cycle, Setup, run_cycles
from pumice.oneshot.moment import parse_moment
from pumice.oneshot.outcome import waits
from pumice.oneshot.pending import left_pending
from pumice.oneshot.prepare import usable
from pumice.replay.plugins import demand_plugins

HELP: Final = "Say what the scheduler would do with these objects, and why it leaves tasks pending."
EXAMPLE: Final = "Example: [bold]kubectl get nodes,pods,podgroups,queues -A -o yaml | pumice decide -f -[/bold]"

CONTROLLED: Final = frozenset({"Job", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"})
"""Kinds that become pods only where a controller runs."""


@guarded
def decide(
    manifests: Manifests = None,
    db: Annotated[
        Path | None, typer.Option("--db", help="A journal, instead of manifests.", show_default=False)
    ] = None,
    at: Annotated[int | None, typer.Option("--at", min=1, help="The cycle of --db to decide again.")] = None,
    config: Config = None,
    actions: Annotated[
        str | None,
        typer.Option("--actions", metavar="a,b", help="Run these actions instead of the configured ones."),
    ] = None,
    cycles: Annotated[int, typer.Option("--cycles", min=1, help="So many cycles; bound pods run in the next.")] = 1,
    now: Annotated[
        str | None, typer.Option("--now", metavar="TIME", help="The cycle's clock (RFC 3339). Default: the present.")
    ] = None,
    plugins_dir: PluginsDir = None,
    output: Output = None,
    quiet: Quiet = False,
    log_level: Level = LogLevel.WARNING,
    lenient: Lenient = False,
) -> int:
    """Run the cycles; the exit code is 2 when some of the input could not be used."""
    terminal = Terminal(output, quiet, log_level)
    moment = None if now is None else _moment(now)
    if manifests and db is None and at is None:
        settings = load_config(config, lenient, terminal, plugins=plugins_dir)
        setup, whole = from_manifests(manifests, settings, moment, terminal)
    elif db is not None and at is not None and not manifests:
        anyio.run(demand_plugins, db, plugins_dir, terminal.warn)
        setup, whole = from_journal(db, at, moment, terminal), True
        if config is not None:
            settings = load_config(config, lenient, terminal, plugins=plugins_dir)
            setup = dataclasses.replace(setup, config=settings)
    else:
        raise UsageError("nothing to decide about: give -f PATH (- for stdin), or --db FILE with --at CYCLE")
    setup = dataclasses.replace(setup, config=with_actions(setup.config, actions))
    decided = list(run_cycles(setup, cycles))
    result = result_of(decided)
    terminal.emit(result, lambda console: show(console, decided, result))
    return Exit.DONE if whole else Exit.USAGE


def from_manifests(
    paths: Sequence[str], settings: SchedulerConfig, moment: float | None, terminal: Terminal
) -> tuple[Setup, bool]:
    """What was handed in, and whether all of it could be used. UsageError when none of it could."""
    loaded = load_manifests(paths, terminal)
    objects, problems = usable(loaded)
    for problem in problems:
        terminal.error(str(problem))
    whole = not loaded.problems and not problems
    if not objects:
        raise UsageError("no objects in the input" if whole else "no object could be used")
    for kind in sorted({obj["kind"] for obj in objects} & CONTROLLED):
        terminal.warn(f"{kind}: decide runs no controllers, so nothing comes of it")
    now = time.time() if moment is None else moment
    return Setup(objects, settings, now, options=SessionOptions(node_usage=usage_of(objects))), whole


def from_journal(db: Path, cycle: int, moment: float | None, terminal: Terminal) -> Setup:
    """What a recorded cycle saw: objects, configuration, clock, seed, carry."""
    past = anyio.run(rewind_file, db, cycle)
    warn_of_damage(past, db, terminal.warn)
    record = past.cycle.record
    settings = parse_scheduler_config(
        past.config or default_text(),
        source=f"{db}: configuration of cycle {cycle}",
        lenient=True,
        built_plugins=PLUGINS,
        built_actions=ACTIONS,
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
    )


def result_of(decided: Sequence[Cycle]) -> dict[str, Any]:
    """The JSON of `pumice decide`."""
    last = decided[-1]
    return {
        "cycles": [cycle.outcome for cycle in decided],
        "queues": queues_of(last.result.report),
        "pending": left_pending(last.objects, last.result),
    }


def queues_of(report: CycleReport) -> dict[str, dict[str, float]]:
    """Every queue's numbers: Volcano's gauges, and what it has no gauge for (guarantee, inqueue, elastic)."""
    return report.queue_amounts.beside(report.queues).by_queue()


def with_actions(config: SchedulerConfig, actions: str | None) -> SchedulerConfig:
    """The configuration with other actions. UsageError for a name that is none."""
    if actions is None:
        return config
    names = tuple(name.strip() for name in actions.split(",") if name.strip())
    for name in names:
        if name not in ACTIONS:
            raise UsageError(f"unknown action {name!r}; known: {', '.join(ACTIONS)}", path="--actions")
    return msgspec.structs.replace(config, actions=names)


def _moment(now: str) -> float:
    try:
        return parse_moment(now)
    except ValueError as error:
        raise UsageError(f"expected a moment like 2026-11-21T02:00:00Z, was {now!r}", path="--now") from error


def show(console: Console, decided: Sequence[Cycle], result: dict[str, Any]) -> None:
    """Tables for a person: what every cycle did, then the PodGroups and what is left pending."""
    for cycle in decided:
        if len(decided) > 1:
            console.rule(f"cycle {cycle.result.cycle}")
        _show_decisions(console, cycle)
    _show_pod_groups(console, decided[-1].outcome)
    _show_pending(console, result["pending"])


def _show_decisions(console: Console, cycle: Cycle) -> None:
    table = Table("decision", "pod", "node", "job", "why")
    for bind in cycle.result.binds:
        why = "once its volumes are bound" if waits(bind) else ""
        table.add_row("bind", f"{bind.namespace}/{bind.name}", bind.node, bind.job, why)
    for evict in cycle.result.evicts:
        why = f"{evict.action}: for {evict.preemptor}" if evict.preemptor else evict.action or evict.reason
        table.add_row("evict", f"{evict.namespace}/{evict.name}", evict.node, evict.job, why)
    for pod, node in cycle.outcome["pipelined"].items():
        table.add_row("pipeline", pod, node, "", "once resources are released")
    for pod, node in cycle.outcome["uncommitted"].items():
        table.add_row("reserve", pod, node, "", "its gang is not whole")
    counts = f"{len(cycle.result.binds)} bound, {len(cycle.result.evicts)} evicted"
    console.print(table if table.row_count else "Nothing to bind or evict.")
    console.print(f"{counts}, {len(cycle.outcome['pipelined'])} pipelined")


def _show_pod_groups(console: Console, outcome: dict[str, Any]) -> None:
    if not outcome["phases"]:
        return
    table = Table("PodGroup", "phase", "tasks", "condition")
    for job, phase in outcome["phases"].items():
        tasks = ", ".join(f"{count} {status}" for status, count in outcome["taskStatus"].get(job, {}).items())
        conditions = "\n".join(
            f"{one['type']}: {one['message'] or one['reason']}" for one in outcome["conditions"].get(job, [])
        )
        table.add_row(job, phase, tasks, conditions)
    console.print(table)


def _show_pending(console: Console, pending: dict[str, dict[str, str]]) -> None:
    if not pending:
        console.print("No task is left pending.")
        return
    table = Table("left pending", "reason", "message", title=f"{len(pending)} left pending")
    for pod, why in pending.items():
        table.add_row(pod, why["reason"], why["message"])
    console.print(table)
