# SPDX-License-Identifier: Apache-2.0
"""`pumice stress`: bind storms and crashes on virtual time, invariants checked after every event."""

from __future__ import annotations

import signal
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console

from pumice.cli.exits import Exit, UsageError
from pumice.cli.options import Dask, Workers
from pumice.cli.subjects import (
    Judges,
    Lockstep,
    NoControllers,
    Subjects,
    SubjectsAsked,
    Tries,
    Workload,
    storm_subjects,
)
from pumice.cli.tables.summary import show_faults
from pumice.cli.terminal import Terminal, speaking
from pumice.executors import Executors, executors
from pumice.proof.storm.report import BrokenStorm, Finding, StressResult, check_folder, line_of, report, result_of
from pumice.proof.storm.script.events import read_script
from pumice.proof.storm.script.profiles import PACKAGED, profile
from pumice.proof.storm.script.workload import Size
from pumice.proof.storm.simulation import simulate
from pumice.proof.storm.stress import StressPlan, Tally, between_storms, run_storms
from pumice.proof.strangers.workload import GROWING

DEFAULTS: Final = StressPlan()
OPTIONS: Final = {
    "profile_name": "--profile",
    "profiles": "--profiles",
    "seeds": "--seeds",
    "seed": "--seed",
    "nodes": "--nodes",
    "pods": "--pods",
    "workers": "--workers",
    "dask": "--dask",
    "folder": "--into",
    "judges": "--judges",
    "lockstep": "--lockstep",
    "tries": "--tries",
    "no_controllers": "--no-controllers",
    "workload": "--workload",
}
"""Parameters that say which storms are run, and how."""
OF_SUBJECTS: Final = ("judges", "lockstep", "tries", "no_controllers", "workload")
NOT_OF_SUBJECTS: Final = ("profiles", "dask")
HOW_SUBJECTS_RUN: Final = ("tries", "no_controllers")
"""Of a storm for subjects that is run from its file."""
CHOOSING: Final = tuple(name for name in OPTIONS if name not in HOW_SUBJECTS_RUN)
MOST_LINES: Final = 40
SHOWN: Final = {True: "tried, and it breaks", False: "tried, and it did NOT break", None: "not tried"}
"""Results of running the events again."""


@speaking
def stress(
    context: typer.Context,
    workers: Workers,
    profile_name: Annotated[
        str,
        typer.Option(
            "--profile", metavar="NAME", help=f"Fault profile, or several joined by +: {', '.join(PACKAGED)}."
        ),
    ] = DEFAULTS.profile,
    profiles: Annotated[
        Path | None,
        typer.Option(
            "--profiles", metavar="FILE", help="YAML file with fault profiles of your own.", show_default=False
        ),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", min=1, help="Number of storms.")] = DEFAULTS.seeds,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, help="The first seed; the others follow it.")
    ] = DEFAULTS.first,
    nodes: Annotated[
        int, typer.Option("--nodes", metavar="N", min=1, help="Nodes of each storm.")
    ] = DEFAULTS.size.nodes,
    pods: Annotated[int, typer.Option("--pods", metavar="N", min=1, help="Pods of each storm.")] = DEFAULTS.size.pods,
    dask: Dask = None,
    events: Annotated[
        Path | None,
        typer.Option("--events", metavar="FILE", help="Run this list of events again, instead.", show_default=False),
    ] = None,
    subjects: Subjects = None,
    judges: Judges = "volcano",
    lockstep: Lockstep = False,
    tries: Tries = 3,
    no_controllers: NoControllers = False,
    workload: Workload = GROWING,
    folder: Annotated[
        Path, typer.Option("--into", metavar="FOLDER", help="Folder for the event lists of failing storms.")
    ] = Path(),
    *,
    terminal: Terminal,
) -> int:
    """Run storms. Exit code 1 when an invariant was broken; else 130 after Ctrl-C, 3 when a worker died."""
    refuse(context, with_events=events is not None, with_subjects=bool(subjects))
    demand_folder(folder)
    size = Size(nodes, pods)
    with ended_like_ctrl_c(signal.SIGTERM):
        if subjects:
            how = SubjectsAsked(
                subjects, judges, lockstep, tries, no_controllers, workload, size, profile_name, folder, workers
            )
            return storm_subjects(how, range(seed, seed + seeds), events, terminal)
        if events is not None:
            found, code = again(events), Exit.DONE
        else:
            chosen = profile(profile_name, profiles)
            check_folder(folder)
            plan = StressPlan(profile_name, seeds, seed, size, chosen=chosen)
            found, code = storms(plan, executors(workers, dask, between_storms), folder, terminal)
    terminal.emit(found, lambda console: show(console, found))
    return Exit.DIFFERS if found.violations else code


def demand_folder(folder: Path) -> None:
    """Refuse what is not a folder."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", path="--into")


def refuse(context: typer.Context, *, with_events: bool, with_subjects: bool) -> None:
    """Refuse options that would change nothing: beside a file, which describes one storm completely, and options that
    are about subjects only, or not about them.
    """
    refused = dict[str, str]()
    if with_events:
        refused |= dict.fromkeys(CHOOSING, "expected nothing of the kind beside --events: it is one storm as it stands")
    if with_subjects:
        refused |= dict.fromkeys(NOT_OF_SUBJECTS, "says nothing of subjects: leave it out beside --subject")
        refused = {name: why for name, why in refused.items() if name not in HOW_SUBJECTS_RUN}
    else:
        refused |= dict.fromkeys(OF_SUBJECTS, "is about subjects: it needs --subject")
    for name, why in refused.items():
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise UsageError(why, path=OPTIONS[name])


def storms(plan: StressPlan, works: Executors, folder: Path, terminal: Terminal) -> tuple[StressResult, Exit]:
    """Run the storms and print the result; the exit code is the one when every invariant held."""
    began = time.perf_counter()
    with terminal.progress("storms", plan.seeds) as advance:
        tally = run_storms(plan, works, advance)
    seconds = time.perf_counter() - began
    if tally.interrupted:
        left = "" if tally.first_left is None else f"; the first that was not: --seed {tally.first_left}"
        terminal.say(f"interrupted: {tally.seeds} of {plan.seeds} storms were done{left}")
    elif tally.failures:
        terminal.say(f"{len(tally.failures)} storms broke something; cutting them down")
    if tally.lost:
        terminal.error(f"the process died (out of memory?) in seeds {', '.join(map(str, tally.lost))}")
    with terminal.progress("cutting down", len(tally.failures)) as advance:
        found = report(tally, seconds, folder, advance)
    if tally.interrupted:
        return found, Exit.INTERRUPTED
    return found, Exit.WORLD if tally.lost else Exit.DONE


@contextmanager
def ended_like_ctrl_c(number: signal.Signals) -> Generator[None]:
    """Make this signal do what Ctrl-C does in the block: no process is left behind, and the findings are printed."""

    def handle(_: int, frame: FrameType | None) -> None:
        ctrl_c = signal.getsignal(signal.SIGINT)  # trio has one of its own while a storm runs
        (ctrl_c if callable(ctrl_c) else signal.default_int_handler)(signal.SIGINT, frame)

    before = signal.signal(number, handle)
    try:
        yield
    finally:
        signal.signal(number, before)


def again(path: Path) -> StressResult:
    """Run a written storm once more, without cutting it down again."""
    began = time.perf_counter()
    script = read_script(path)
    outcome = simulate(script, digest=True)
    tally = Tally()
    tally.add(script, outcome)
    seconds = time.perf_counter() - began
    findings = [
        Finding(msgspec.structs.replace(script, invariant=each.invariant), each.words, path, reproduces=True)
        for each in outcome.violations
    ]
    found = result_of(tally, seconds, [finding.told() for finding in findings])
    found.digest = outcome.digest
    return found


def show(console: Console, found: StressResult) -> None:
    """Print faults by kind, then the broken invariants and the commands that repeat them."""
    title = f"{found.seeds} storms, {found.events} events, {found.seeds_per_s:.1f} storms/s"
    show_faults(console, found.faults_injected, title)
    if not found.violations:
        console.print("everything held")
    for one in found.violations:
        for line in lines_of(one):
            console.print(line)


def lines_of(one: BrokenStorm) -> list[str]:
    """Return a violation: what did not hold, the events it takes where they are few, and the command."""
    listed = one.event_list or []
    lines = [f"seed {one.seed}: {one.invariant}: {one.message}", f"    {one.events} events"]
    lines += [f"        {line_of(event)}" for event in listed[:MOST_LINES]]
    if len(listed) > MOST_LINES:
        lines.append(f"        … and {len(listed) - MOST_LINES} more")
    if one.command is None:
        return [*lines, f"    not in a file: {one.file_error}; {SHOWN[one.reproduces]}"]
    return [*lines, f"    again ({SHOWN[one.reproduces]}): {one.command}"]
