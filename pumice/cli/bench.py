# SPDX-License-Identifier: Apache-2.0
"""`pumice bench`: named, repeatable measurements."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Final

import typer
from rich.console import Console

from pumice.cli.exits import Exit, UsageError
from pumice.cli.tables.table import WholeTable
from pumice.cli.terminal import Terminal, speaking
from pumice.core.objects.metadata import Object
from pumice.proof.bench.figures import BenchResult, Parameters, Samples, report
from pumice.proof.bench.scenarios import SCENARIOS

OFFERED: Final = "; ".join(f"{name} ({one.what})" for name, one in SCENARIOS.items())


@speaking
def bench(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help=f"One of: {OFFERED}.")],
    nodes: Annotated[int | None, typer.Option("--nodes", metavar="N", min=1, help="Nodes.", show_default=False)] = None,
    pods: Annotated[
        int | None, typer.Option("--pods", metavar="N", min=1, help="Pending pods.", show_default=False)
    ] = None,
    gang: Annotated[
        int | None, typer.Option("--gang", metavar="N", min=1, help="Pods a gang.", show_default=False)
    ] = None,
    running: Annotated[
        int | None, typer.Option("--running", metavar="N", min=0, help="Running pods.", show_default=False)
    ] = None,
    queues: Annotated[
        int | None, typer.Option("--queues", metavar="N", min=1, help="Queues (open).", show_default=False)
    ] = None,
    runs: Annotated[int, typer.Option("--runs", metavar="N", min=1, help="Runs; the median is reported.")] = 5,
    trace: Annotated[
        str | None,
        typer.Option("-f", "--filename", metavar="PATH", help="openb:NODES.csv,PODS.csv (openb).", show_default=False),
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option("--backend", metavar="asyncio|trio", help="asyncio or trio (pipeline).", show_default=False),
    ] = None,
    *,
    terminal: Terminal,
) -> int:
    """Run one scenario and print its figures."""
    # the scenarios bring their configuration along
    chosen = SCENARIOS.get(scenario)
    if chosen is None:
        raise UsageError(f"unknown scenario {scenario!r}; known: {', '.join(SCENARIOS)}")
    sizes = {"nodes": nodes, "pods": pods, "gang": gang, "running": running, "queues": queues}
    given = {**sizes, "trace": trace, "runs": runs, "backend": backend}
    parameters = sized(scenario, chosen.defaults, given)
    samples = Samples()
    with terminal.progress(f"{scenario}: runs", parameters.runs) as advance:
        chosen.measure(parameters, samples, advance)
    found = report(scenario, parameters, samples)
    terminal.emit(found, lambda console: show(console, found))
    return Exit.DONE


def sized(scenario: str, defaults: Parameters, given: Object) -> Parameters:
    """Return the scenario's usual size with the given values laid over it. UsageError for an option that it does not
    take.
    """
    changes = {name: value for name, value in given.items() if value is not None}
    for name in changes:
        if name != "runs" and not getattr(defaults, name):
            raise UsageError(f"the scenario {scenario!r} does not take this option", path=f"--{name}")
    if changes.get("backend", "asyncio") not in ("asyncio", "trio"):
        raise UsageError(f"expected asyncio or trio, was {changes['backend']!r}", path="--backend")
    parameters = dataclasses.replace(defaults, **changes)
    most = max(parameters.pods, parameters.running)
    if parameters.gang > most:
        if "gang" not in changes:
            return dataclasses.replace(parameters, gang=most)
        raise UsageError(f"a gang of {parameters.gang} is more than there are pods", path="--gang")
    return parameters


def show(console: Console, found: BenchResult) -> None:
    """Print the figures, and the state of the machine beside them."""
    sizes = ", ".join(f"{name} {value}" for name, value in found.parameters.items())
    table = WholeTable("figure", "median", "least", "greatest", "unit", title=f"{found.scenario}: {sizes}")
    for name, figure in found.figures.items():
        table.add_row(name, *map(_number, (figure.value, figure.min, figure.max)), figure.unit)
    console.print(table)
    memory = found.peak_rss_bytes / 2**20
    console.print(f"calibration loop {found.calibration_s:.4f} s, peak memory {memory:.0f} MiB")


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
