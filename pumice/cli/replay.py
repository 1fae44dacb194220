"""`pumice replay`: decide what a journal holds again, to the same decisions or under another configuration."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, cast

import anyio
import typer
from rich.console import Console
from rich.table import Table

from config.load import read_text
from pumice.cli.exits import Exit, UsageError, guarded
from pumice.cli.inputs import load_config
from pumice.cli.options import Config, Lenient, Level, LogLevel, Output, PluginsDir, Quiet, Workers
from pumice.cli.terminal import Terminal
from pumice.collecting import rarely
from pumice.replay.inputs import Inputs, read_inputs
from pumice.replay.parallel import Share, shares, verify_shares
from pumice.replay.plugins import demand_plugins
from pumice.replay.rerun import Comparison, live_through
from pumice.replay.verify import ReplayReport, verify
from storage.sqlite import SqliteJournal

HELP: Final = (
    "Decide every recorded cycle again and compare, or live through the same inputs under another configuration."
)
EXAMPLE: Final = "Example: [bold]pumice replay pumice.db --verify[/bold]"


@guarded
def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The journal that `pumice run` wrote.")],
    workers: Workers,
    check: Annotated[bool, typer.Option("--verify", help="Compare digests, cycle by cycle (the default).")] = False,
    config: Config = None,
    first: Annotated[int, typer.Option("--from", min=1, help="The first cycle to decide again.")] = 1,
    last: Annotated[int | None, typer.Option("--to", min=1, help="The last one.", show_default=False)] = None,
    plugins_dir: PluginsDir = None,
    output: Output = None,
    quiet: Quiet = False,
    log_level: Level = LogLevel.WARNING,
    lenient: Lenient = False,
) -> int:
    """Exit code 1 when a cycle comes out otherwise, or the journal was tampered with."""
    terminal = Terminal(output, quiet, log_level)
    if check and config is not None:
        raise UsageError("--verify and --config exclude each other: one compares digests, the other what changed")
    if last is not None and last < first:
        raise UsageError(f"--to {last} comes before --from {first}", path="--to")
    changed = anyio.run(demand_plugins, file, plugins_dir, terminal.warn)
    if config is None:
        return verified(terminal, Asked(file, first, last, workers, plugins_dir, changed))
    if first != 1 or last is not None:
        raise UsageError("--config lives through all of the journal", path="--from" if first != 1 else "--to")
    return otherwise(terminal, file, config, lenient)


def otherwise(terminal: Terminal, file: Path, config: Path, lenient: bool) -> int:
    """The same inputs under the recorded configuration and under another one; exit code 1 when anything differs."""
    load_config(config, lenient, terminal)
    inputs = anyio.run(_inputs, file)
    if not inputs.requests:
        raise UsageError(
            "the journal holds no inputs (or they were cut): there is nothing to live through", path=str(file)
        )
    started = time.perf_counter()
    with terminal.progress("replay: inputs, twice", 2 * len(inputs.requests)) as advance:
        before = live_through(inputs, inputs.config, advance)
        after = live_through(inputs, read_text(config), advance)
    compared, seconds = Comparison(before, after), time.perf_counter() - started
    changed = compared.changed
    same = not changed["jobs"] and not changed["queues"]
    found = {
        "cycles": after.cycles,
        "events": inputs.events,
        "events_per_s": inputs.events / seconds if seconds else 0.0,
        "identical": same,
        "first_difference": None,
        **compared.to_dict(),
    }
    terminal.emit(found, lambda console: show_comparison(console, compared))
    return Exit.DONE if same else Exit.DIFFERS


async def _inputs(file: Path) -> Inputs:
    async with await SqliteJournal.open(file, read_only=True) as journal:
        return await read_inputs(journal)


def show_comparison(console: Console, compared: Comparison) -> None:
    """A table by queue and one by job, of what differs."""
    for what, changed in compared.changed.items():
        if not changed:
            console.print(f"No figure of the {what} differs.")
            continue
        table = Table(what.removesuffix("s"), "figure", "recorded configuration", "other configuration")
        for name, figures in changed.items():
            for figure, values in figures.items():
                table.add_row(name, figure, *(_cell(values[side]) for side in ("before", "after")))
        console.print(table)


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        placed = cast("dict[str, str]", value)
        return "\n".join(f"{pod} on {node}" for pod, node in sorted(placed.items()))
    return "never" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Asked:
    """Which cycles of which journal, by how many processes; `changed` says which plugins are not what they were."""

    file: Path
    first: int
    last: int | None
    workers: int
    plugins: Path | None
    changed: Sequence[str]


def verified(terminal: Terminal, asked: Asked) -> int:
    """Decide again and say how it went."""
    report, seconds = _verify(terminal, asked)
    if not report.cycles and not report.events:
        raise UsageError("the journal is empty", path=str(asked.file))
    found = {**result_of(report, seconds), "changed_plugins": list(asked.changed)}
    terminal.emit(found, lambda console: show(console, report, seconds))
    return Exit.DONE if report.identical else Exit.DIFFERS


def _verify(terminal: Terminal, asked: Asked) -> tuple[ReplayReport, float]:
    records, parts = anyio.run(_measured, asked)
    started = time.perf_counter()
    with terminal.progress("replay: records", records) as advance:
        if len(parts) > 1:
            report = verify_shares(asked.file, parts, asked.plugins, advance)
        else:
            report = anyio.run(_verify_here, asked, advance)
    return report, time.perf_counter() - started


async def _measured(asked: Asked) -> tuple[int, list[Share]]:
    """How many records there are, and who decides which cycles; a range of cycles is for one process."""
    async with await SqliteJournal.open(asked.file, read_only=True) as journal:
        head = await journal.head()
        whole = asked.first == 1 and asked.last is None
        return head.sequence - head.cut, await shares(journal, asked.workers if whole else 1)


async def _verify_here(asked: Asked, advance: Callable[[int], None]) -> ReplayReport:
    async with await SqliteJournal.open(asked.file, read_only=True) as journal:
        with rarely():
            return await verify(journal, first=asked.first, last=asked.last, advance=advance)


def result_of(report: ReplayReport, seconds: float) -> dict[str, Any]:
    """The JSON of `pumice replay`."""
    difference, chain = report.first_difference, report.chain
    bad = chain.first_bad if chain is not None else None
    return {
        "cycles": report.cycles,
        "first_cycle": report.first_cycle,
        "last_cycle": report.last_cycle,
        "events": report.events,
        "events_per_s": report.events / seconds if seconds else 0.0,
        "seconds": seconds,
        "identical": report.identical,
        "first_difference": None if difference is None else difference.to_dict(),
        "first_bad": None if bad is None else {"sequence": bad.sequence, "why": bad.why},
    }


def show(console: Console, report: ReplayReport, seconds: float) -> None:
    """The same for a person."""
    speed = report.events / seconds if seconds else 0.0
    console.print(f"{report.cycles} cycles decided again, {report.events} records, {speed:,.0f} records/s.")
    if report.chain is not None and report.chain.first_bad is not None:
        bad = report.chain.first_bad
        console.print(f"The journal is not as it was written: record {bad.sequence} is bad ({bad.why}).")
    difference = report.first_difference
    if difference is None:
        console.print("Every cycle came out as recorded.")
        return
    about = f" about {difference.task}" if difference.task else ""
    console.print(f"The first difference is in cycle {difference.cycle}{about}:")
    console.print(f"    recorded {difference.recorded}", markup=False, soft_wrap=True)
    console.print(f"    decided  {difference.decided}", markup=False, soft_wrap=True)
