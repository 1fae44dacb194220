"""`pumice decide`: what would the scheduler do with these objects? Nothing is written anywhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from config.schema import SchedulerConfig
from core.actions import ACTIONS
from core.session.carry import SessionOptions
from pumice.cli.exits import Exit, UsageError, guarded
from pumice.cli.inputs import load_config, load_manifests
from pumice.cli.options import Config, Lenient, Level, LogLevel, Manifests, Output, Quiet
from pumice.cli.terminal import Terminal
from pumice.load.node_metrics import usage_of
from pumice.oneshot.cycles import Cycle, Setup, run_cycles
from pumice.oneshot.moment import parse_moment
from pumice.oneshot.pending import left_pending
from pumice.oneshot.prepare import usable

HELP: Final = "Say what the scheduler would do with these objects, and why it leaves tasks pending."
EXAMPLE: Final = "Example: [bold]kubectl get nodes,pods,podgroups,queues -A -o yaml | pumice decide -f -[/bold]"


@guarded
def decide(
    manifests: Manifests = None,
    config: Config = None,
    actions: Annotated[
        str | None,
        typer.Option("--actions", metavar="a,b", help="Run these actions instead of the configured ones."),
    ] = None,
    cycles: Annotated[int, typer.Option("--cycles", min=1, help="So many cycles; bound pods run in the next.")] = 1,
    now: Annotated[
        str | None, typer.Option("--now", metavar="TIME", help="The cycle's clock (RFC 3339). Default: the present.")
    ] = None,
    output: Output = None,
    quiet: Quiet = False,
    log_level: Level = LogLevel.WARNING,
    lenient: Lenient = False,
) -> int:
    """Run the cycles; the exit code is 2 when some of the input could not be used."""
    terminal = Terminal(output, quiet, log_level)
    if not manifests:
        raise UsageError("nothing to decide about: give manifests with -f PATH (- for stdin)")
    moment = _moment(now)
    settings = with_actions(load_config(config, lenient, terminal), actions)
    loaded = load_manifests(manifests, terminal)
    objects, problems = usable(loaded)
    for problem in problems:
        terminal.error(str(problem))
    if not objects:
        raise UsageError("no object could be used" if loaded.problems or problems else "no objects in the input")
    setup = Setup(objects, settings, moment, SessionOptions(node_usage=usage_of(objects)))
    decided = list(run_cycles(setup, cycles))
    result = result_of(decided)
    terminal.emit(result, lambda console: show(console, decided, result))
    return Exit.USAGE if loaded.problems or problems else Exit.DONE


def result_of(decided: Sequence[Cycle]) -> dict[str, Any]:
    """The JSON of `pumice decide`."""
    last = decided[-1]
    return {
        "cycles": [cycle.outcome for cycle in decided],
        "queues": last.result.report.queues,
        "pending": left_pending(last.objects, last.result),
    }


def with_actions(config: SchedulerConfig, actions: str | None) -> SchedulerConfig:
    """The configuration with other actions. UsageError for a name that is none."""
    if actions is None:
        return config
    names = tuple(name.strip() for name in actions.split(",") if name.strip())
    for name in names:
        if name not in ACTIONS:
            raise UsageError(f"unknown action {name!r}; known: {', '.join(ACTIONS)}", path="--actions")
    return msgspec.structs.replace(config, actions=names)


def _moment(now: str | None) -> float:
    if now is None:
        return time.time()
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
        table.add_row("bind", f"{bind.namespace}/{bind.name}", bind.node, bind.job, "")
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
