# SPDX-License-Identifier: Apache-2.0
"""`pumice eta`: when the waiting jobs will start; and the accuracy of such estimates over an ended run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pumice.cli.exits import Exit, UsageError
from pumice.cli.futures.estimates import RunScoring, estimated
from pumice.cli.futures.options import ForkSource, seconds_of
from pumice.cli.options import Config, Manifests, PluginsDir
from pumice.cli.sources import At, Certificate, Db, ServerUrl, Token, TokenFile, server_of
from pumice.cli.tables.table import WholeTable
from pumice.cli.terminal import Terminal, speaking
from pumice.questions.eta.estimate import Estimate, Estimates, FutureSampling
from pumice.units import time_span

Moments = Annotated[
    int | None,
    typer.Option(
        "--score",
        min=1,
        metavar="N",
        help="Measure how good estimates were, at N moments of a journal or workload.",
    ),
]
First = Annotated[
    int | None,
    typer.Option(
        "--first", min=2, metavar="N", help="With --score: only the first N arrivals of a workload. Default: all."
    ),
]
Denser = Annotated[
    float,
    typer.Option(
        "--denser",
        min=0.001,
        metavar="TIMES",
        help="With --score: let jobs of a workload come so many times as fast, and run as long.",
    ),
]


@speaking
def eta(
    jobs: Annotated[
        list[str] | None, typer.Argument(metavar="JOB", help="Only these jobs (NS/NAME).", show_default=False)
    ] = None,
    db: Db = None,
    at: At = None,
    server: ServerUrl = None,
    token: Token = None,
    token_file: TokenFile = None,
    certificate: Certificate = None,
    manifests: Manifests = None,
    config: Config = None,
    runs: Annotated[
        Path | None,
        typer.Option("--runs", metavar="FILE", help="With --server or -f: a journal of earlier runs."),
    ] = None,
    samples: Annotated[
        int, typer.Option("--samples", metavar="N", min=1, max=1000, help="Number of sampled futures.")
    ] = 20,
    horizon: Annotated[
        str, typer.Option("--horizon", metavar="D", help="How far ahead to look: a Go duration.")
    ] = "24h",
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of the samples.")] = 0,
    moments: Moments = None,
    first: First = None,
    denser: Denser = 1.0,
    plugins_dir: PluginsDir = None,
    *,
    terminal: Terminal,
    lenient: bool = False,
) -> int:
    """Estimate starts from sampled futures."""
    sampling = FutureSampling(samples, seconds_of(horizon, "--horizon"), seed)
    there = server_of(server, token, token_file, certificate, terminal)
    source = ForkSource(db, at, there, manifests, config, plugins_dir, lenient)
    if jobs and moments is not None:
        raise UsageError("scores are of all jobs of a run", path="--score")
    if RunScoring(moments, first, denser).of(source, sampling, terminal):
        return Exit.DONE
    asked = frozenset(job if "/" in job else f"default/{job}" for job in jobs) if jobs else None
    found = estimated(source, runs, sampling, terminal, asked)
    terminal.emit(Estimates(found), lambda console: show(console, found, asked))
    return Exit.USAGE if terminal.errors else Exit.DONE


def show(console: Console, found: dict[str, Estimate], asked: frozenset[str] | None) -> None:
    """Print a line for each job."""
    head = ("job", "starts in", "most likely", "as pods say", "waits for", "known from")
    table = WholeTable(*head, sentences=True)
    for job, each in found.items():
        said = "" if each.said_s is None else time_span(each.said_s)
        basis = ", ".join(f"{count} by {source}" for source, count in each.basis.items())
        likely, why = (time_span(each.likely_s), "") if each.likely_s is not None else ("", each.why)
        code = each.wait.code if each.wait is not None else ""
        table.add_row(job, each.range_words, likely, said, code, "; ".join(filter(None, (why, basis))))
    console.print(table if table.row_count else "No job waits.")
    for job in sorted((asked or frozenset()) - found.keys()):
        console.print(f"{job}: does not wait")
    for sentence in {sentence: None for each in found.values() for sentence in each.supposed}:
        console.print(sentence)
