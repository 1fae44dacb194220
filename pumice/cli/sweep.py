"""`pumice sweep`: many runs as one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from pumice.cli.exits import Exit, UsageError, guarded
from pumice.cli.options import Dask, Level, LogLevel, Quiet, Workers
from pumice.cli.terminal import Terminal
from pumice.executors import executors
from pumice.sweep.spec import SweepSpec, read_spec
from pumice.sweep.sweep import PARQUET, Swept, write
from pumice.sweep.sweep import sweep as swept_by

FIGURES = ("jobs", "ended", "mean_wait_s", "p95_wait_s", "mean_bounded_slowdown", "evictions", "makespan_s")


@guarded
def sweep(
    file: Annotated[Path, typer.Argument(metavar="SPEC", help="What varies, as YAML (docs/sweeps.md).")],
    workers: Workers,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="TABLE", help="CSV or Parquet. Default: SPEC.csv.", show_default=False),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option("--results", metavar="FOLDER", help="One file a run. Default: SPEC.results.", show_default=False),
    ] = None,
    dask: Dask = None,
    quiet: Quiet = False,
    log_level: Level = LogLevel.WARNING,
) -> int:
    """Run every combination; what was run before, of the same content, is not run again."""
    terminal = Terminal(None, quiet, log_level)
    spec = read_spec(file)
    target = output or file.with_suffix(".csv")
    if target.suffix not in (".csv", PARQUET):
        raise UsageError(f"expected a name that ends in .csv or {PARQUET}", path=f"--output {target}")
    with terminal.progress("runs", len(spec.runs)) as advance:
        found = swept_by(spec, results or file.with_suffix(".results"), executors(workers, dask), lambda: advance(1))
    write(found.rows, target)
    said = {"table": str(target), "runs": len(found.rows), "fresh": found.fresh}
    terminal.emit(said, lambda console: _show(console, spec, found, target))
    return Exit.DONE


def _show(console: Console, spec: SweepSpec, found: Swept, target: Path) -> None:
    table = Table(*spec.varied, *FIGURES)
    for row in found.rows:
        table.add_row(*("-" if row.get(name) is None else str(row[name]) for name in (*spec.varied, *FIGURES)))
    console.print(table)
    console.print(f"{len(found.rows)} runs, {found.fresh} of them now, in {target}", markup=False)
