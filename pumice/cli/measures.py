# SPDX-License-Identifier: Apache-2.0
"""`pumice measures`: measures of a recorded run, as tables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import anyio
import typer
from rich.console import Console

from pumice.cli.exits import Exit, UsageError
from pumice.cli.options import Format, moment_said
from pumice.cli.tables.table import WholeTable
from pumice.cli.terminal import Terminal, speaking
from pumice.config.input_file import demand_output, note_inputs
from pumice.questions.measures.held import BYTES, HeldGroup, HeldResult, Prices, held, hours, read_prices
from pumice.questions.measures.jobs import JobRow
from pumice.questions.measures.tables import (
    CsvWriter,
    ParquetWriter,
    PointRow,
    QueueResourceRow,
    TableWriter,
    points,
    queue_resources,
)
from pumice.storage.sqlite import open_history
from pumice.units import counted, format_moment, time_span

if TYPE_CHECKING:
    from pumice.questions.measures.measures import Measures

SHOWN: Final = 20


class TableRows(StrEnum):
    """Table that a file can hold."""

    JOBS = "jobs"
    QUEUES = "queues"
    SERIES = "series"


@dataclass(frozen=True)
class TableFile:
    """Path of a table and the type of its rows."""

    rows: TableRows
    csv: Path | None
    parquet: Path | None

    @property
    def row_type(self) -> type[Any]:
        """Return the type of each row."""
        return {TableRows.JOBS: JobRow, TableRows.QUEUES: QueueResourceRow, TableRows.SERIES: PointRow}[self.rows]


@speaking
def measures(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The journal that `pumice run` wrote.")],
    table: Annotated[
        TableRows, typer.Option("--table", metavar="jobs|queues|series", help="Which rows --csv and --parquet write.")
    ] = TableRows.JOBS,
    csv: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            metavar="FILE",
            help="Write a table as CSV; - is stdout. With a file, -o json prints the result too.",
        ),
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option("--parquet", metavar="FILE", help="Write a table as Parquet (pumice[tables]).")
    ] = None,
    by: Annotated[
        HeldGroup | None,
        typer.Option(
            "--by", metavar="queue|namespace|user", help="Print instead who held how much for how long, exactly."
        ),
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="With --by: from that moment on. Default: the beginning."),
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="With --by: up to that moment. Default: the end.")
    ] = None,
    prices: Annotated[
        Path | None,
        typer.Option(
            "--prices", metavar="FILE", help="With --by: YAML with a price for an hour of a core, a GiB or a piece."
        ),
    ] = None,
    *,
    terminal: Terminal,
) -> int:
    """Measure waits, slowdowns, evictions, lost work, use and fairness: by job, by queue, over time, and for the whole
    run.
    """
    if by is not None:
        return _tell_held(file, HeldQuestion.of(by, begin, end, prices, csv or parquet), terminal)
    refuse_without_by(begin, end, prices)
    if csv is not None and parquet is not None:
        raise UsageError("--csv and --parquet exclude each other: one file a call")
    if str(parquet) == "-":
        raise UsageError("expected a file: Parquet is not written to stdout", path="--parquet -")
    target = TableFile(table, csv, parquet)
    if str(csv) == "-" and not terminal.tables:
        source = context.get_parameter_source("output")
        if source is not None and source.name == "COMMANDLINE":
            raise UsageError("stdout takes CSV or JSON, not both: name a file, or leave -o out", path="--csv -")
        terminal.format = Format.TABLE  # what is asked for here counts more than PUMICE_OUTPUT
    if csv is None and parquet is None:
        jobs: list[JobRow] = []
        found = anyio.run(_measured, file, jobs.append)
        terminal.emit(found.result(jobs), lambda console: show(console, found, jobs))
        return Exit.DONE
    return _write_table(file, target, terminal)


def _write_table(file: Path, target: TableFile, terminal: Terminal) -> int:
    note_inputs(file)
    jobs: list[JobRow] = []
    for output in (target.csv, target.parquet):
        if output is not None and str(output) != "-":
            demand_output(output)
    with _writer(target) as writer:
        found, count = anyio.run(_written, file, target, writer, None if terminal.tables else jobs)
    terminal.say(f"{counted(count, 'row')} of {target.rows} written to {target.csv or target.parquet}")
    if not terminal.tables:
        terminal.emit(found.result(jobs), lambda console: None)
    return Exit.DONE


@dataclass(frozen=True)
class HeldQuestion:
    """The options of --by, read."""

    by: HeldGroup
    begin: float | None
    end: float | None
    prices: Prices | None

    @classmethod
    def of(
        cls, by: HeldGroup, begin: str | None, end: str | None, prices: Path | None, table: Path | None
    ) -> HeldQuestion:
        """Read the options. Raises UsageError, InputError, ConfigError."""
        if table is not None:
            raise UsageError("--by prints one table: leave --csv and --parquet out", path="--by")
        since, until = moment_said(begin, "--from"), moment_said(end, "--to")
        if since is not None and until is not None and until <= since:
            raise UsageError("expected a moment after --from", path="--to")
        return cls(by, since, until, None if prices is None else read_prices(prices))

    def unknown(self, found: HeldResult) -> str | None:
        """Return the sentence about a part of the time that the journal does not know; a bill of it has less."""
        if self.begin is not None and found.end < self.begin:
            return f"the journal ends before --from, at {format_moment(found.end)}"
        said: list[str] = []
        if self.begin is not None and found.begin > self.begin:
            said.append(f"begins after --from: what was held before {format_moment(found.begin)} is not counted")
        if self.end is not None and found.end < self.end:
            said.append(f"ends before --to, at {format_moment(found.end)}")
        return f"the journal {', and '.join(said)}" if said else None


def refuse_without_by(begin: str | None, end: str | None, prices: Path | None) -> None:
    """Refuse options of --by without it. Raises UsageError."""
    for option, given in (("--from", begin), ("--to", end), ("--prices", prices)):
        if given is not None:
            raise UsageError("needs --by queue, namespace or user", path=option)


async def _held(file: Path, asked: HeldQuestion) -> HeldResult:
    async with open_history(file, since=asked.begin) as journal:
        return await held(journal, asked.by, asked.begin, asked.end, asked.prices)


def _tell_held(file: Path, asked: HeldQuestion, terminal: Terminal) -> int:
    found = anyio.run(_held, file, asked)
    if (unknown := asked.unknown(found)) is not None:
        terminal.warn(f"{file}: {unknown}")
    return show_held(terminal, found)


def show_held(terminal: Terminal, found: HeldResult) -> int:
    """Print who held how much, in hours of a core, a GiB or a piece."""

    def table(console: Console) -> None:
        console.print(f"Held from {format_moment(found.begin)} to {format_moment(found.end)}, in hours of a unit:")
        resources = list(found.total.held_s)
        priced = found.total.cost is not None
        cost = [f"cost {found.currency}".strip()] if priced else []
        shown = WholeTable(found.by, *(f"{one} (GiB)" if one in BYTES else one for one in resources), *cost)
        for row in (*found.rows, found.total):
            amounts = (f"{hours(one, row.held_s.get(one, 0.0)):,.2f}" for one in resources)
            shown.add_row(row.name, *amounts, *([f"{row.cost:,.2f}"] if priced else []))
        console.print(shown)

    terminal.emit(found, table)
    return Exit.DONE


async def _measured(file: Path, each: Callable[[JobRow], None] | None) -> Measures:
    from pumice.questions.measures.measures import measure  # noqa: PLC0415 - the scheduler's plugins, not for --by

    async with open_history(file) as journal:
        return await measure(journal, each)


async def _written(
    file: Path, target: TableFile, writer: TableWriter, jobs: list[JobRow] | None
) -> tuple[Measures, int]:
    """Write job rows as they end, the others when all is known. `jobs`: where job rows are kept as well."""
    count = 0

    def write(row: object) -> None:
        nonlocal count
        count += 1
        writer.write(row)

    def note(row: JobRow) -> None:
        if jobs is not None:
            jobs.append(row)
        if target.rows is TableRows.JOBS:
            write(row)

    found = await _measured(file, note)
    rows: Iterable[Any] = ()
    if target.rows is TableRows.QUEUES:
        rows = queue_resources(found)
    elif target.rows is TableRows.SERIES:
        rows = points(found)
    for row in rows:
        write(row)
    return found, count


@contextmanager
def _writer(target: TableFile) -> Generator[TableWriter]:
    if target.parquet is not None:
        parquet = ParquetWriter(target.parquet, target.row_type)
        yield parquet
        parquet.close()
    elif target.csv is None or str(target.csv) == "-":
        yield CsvWriter(sys.stdout, target.row_type)
    else:
        with target.csv.open("w", encoding="utf-8", newline="") as file:
            yield CsvWriter(file, target.row_type)


def show(console: Console, found: Measures, jobs: list[JobRow]) -> None:
    """Print the summary, the queues, and the jobs with the largest slowdowns."""
    summary = found.summary
    console.print(
        f"{counted(summary['jobs'], 'job')}, {summary['ended']} ended, {summary['unstarted']} unstarted,"
        f" {counted(summary['pods'], 'pod')}, {counted(summary['evictions'], 'eviction')},"
        f" {counted(summary['killed'], 'pod')} killed by {counted(summary['restarts'], 'restart')}"
        f" in {time_span(found.horizon_s)}; makespan {_seconds(summary['makespan_s'])}"
    )
    used = WholeTable("resource", "utilisation", "fragmentation of what is free")
    for resource, of in summary["resources"].items():
        used.add_row(resource, f"{of['utilisation']:.1%}", f"{of['fragmentation']:.1%}")
    console.print(used)
    queues = WholeTable("queue", "jobs", "ended", "unstarted", "mean wait", "median", "95 %", "slowdown", "evictions")
    for row in found.queues:
        waits = (row.mean_wait_s, row.median_wait_s, row.p95_wait_s)
        slowdown = "-" if row.mean_bounded_slowdown is None else f"{row.mean_bounded_slowdown:.2f}"
        queues.add_row(
            row.queue or "-",
            str(row.jobs),
            str(row.ended),
            str(row.unstarted),
            *map(_seconds, waits),
            slowdown,
            str(row.evictions),
        )
    console.print(queues)
    slowest = sorted(jobs, key=lambda row: (-(row.wait_s if row.wait_s is not None else found.horizon_s), row.job))
    title = f"the {SHOWN} that waited longest; admission: the part of it until the PodGroup was Inqueue"
    table = WholeTable("job", "queue", "state", "wait", "admission", "run", "evictions", title=title)
    for job in slowest[:SHOWN]:
        spans = _seconds(job.wait_s), _seconds(job.admission_s), _seconds(job.run_s)
        table.add_row(job.job, job.queue or "-", job.state, *spans, str(job.evictions))
    console.print(table)


def _seconds(value: float | None) -> str:
    return "-" if value is None else time_span(value)
