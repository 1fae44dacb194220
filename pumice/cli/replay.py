# SPDX-License-Identifier: Apache-2.0
"""`pumice replay`: decide the cycles of a journal again, to the same decisions or under another configuration."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import anyio
import typer
from rich.console import Console

from pumice.cli.exits import Exit, UsageError
from pumice.cli.inputs import load_config
from pumice.cli.options import Config, PluginsDir, Workers
from pumice.cli.tables.summary import show_agreement
from pumice.cli.tables.table import WholeTable
from pumice.cli.terminal import Terminal, speaking
from pumice.cluster.kube.statuses import timestamp
from pumice.collecting import rarely
from pumice.config.load import read_text
from pumice.plugins.loader import identities
from pumice.questions.oneshot.supposing import unasked
from pumice.questions.replay.parallel import CycleRange, shares, verify_shares
from pumice.questions.replay.plugins import demand_plugins
from pumice.questions.replay.rerun import Figure, FigureSides, Other, Reconfigured, Second, second_run
from pumice.questions.replay.verify import ReplayReport, verify
from pumice.results import Sides
from pumice.runtime.journals import keep
from pumice.storage.sqlite import open_history
from pumice.units import byte_count, counted


@speaking
def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The journal that `pumice run` wrote.")],
    workers: Workers,
    check: Annotated[bool, typer.Option("--verify", help="Compare digests, cycle by cycle (the default).")] = False,
    config: Config = None,
    first: Annotated[int, typer.Option("--from", metavar="N", min=1, help="The first cycle to decide again.")] = 1,
    last: Annotated[
        int | None, typer.Option("--to", metavar="N", min=1, help="The last cycle to decide again.", show_default=False)
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="FILE", help="With --config: write that run as a journal.", show_default=False),
    ] = None,
    check_cycles: Annotated[
        bool,
        typer.Option(
            "--check-cycles", help="Decide each cycle by a session of its own: none is kept from cycle to cycle."
        ),
    ] = False,
    plugins_dir: PluginsDir = None,
    *,
    terminal: Terminal,
    lenient: bool = False,
) -> int:
    """Replay. Exit code 1 when a cycle comes out differently, 2 when a record of the journal is damaged."""
    if save is not None and config is None:
        raise UsageError("it keeps the run under another configuration; name that with --config", path="--save")
    if check and config is not None:
        raise UsageError("--verify and --config exclude each other: one compares digests, the other what changed")
    if check_cycles and config is not None:
        raise UsageError("it compares digests, and --config decides otherwise", path="--check-cycles")
    if last is not None and last < first:
        raise UsageError(f"expected a cycle from {first} on (--from), was {last}", path="--to")
    changed = anyio.run(demand_plugins, file, plugins_dir, terminal.warn)
    if config is None:
        return verified(terminal, ReplayRequest(file, first, last, workers, plugins_dir, changed, check_cycles))
    if first != 1 or last is not None:
        raise UsageError("--config lives through all of the journal", path="--from" if first != 1 else "--to")
    if save is not None and save.exists():
        raise UsageError("there is a file already; name one that is to be made", path=f"--save {save}")
    supposed = unasked(load_config(config, lenient, terminal))
    return otherwise(terminal, file, Other(read_text(config), str(config), identities()), save, supposed)


def otherwise(terminal: Terminal, file: Path, other: Other, save: Path | None, supposed: Sequence[str]) -> int:
    """Return the record beside the same run under another configuration; exit code 1 when anything differs. `supposed`:
    questions to outside processes that are not asked.
    """
    records = anyio.run(_records, file)
    if not records:
        raise UsageError("the journal is empty", path=str(file))
    started = time.perf_counter()
    with terminal.progress("replay: records", records) as advance:
        second = second_run(file, other, advance)
    seconds = time.perf_counter() - started
    if save is not None:
        keep(second.journal, save)
    changed = second.comparison.changed
    same, parting = not any(changed.values()), second.parting
    before, after = second.comparison.before, second.comparison.after
    found = Reconfigured(
        cycles=after.cycles,
        events=second.records,
        events_per_s=second.records / seconds if seconds else 0.0,
        identical=same,
        first_difference=None if same or parting is None else parting.difference,
        parted_at=None if parting is None else parting.at,
        changed=changed,
        before=before.queues,
        after=after.queues,
        cluster=Sides(before.cluster, after.cluster),
        supposed=list(supposed),
    )
    terminal.emit(found, lambda console: show_comparison(console, second, supposed))
    return Exit.DONE if same else Exit.DIFFERS


async def _records(file: Path) -> int:
    async with open_history(file) as journal:
        head = await journal.head()
        return head.sequence - head.cut


def show_comparison(console: Console, second: Second, supposed: Sequence[str]) -> None:
    """Print where the decisions part, and a table of differences by job, by queue and by resource."""
    if second.parting is None:
        console.print("Every cycle decides the same: what was recorded is what would have happened.")
    else:
        console.print(f"The decisions part in cycle {second.parting.cycle}, at {timestamp(second.parting.at)}.")
    for sentence in supposed:
        console.print(sentence)
    for what, changed in second.comparison.changed.items():
        if not changed:
            console.print(f"No figure of the {what} differs.")
            continue
        if what == "jobs":
            jobs = WholeTable("job", "recorded → other configuration")
            for each in changed.items():
                jobs.add_row(*_job_line(each))
            console.print(jobs)
            continue
        table = WholeTable(what.removesuffix("s"), "figure", "recorded", "other configuration")
        for name, figures in changed.items():
            for figure, values in figures.items():
                of_bytes = "memory" in (name, *figure.split()) and figure.endswith("_s")
                show_one = _byte_seconds if of_bytes else _cell
                table.add_row(name, figure, *(show_one(values[side]) for side in ("before", "after")))
        console.print(table)


def _job_line(changed: tuple[str, Mapping[str, FigureSides]]) -> tuple[str, str]:
    """Return one line with the differences of a job, and the nodes of its pods."""
    name, figures = changed
    return name, "; ".join(f"{key} {_brief(both['before'])} → {_brief(both['after'])}" for key, both in figures.items())


def _brief(value: Figure) -> str:
    if not isinstance(value, dict):
        return _cell(value)
    nodes = Counter(value.values())
    return ", ".join(f"{node} ×{count}" if count > 1 else node for node, count in sorted(nodes.items())) or "none"


def _byte_seconds(value: Figure) -> str:
    return f"{byte_count(value)} s" if isinstance(value, (int, float)) else _cell(value)


def _cell(value: Figure) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{pod} on {node}" for pod, node in sorted(value.items()))
    return "never" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """Cycles of a journal to replay, and the number of processes; `changed` names the plugins that have changed since.
    `anew`: each cycle is decided by a session of its own.
    """

    file: Path
    first: int
    last: int | None
    workers: int
    plugins: Path | None
    changed: Sequence[str]
    anew: bool = False


def verified(terminal: Terminal, asked: ReplayRequest) -> int:
    """Decide again and say how it went."""
    report, seconds = _verify(terminal, asked)
    if not report.cycles and not report.events:
        raise UsageError("the journal is empty", path=str(asked.file))
    if not report.cycles and asked.first > 1 and report.identical:
        raise UsageError("the journal ends before that cycle", path=f"--from {asked.first}")
    found = report.result(seconds, asked.changed)
    terminal.emit(found, lambda console: show(console, report, seconds))
    if report.first_bad is not None:
        return Exit.USAGE
    return Exit.DONE if report.identical else Exit.DIFFERS


def _verify(terminal: Terminal, asked: ReplayRequest) -> tuple[ReplayReport, float]:
    records, parts = anyio.run(_measured, asked)
    started = time.perf_counter()
    with terminal.progress("replay: records", records) as advance:
        if len(parts) > 1:
            report = verify_shares(asked.file, parts, asked.plugins, advance, anew=asked.anew)
        else:
            report = anyio.run(_verify_here, asked, advance)
    return report, time.perf_counter() - started


async def _measured(asked: ReplayRequest) -> tuple[int, list[CycleRange]]:
    """Return the number of records and the ranges of cycles for each process; a part of a journal is for one
    process."""
    async with open_history(asked.file) as journal:
        head = await journal.head()
        whole = asked.first == 1 and asked.last is None
        return head.sequence - head.cut, await shares(journal, asked.workers if whole else 1)


async def _verify_here(asked: ReplayRequest, advance: Callable[[int], None]) -> ReplayReport:
    async with open_history(asked.file) as journal:
        with rarely():
            return await verify(journal, first=asked.first, last=asked.last, anew=asked.anew, advance=advance)


def show(console: Console, report: ReplayReport, seconds: float) -> None:
    """Print the result for a person."""
    speed = report.events / seconds if seconds else 0.0
    console.print(
        f"{counted(report.cycles, 'cycle')} decided again, {counted(report.events, 'record')}, {speed:,.0f} records/s."
    )
    bad = report.first_bad
    if bad is not None:
        equal = f"Every cycle up to record {report.equal_through} came out as recorded"
        console.print(f"The journal is damaged: record {bad.sequence} is bad ({bad.why}).")
        console.print(f"{equal if report.equal_through else 'No whole cycle lies before it'}; the rest proves nothing.")
    difference, agreement = report.first_difference, report.agreement
    if agreement is not None:
        show_agreement(console, agreement)
    if difference is None:
        if agreement is None and bad is None:
            console.print("Every cycle came out as recorded.")
        return
    about = f" about {difference.task}" if difference.task else ""
    console.print(f"The first difference is in cycle {difference.cycle}{about}:")
    console.print(f"    recorded {difference.recorded}")
    console.print(f"    decided  {difference.decided}")
