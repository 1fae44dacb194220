# SPDX-License-Identifier: Apache-2.0
"""`pumice stress --subject`: storms for programs of others."""

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console

from pumice.cli.exits import Exit
from pumice.cli.tables.summary import show_faults
from pumice.cli.terminal import Terminal
from pumice.proof.storm.report import check_folder, line_of
from pumice.proof.storm.script.events import Event
from pumice.proof.storm.script.workload import Size
from pumice.proof.storm.stress import StressPlan
from pumice.proof.strangers.judges.panel import SUBJECTS, subject_profile
from pumice.proof.strangers.report import SubjectsResult, command_of
from pumice.proof.strangers.script import FAULT, StrangerScript, read_stranger_script
from pumice.proof.strangers.storming import Rig
from pumice.proof.strangers.stress import (
    SIZE,
    FindingMaker,
    SubjectTally,
    in_a_folder,
    result_of,
    run_seeds,
    shown_again,
)
from pumice.proof.strangers.subject import words_of
from pumice.proof.strangers.workload import storm_of
from pumice.runtime.serving import only_client_faults
from pumice.units import counted

DRAWN: Final = "storm"
"""The profile of faults that is drawn from the seed."""
MOST_LINES: Final = 40

# --- Options

Subjects = Annotated[
    list[str] | None,
    typer.Option(
        "--subject",
        metavar="COMMAND",
        help="Storm this program instead, on a served cluster (KUBECONFIG is set; {kubeconfig} and {port} in the"
        " command are filled in). May be repeated.",
        show_default=False,
    ),
]
Judges = Annotated[str, typer.Option("--judges", metavar="NAME", help=f"What subjects promise: {', '.join(SUBJECTS)}.")]
Lockstep = Annotated[bool, typer.Option("--lockstep", help="Tell the subjects each moment on their standard input.")]
Tries = Annotated[
    int, typer.Option("--tries", metavar="N", min=1, help="Runs of each smaller storm that is tried for subjects.")
]
Workload = Annotated[
    str,
    typer.Option(
        "--workload",
        metavar="NAME",
        help="What is driven: growing (gangs that grow, shrink and go) or preempting (with priorities, more than fits,"
        " host ports and budgets).",
    ),
]
NoControllers = Annotated[bool, typer.Option("--no-controllers", help="Leave Volcano's controllers to the subjects.")]


@dataclass(frozen=True)
class SubjectsAsked:
    """The options of the command. `profile`: faults for clients in every seed, or DRAWN."""

    subjects: list[str]
    judges: str
    lockstep: bool
    tries: int
    no_controllers: bool
    workload: str
    given: Size
    profile: str
    folder: Path
    workers: int

    @property
    def size(self) -> Size:
        """Return the size of a storm: a smaller one than of Pumice's own, which take no real time."""
        return SIZE if self.given == StressPlan().size else self.given

    @property
    def flags(self) -> list[str]:
        """Return the options that a written storm is run again with."""
        return ["--no-controllers"] if self.no_controllers else []

    def script(self, seed: int) -> StrangerScript:
        """Return the storm of a seed."""
        drawn = self.profile == DRAWN
        script = storm_of(
            seed,
            self.size,
            self.judges,
            lockstep=self.lockstep,
            controllers=not self.no_controllers or len(self.subjects) > 1,
            drawn=drawn,
            workload=self.workload,
        )
        if drawn:
            return script
        rules = only_client_faults(self.profile, "--profile").rules
        faults = [Event(FAULT, details=msgspec.to_builtins(rule)) for rule in rules]
        return msgspec.structs.replace(script, events=(*script.events, *faults))


def storm_subjects(asked: SubjectsAsked, seeds: range, events: Path | None, terminal: Terminal) -> int:
    """Run the storms, or a written one again, and print the result."""
    subject_profile(asked.judges)
    rig = Rig([words_of(each) for each in asked.subjects], asked.flags)
    if events is not None:
        return _again(asked, rig, events, terminal)
    asked.script(seeds.start)  # what is wrong with the profile of faults is said now
    check_folder(asked.folder)
    began = time.perf_counter()
    with terminal.progress("storms", len(seeds)) as advance:
        tally = run_seeds(asked.script, seeds, rig, asked.workers, advance)
    seconds = time.perf_counter() - began
    _say(tally, seeds, asked, terminal)
    findings = FindingMaker(asked.subjects, asked.flags, rig, asked.folder, asked.tries)
    with terminal.progress("cutting down", len(tally.failures)) as advance:
        violations = findings.of(tally, advance)
    found = result_of(tally, asked.subjects, asked.judges, seconds, violations)
    terminal.emit(found, partial(_show, found=found))
    if violations:
        return Exit.DIFFERS
    if tally.problem:
        return Exit.WORLD
    return Exit.INTERRUPTED if tally.interrupted else Exit.DONE


def _say(tally: SubjectTally, seeds: range, asked: SubjectsAsked, terminal: Terminal) -> None:
    if tally.problem:
        terminal.error(tally.problem)
    if tally.interrupted:
        terminal.say(f"interrupted: {tally.seeds} of {len(seeds)} storms were done")
    elif tally.failures:
        broken = "; ".join(
            f"{name} in seeds {', '.join(map(str, seeds))}" for name, seeds in sorted(tally.seeds_of.items())
        )
        terminal.say(f"broken: {broken}; cutting the first of each down")
    if tally.seeds and tally.unbound == tally.seeds:
        scheduler = subject_profile(asked.judges).scheduler
        terminal.warn(f"no pod was bound in any storm: does the subject schedule pods of schedulerName {scheduler}?")


def _again(asked: SubjectsAsked, rig: Rig, events: Path, terminal: Terminal) -> int:
    """Run a written storm again, as often as --tries says, without reducing it."""
    script = read_stranger_script(events)
    began, tally = time.perf_counter(), SubjectTally()
    for _ in range(asked.tries):
        one = time.perf_counter()
        tally.add(in_a_folder(script, rig), time.perf_counter() - one)
    seconds = time.perf_counter() - began
    shown = shown_again(tally, asked.tries, events, command_of(events, asked.subjects, asked.flags))
    found = result_of(tally, asked.subjects, script.judges, seconds, shown)
    terminal.emit(found, partial(_show, found=found))
    return Exit.DIFFERS if shown else Exit.DONE


def _show(console: Console, found: SubjectsResult) -> None:
    """Print faults by kind, then the broken invariants and where to read about them."""
    title = (
        f"{counted(found.seeds, 'storm')}, {counted(found.changes, 'change')}, {found.seeds_per_minute:.1f} storms/min"
    )
    show_faults(console, found.faults_injected, title)
    if not found.violations:
        console.print("everything held")
    for each in found.violations:
        console.print(f"{each.invariant}, in {counted(len(each.seeds), 'seed')} ({each.seed} …): {each.message}")
        console.print(f"    promised by {each.promise}")
        for event in each.event_list[:MOST_LINES]:
            console.print(f"        {line_of(event)}")
        console.print(f"    shown by {each.shown} of {each.tries} runs of these events")
        if each.report_file is not None:
            console.print(f"    report: {each.report_file}")
        console.print(f"    again: {each.command}" if each.command else f"    not in a file: {each.file_error}")
