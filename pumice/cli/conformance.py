# SPDX-License-Identifier: Apache-2.0
"""`pumice conformance`: run case files and list the differences from the real Volcano."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from pumice.cli.exits import Exit
from pumice.cli.inputs import load_config
from pumice.cli.options import Dask, Format, Workers
from pumice.cli.tables.table import WholeTable
from pumice.cli.terminal import Terminal, speaking
from pumice.config.errors import ConfigError
from pumice.executors import executors
from pumice.proof.conformance.case import find_suites, inherited
from pumice.proof.conformance.judge import Verdict
from pumice.proof.conformance.runner import CaseTally, Score, run_suites, score_of

# --- One verdict in full


def show_verdict(console: Console, verdict: Verdict) -> None:
    """Print every difference on its own lines (expected above found), the trace, and the outcome of every cycle."""
    console.print(f"{verdict.suite}: {verdict.case}: {'passed' if verdict.passed else 'failed'}")
    if verdict.reason:
        console.print(verdict.trace or verdict.reason)
    for one in verdict.differences:
        console.print(f"{one.group} {one.path}")
        console.print(f"    expected {one.expected!r}")
        console.print(f"    was      {one.found!r}")
    for number, outcome in enumerate(verdict.outcomes, start=1):
        for key, value in outcome.items():
            console.print(f"cycle {number} {key}: {value}")


LINE_LENGTH: Final = 400


@speaking
def conformance(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Case files, or folders to be walked.")],
    workers: Workers,
    wanted: Annotated[str, typer.Option("-k", metavar="SUBSTRING", help="Only cases whose 'suite: name' has it.")] = "",
    after: Annotated[
        Path | None,
        typer.Option(
            metavar="CONF",
            help="A configuration that the process which recorded the cases had run before: what it set for actions "
            "stays in force, since Volcano's actions live as long as its process.",
        ),
    ] = None,
    dask: Dask = None,
    debug: Annotated[bool, typer.Option("--debug", hidden=True, help="Show outcome, traces, all differences.")] = False,
    *,
    terminal: Terminal,
    lenient: bool = False,
) -> int:
    """Run the cases; the exit code is 1 when one of them fails."""
    if debug:
        terminal.format = Format.TABLE
    kept = inherited(load_config(after, lenient, terminal)) if after is not None else {}
    files = find_suites(paths)
    works = None if debug or (workers == 1 and dask is None) else executors(workers, dask)
    with terminal.progress("cases", sum(file.cases for file in files)) as advance:
        verdicts = run_suites(files, wanted=wanted, executors=works, progress=advance, kept=kept, lenient=lenient)
    if not verdicts:
        raise ConfigError(f"no case matches {wanted!r}" if wanted else "no cases found")
    score = score_of(verdicts)
    if debug:
        for verdict in score.failures or verdicts:
            show_verdict(terminal.out, verdict)
    terminal.emit(score.result(), lambda console: show(console, score))
    return Exit.DIFFERS if score.failures else Exit.DONE


def show(console: Console, score: Score) -> None:
    """Print one line for each failing case, then the suites, then the totals."""
    for failure in score.failures:
        line = f"{failure.suite}: {failure.case}: {failure.diff}"
        console.print(line if len(line) <= LINE_LENGTH else line[:LINE_LENGTH] + " …")
    table = WholeTable("suite", "cases", "passed", "failed")
    for suite, tally in sorted(score.by_suite.items()):
        table.add_row(suite, *_columns(tally))
    for group, tally in score.by_group.items():
        table.add_row(f"on {group}", *_columns(tally))
    table.add_row("all", *_columns(score.whole))
    console.print(table)


def _columns(tally: CaseTally) -> tuple[str, str, str]:
    return str(tally.total), str(tally.passed), str(tally.total - tally.passed)
