# SPDX-License-Identifier: Apache-2.0
"""`pumice sweep`: many runs as one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from pumice.cli.exits import Exit, UsageError
from pumice.cli.options import Dask, Workers
from pumice.cli.tables.table import WholeTable
from pumice.cli.terminal import Terminal, speaking
from pumice.config.input_file import demand_output, note_inputs
from pumice.executors import executors
from pumice.questions.sweep.one_run import files_of
from pumice.questions.sweep.picture import checked, draw, picture
from pumice.questions.sweep.spec import SweepSpec, read_spec
from pumice.questions.sweep.sweep import PARQUET, Swept, read_part, write
from pumice.questions.sweep.sweep import sweep as swept_by
from pumice.results import Result

FIGURES = (
    "jobs",
    "ended",
    "unstarted",
    "mean_wait_s",
    "p95_wait_s",
    "mean_bounded_slowdown",
    "evictions",
    "makespan_s",
)


class SweepResult(Result, kw_only=True, tag="sweep/1"):
    """Number of `runs` in the `table`, a file (null: not written yet), number of them that were run now, and number
    that are `missing`, if any.
    """

    table: str | None
    runs: int
    fresh: int
    missing: int | msgspec.UnsetType = msgspec.UNSET


@speaking
def sweep(
    file: Annotated[
        Path, typer.Argument(metavar="SPEC", help="What varies, as YAML, which the reference describes (Sweeps).")
    ],
    workers: Workers,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="TABLE",
            help="Table to write, CSV or Parquet. Default: SPEC.csv.",
            show_default=False,
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            "--results", metavar="FOLDER", help="Folder with one file a run. Default: SPEC.results.", show_default=False
        ),
    ] = None,
    dask: Dask = None,
    part: Annotated[
        str,
        typer.Option("--part", metavar="NUMBER/OF", help="Run only that part; the last part to end writes the table."),
    ] = "0/1",
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="PICTURE", help="Draw it too, as SVG or PNG.", show_default=False),
    ] = None,
    *,
    terminal: Terminal,
) -> int:
    """Run every combination; one that was run before, with the same content, is not run again."""
    spec = read_spec(file)
    target = output or file.with_suffix(".csv")
    if target.suffix not in (".csv", PARQUET):
        raise UsageError(f"expected a name that ends in .csv or {PARQUET}", path=f"--output {target}")
    drawn = None if plot is None else checked(plot)
    mine, folder = read_part(part), results or file.with_suffix(".results")
    note_inputs(file, *(read for run in spec.runs for read in files_of(run, spec.folder)))
    for output in (target, drawn):
        if output is not None:
            demand_output(output)
    with terminal.progress("runs", len(spec.runs[mine.number :: mine.of])) as advance:
        found = swept_by(spec, folder, executors(workers, dask), lambda: advance(1), part=mine)
    if not found.missing:
        write(found.rows, target)
        if drawn is not None:
            draw(picture(found.rows, spec.varied or ("jobs",)), drawn)
    said = SweepResult(
        table=None if found.missing else str(target),
        runs=len(found.rows),
        fresh=found.fresh,
        missing=found.missing or msgspec.UNSET,
    )
    terminal.emit(said, lambda console: _show(console, spec, found, target))
    return Exit.DONE


def _show(console: Console, spec: SweepSpec, found: Swept, target: Path) -> None:
    table = WholeTable(*spec.varied, *FIGURES)
    for row in found.rows:
        table.add_row(*("-" if row.get(name) is None else str(row[name]) for name in (*spec.varied, *FIGURES)))
    console.print(table)
    where = f"{found.missing} are missing yet" if found.missing else f"in {target}"
    console.print(f"{len(found.rows)} runs, {found.fresh} of them now, {where}")
