# SPDX-License-Identifier: Apache-2.0
"""Tables show the gate's verdict to people."""

from __future__ import annotations

from typing import Final

from rich.console import Console

from pumice.cli.tables.table import WholeTable
from pumice.questions.gate.explained import Explained, GateReport
from pumice.questions.gate.judging import Judged, Judgement
from pumice.questions.gate.moved import Moved
from pumice.questions.gate.mutants import MutationResult
from pumice.questions.gate.written import number
from pumice.units import counted

FELT_S: Final = 0.05
"""A smaller difference of a mean wait is not shown."""


def show(console: Console, report: GateReport) -> None:
    """Print the verdict, the failures with their reasons, and the jobs and pods that move."""
    for finding in report.findings:
        console.print(f"new in head: {finding}")
    shown = [*report.expectations, *(each for each in report.defaults if each.verdict is not Judgement.OK)]
    if shown:
        table = WholeTable("expectation", "workload", "base", "head", "verdict")
        for each in shown:
            draws = f" ({each.head_failed} of {each.draws} draws)" if each.draws > 1 and each.head_failed else ""
            base, head = number(each.base, each.unit), number(each.head, each.unit)
            table.add_row(each.name, each.workload, base, head, f"{each.verdict}{draws}")
        console.print(table)
    for each in shown:
        if each.why:
            console.print(f"{each.name}: {each.why}")
        elif each.verdict is Judgement.EMPTY:
            console.print(f"{each.name}: {_nothing(each)}")
    for workload, why in report.stopped.items():
        console.print(f"{workload}: head was stopped early: {why}")
    for failure in report.failures:
        _show_failure(console, failure)
    for change in report.moved:
        _show_moved(console, change)
    console.print("passes" if report.passes else "FAILS")


def _nothing(each: Judged) -> str:
    if not each.stakes.jobs:
        return f"no job of {each.workload} is in its scope"
    return (
        f"nothing was at stake: none of {counted(each.stakes.jobs, 'job')} in its scope waited, none was evicted; give "
        "the workload a moment at which the rule has to decide"
    )


def _show_failure(console: Console, failure: Explained) -> None:
    size = f"{counted(failure.jobs, 'job')} on {counted(failure.nodes, 'node')}"
    more = "" if failure.complete else "; --reduce takes more cycles to go on, --keep writes it to files"
    tries = f"{failure.tries} {'try' if failure.tries == 1 else 'tries'}"
    console.print(f"\n{failure.name}: the smallest case found has {size} ({tries}{more})")
    found = failure.difference
    if found is not None:
        console.print(f"the first decision that differs comes at {found.at:g} s and is about {found.job}:")
        for name, side in (("base", found.base), ("head", found.head)):
            binds = [f"{pod} to {node}" for pod, node in side.binds.items()]
            gone = [f"evicts {pod}" for pod in side.evictions]
            console.print(f"  {name}: {'; '.join([*binds, *gone]) or side.reason or 'decides nothing'}")
    for command in failure.commands:
        console.print(f"  {command}")
    if failure.files:
        console.print(f"  kept: {', '.join(failure.files)}")
    elif failure.complete:
        console.print("".join(f"  {line}\n" for line in failure.case.splitlines()).rstrip())


def _show_moved(console: Console, moved: Moved) -> None:
    groups = [each for each in (*moved.queues, *moved.sizes) if abs(each.base_s - each.head_s) >= FELT_S]
    before, after = moved.evictions
    evictions = f", evictions {before} to {after}" if before != after else ""
    if not groups and not moved.pods and not evictions:
        console.print(f"{moved.workload}: nothing moves")
        return
    console.print(f"\n{moved.workload}: {counted(moved.pods, 'pod')} on other nodes{evictions}")
    if groups:
        table = WholeTable("jobs of", "jobs", "mean wait, base", "head")
        for each in groups:
            table.add_row(each.group, str(each.jobs), f"{each.base_s:g} s", f"{each.head_s:g} s")
        console.print(table)
    for what, jobs in (("longer", moved.longer), ("shorter", moved.shorter)):
        if jobs:
            said = ", ".join(f"{each.job} ({each.base_s:g} to {each.head_s:g} s)" for each in jobs)
            console.print(f"waits {what}: {said}")


def show_mutants(console: Console, result: MutationResult) -> None:
    """Print each bad change and the expectations that notice it."""
    table = WholeTable("bad change", "noticed by")
    for each in result.mutants:
        missed = "nothing (it changes nothing here)" if each.is_silent else "NOTHING"
        table.add_row(each.change, ", ".join(each.noticed_by) or missed)
    console.print(table)
    console.print(
        f"{result.noticed} of {len(result.mutants)} bad changes are noticed; of the others {result.silent} change "
        "nothing under these workloads"
    )
