"""`pumice stress`: bind storms and crashes on virtual time, invariants checked after every event."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table

from pumice.cli.exits import Exit, UsageError, guarded
from pumice.cli.options import Lenient, Level, LogLevel, Output, Quiet, Workers
from pumice.cli.terminal import Terminal
from pumice.storm.profiles import profile, profiles
from pumice.storm.script import read_script
from pumice.storm.simulation import simulate
from pumice.storm.stress import Plan, Tally, report, run_storms
from pumice.storm.workload import Size

HELP: Final = "Storm the scheduler with faults and crashes on virtual time, checking what must hold after every event."
EXAMPLE: Final = "Example: [bold]pumice stress --profile storm --seeds 300[/bold], again: --seed 300 for the next ones"
DEFAULTS: Final = Plan()


@guarded
def stress(
    workers: Workers,
    profile_name: Annotated[
        str, typer.Option("--profile", help=f"Fault profile, or several joined by +: {', '.join(profiles())}.")
    ] = DEFAULTS.profile,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many storms.")] = DEFAULTS.seeds,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The first seed; the others follow it.")] = DEFAULTS.first,
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="Nodes of each storm.")] = DEFAULTS.size.nodes,
    pods: Annotated[int, typer.Option("--pods", min=1, help="Pods of each storm.")] = DEFAULTS.size.pods,
    events: Annotated[
        Path | None, typer.Option("--events", help="Run this list of events instead.", show_default=False)
    ] = None,
    folder: Annotated[Path, typer.Option("--into", help="Folder for the event lists of failing storms.")] = Path(),
    output: Output = None,
    quiet: Quiet = False,
    log_level: Level = LogLevel.WARNING,
    lenient: Lenient = False,
) -> int:
    """Exit code 1 when something did not hold, also when Ctrl-C came after it; else 130 after Ctrl-C."""
    del lenient
    terminal = Terminal(output, quiet, log_level)
    profile(profile_name)
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", path="--into")
    began = time.perf_counter()
    interrupted = False
    if events is not None:
        found = again(events, began)
    else:
        plan = Plan(profile_name, seeds, seed, Size(nodes, pods))
        with terminal.progress("storms", seeds) as advance:
            tally = run_storms(plan, workers, advance)
        seconds = time.perf_counter() - began
        if tally.interrupted:
            terminal.say(f"interrupted: {tally.seeds} of {seeds} storms were done")
        elif tally.failures:
            terminal.say(f"{len(tally.failures)} storms broke something; cutting them down")
        found = report(tally, seconds, folder)
        interrupted = tally.interrupted
    terminal.emit(found, lambda console: show(console, found))
    if found["violations"]:
        return Exit.DIFFERS
    return Exit.INTERRUPTED if interrupted else Exit.DONE


def again(path: Path, began: float) -> dict[str, Any]:
    """Run a written storm once more; it is not cut down again."""
    script = read_script(path)
    outcome = simulate(script, digest=True)
    tally = Tally()
    tally.add(script, outcome)
    failures, tally.failures = tally.failures, []
    found = report(tally, time.perf_counter() - began, path.parent)
    command = f"pumice stress --events {shlex.quote(str(path))}"
    found["violations"] = [
        {
            "seed": script.seed,
            "invariant": violation.invariant,
            "message": violation.words,
            "events": len(script.events),
            "events_file": str(path),
            "command": command,
        }
        for _, failed in failures
        for violation in failed.violations
    ]
    return found | {"digest": outcome.digest}


def show(console: Console, found: dict[str, Any]) -> None:
    """Faults by kind, then what did not hold and how to see it again."""
    title = f"{found['seeds']} storms, {found['events']} events, {found['seeds_per_s']:.1f} storms/s"
    show_faults(console, found["faults_injected"], title)
    if not found["violations"]:
        console.print("everything held")
    for one in found["violations"]:
        console.print(f"seed {one['seed']}: {one['invariant']}: {one['message']}", markup=False, soft_wrap=True)
        console.print(f"    {one['events']} events; again: {one['command']}", markup=False, soft_wrap=True)


def show_faults(console: Console, injected: dict[str, int], title: str = "") -> None:
    """How often each kind of fault struck."""
    table = Table("fault", "injected", title=title)
    for kind, count in injected.items():
        table.add_row(kind, str(count))
    console.print(table)
