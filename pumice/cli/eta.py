"""`pumice eta`: when the jobs that wait will start; and how good that was, over a run that is over."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import anyio
import typer
from rich.console import Console
from rich.table import Column, Table

from pumice.cli.exits import Exit, UsageError, guarded
from pumice.cli.futures.estimated import estimated, range_of
from pumice.cli.futures.options import ForkSource, seconds_of
from pumice.cli.given.sources import At, Certificate, Db, ServerUrl, Token, server_of
from pumice.cli.options import Config, Lenient, Level, LogLevel, Manifests, Output, PluginsDir, Quiet
from pumice.cli.terminal import Terminal
from pumice.eta.estimate import Estimate, FutureSampling
from pumice.eta.moments import moments_of
from pumice.eta.runs import runs_in
from pumice.eta.score import calibration_of, score
from pumice.units import time_span


@guarded
def eta(
    jobs: Annotated[
        list[str] | None, typer.Argument(metavar="[JOB]…", help="Only these (NS/NAME).", show_default=False)
    ] = None,
    db: Db = None,
    at: At = None,
    server: ServerUrl = None,
    token: Token = None,
    certificate: Certificate = None,
    manifests: Manifests = None,
    config: Config = None,
    runs: Annotated[
        Path | None,
        typer.Option("--runs", metavar="FILE", help="A journal that knows earlier runs, for --server and -f."),
    ] = None,
    samples: Annotated[int, typer.Option("--samples", min=1, max=1000, help="So many futures.")] = 20,
    horizon: Annotated[str, typer.Option("--horizon", metavar="D", help="How far they go.")] = "24h",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of what they are drawn from.")] = 0,
    moments: Annotated[
        int | None,
        typer.Option("--score", min=1, metavar="N", help="At N moments of the journal: how good were estimates?"),
    ] = None,
    plugins_dir: PluginsDir = None,
    output: Output = None,
    quiet: Quiet = False,
    log_level: Level = LogLevel.WARNING,
    lenient: Lenient = False,
) -> int:
    """Live through sampled futures."""
    terminal = Terminal(output, quiet, log_level)
    sampling = FutureSampling(samples, seconds_of(horizon, "--horizon"), seed)
    source = ForkSource(db, at, server_of(server, token, certificate), manifests, config, plugins_dir, lenient)
    if moments is not None:
        if jobs or at is not None or source.server is not None or manifests:
            raise UsageError("scores are of a whole journal: --db alone goes with it", path="--score")
        return _score(source, moments, sampling, terminal)
    asked = frozenset(job if "/" in job else f"default/{job}" for job in jobs) if jobs else None
    found = estimated(source, runs, sampling, terminal, asked)
    terminal.emit({job: each.to_dict() for job, each in found.items()}, lambda console: show(console, found, asked))
    return Exit.DONE


def _score(source: ForkSource, moments: int, sampling: FutureSampling, terminal: Terminal) -> int:
    file = source.db or Path("pumice.db")
    book = anyio.run(runs_in, file)
    with terminal.progress("moments", moments) as advance:
        scored = score(moments_of(file, moments), book, sampling, advance)
    calibration = calibration_of(scored)
    terminal.emit(calibration.to_dict(), lambda console: _show_score(console, calibration.to_dict()))
    return Exit.DONE


def show(console: Console, found: dict[str, Estimate], asked: frozenset[str] | None) -> None:
    """A line a job."""
    table = Table(Column("job", overflow="fold"), "starts in", "most likely", "as pods say themselves", "from")
    for job, each in found.items():
        said = "" if each.said_s is None else time_span(each.said_s)
        basis = ", ".join(f"{count} by {source}" for source, count in each.basis.items())
        likely = time_span(each.median_s) if each.median_s is not None else each.why
        table.add_row(job, range_of(each), likely, said, basis)
    console.print(table if table.row_count else "No job waits.")
    for job in sorted((asked or frozenset()) - found.keys()):
        console.print(f"{job}: does not wait", markup=False)
    for sentence in {sentence: None for each in found.values() for sentence in each.supposed}:
        console.print(sentence, markup=False, soft_wrap=True)


def _show_score(console: Console, told: dict[str, Any]) -> None:
    table = Table("what", "value")
    for name, value in told.items():
        table.add_row(name, "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value))
    console.print(table)
