# SPDX-License-Identifier: Apache-2.0
"""`pumice journal`: a journal in sentences."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import anyio
import msgspec
import typer
from rich.console import Console

from pumice.cli.exits import Exit, UsageError
from pumice.cli.options import Format
from pumice.cli.tables.table import WholeTable
from pumice.cli.terminal import Terminal, speaking
from pumice.config.input_file import demand_output, note_inputs
from pumice.questions.explain.ended import JobEnd, end_of
from pumice.questions.explain.waiting import WaitsNow, waiting_kind, why_it_waits
from pumice.questions.history.entries import EntryTold, JournalRecord, NameFilter, StoryEntry, as_entries, entries
from pumice.questions.history.naming import open_naming
from pumice.questions.history.parts import JournalPart, JournalParts, parts_of
from pumice.questions.history.story import CycleStory, Overview, cycle_of, overview_of, story_of
from pumice.results import Result
from pumice.storage.journal import API, CYCLE, DECISION, FAULT, OUTCOME, SHADOW, ChainReport, FirstBad, Journal
from pumice.storage.sqlite import back_up, open_history
from pumice.storage.sqlite.chained import folder_of
from pumice.units import counted

FOLLOW_PERIOD_S: Final = 0.3
STORY_KINDS: Final = (API, CYCLE, DECISION, OUTCOME, SHADOW, FAULT)


class JournalCheck(Result, kw_only=True, tag="journal/1"):
    """Number of good records, and the first that differs from what was written. `backup`: the copy that was made and
    checked, and `without_checkpoints`: the edited checkpoints that it omits, by their last record.
    """

    backup: str | msgspec.UnsetType = msgspec.UNSET
    without_checkpoints: list[int] | msgspec.UnsetType = msgspec.UNSET
    whole: bool
    records: int
    first_bad: FirstBad | None


class JournalStory(Result, kw_only=True, tag="journal/1"):
    """The `story` of a job or pod, record by record; the reason for which it `waits` in the newest cycle, null when it
    does not; and how the Job `ended`, null before.
    """

    about: str
    story: list[EntryTold]
    waits: WaitsNow | None
    ended: JobEnd | None


@speaking
def journal(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The journal that `pumice run` wrote.")],
    check: Annotated[bool, typer.Option("--check", help="Verify the chain of records.")] = False,
    cycle: Annotated[
        int | None, typer.Option("--cycle", metavar="N", min=1, help="Print the decisions and outcomes of one cycle.")
    ] = None,
    about: Annotated[
        str | None, typer.Option("--about", metavar="NS/NAME", help="Print the story of a job or pod (NS/NAME).")
    ] = None,
    segments: Annotated[
        bool, typer.Option("--segments", help="List the files that the journal consists of, and what each has.")
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Print records as they are written.")] = False,
    backup: Annotated[
        Path | None,
        typer.Option("--backup", metavar="TO", help="Copy the journal as it is now; a process may be writing it."),
    ] = None,
    *,
    terminal: Terminal,
) -> int:
    """Read the journal; with --check and --backup, the exit code is 1 when it is damaged."""
    if sum((check, cycle is not None, about is not None, segments, follow, backup is not None)) > 1:
        raise UsageError("--check, --cycle, --about, --segments, --follow and --backup exclude each other")
    if check:
        report = anyio.run(_check, file)
        found = JournalCheck(whole=report.whole, records=report.records, first_bad=report.first_bad)
        return show_check(terminal, found)
    if backup is not None:
        note_inputs(file)
        if not backup.exists():  # what is there is left alone anyway
            demand_output(backup)
        return show_backup(terminal, backup, anyio.run(back_up, file, backup))
    if cycle is not None:
        return show_cycle(terminal, cycle, anyio.run(_cycle, file, cycle))
    if segments:
        return show_segments(terminal, anyio.run(parts_of, file))
    if about is not None:
        return show_story(terminal, about, *anyio.run(_story, file, about))
    if follow:
        anyio.run(_follow, file, terminal)
    overview = anyio.run(_overview, file)
    terminal.emit(overview.result(), lambda console: show_overview(console, overview))
    return Exit.DONE


async def _check(file: Path) -> ChainReport:
    async with open_history(file) as opened:
        return await opened.check()


async def _cycle(file: Path, number: int) -> CycleStory:
    async with open_history(file, cycle=number) as opened:
        return await cycle_of(number, entries(opened, kinds=(CYCLE, DECISION, OUTCOME, SHADOW)))


async def _story(file: Path, name: str) -> tuple[list[StoryEntry], WaitsNow | None]:
    """Return the story of an object, and why it waits if it does."""
    named = NameFilter(name)
    async with open_naming(file, named) as naming:
        told = await story_of(name, as_entries(naming.read(STORY_KINDS)), named)
    kind = waiting_kind(name, told)
    return told, await why_it_waits(file, kind, name) if kind else None


async def _overview(file: Path) -> Overview:
    async with open_history(file) as opened:
        return await overview_of(entries(opened))


async def _follow(file: Path, terminal: Terminal) -> None:
    async with open_history(file) as opened:
        after = 0
        while True:
            after = await _print_new(opened, after, terminal)
            await anyio.sleep(FOLLOW_PERIOD_S)


async def _print_new(opened: Journal, after: int, terminal: Terminal) -> int:
    async for entry in entries(opened, after):
        if terminal.format is Format.JSON:
            sys.stdout.write(msgspec.json.encode(JournalRecord(entry.told()).plain()).decode() + "\n")
        else:
            terminal.out.print(line_of(entry))
        after = entry.sequence
    sys.stdout.flush()
    return after


def show_backup(terminal: Terminal, target: Path, report: ChainReport) -> int:
    """Return the check of the copy, where it is, and which checkpoints it does without."""
    without = f"It does without {len(report.without)} edited checkpoints. " if report.without else ""
    found = JournalCheck(
        backup=str(target),
        without_checkpoints=list(report.without),
        whole=report.whole,
        records=report.records,
        first_bad=report.first_bad,
    )
    return show_check(terminal, found, f"Copied to {target}. {without}")


def show_check(terminal: Terminal, found: JournalCheck, before: str = "") -> int:
    """Print that the journal is whole, or the first record that differs from what was written; `before`: a sentence to
    print first.
    """
    first_bad = found.first_bad

    def words(console: Console) -> None:
        if first_bad is None:
            console.print(f"{before}The journal is whole: {found.records} records.")
        else:
            console.print(
                f"{before}Record {first_bad.sequence} is bad: {first_bad.why} ({found.records} before it are good)."
            )

    terminal.emit(found, words)
    return Exit.DONE if found.whole else Exit.DIFFERS


def show_segments(terminal: Terminal, parts: list[JournalPart]) -> int:
    """Print the files of a journal; the exit code is 1 when some do not join the others."""
    found = JournalParts(parts=parts, joined=all(part.joined for part in parts))

    def table(console: Console) -> None:
        shown = WholeTable("file", "cycles", "bytes", "from", "joined")
        for part in parts:
            cycles = f"{part.first_cycle}–{part.last_cycle}" if part.last_cycle else ""
            began = _time(part.began)[:-7] if part.began else ""
            shown.add_row(Path(part.file).name, cycles, f"{part.bytes:,}", began, "yes" if part.joined else "no")
        console.print(shown)
        console.print(f"Segments are named after their records, and lie in {folder_of(Path(parts[-1].file))}.")

    terminal.emit(found, table)
    return Exit.DONE if found.joined else Exit.DIFFERS


def show_cycle(terminal: Terminal, number: int, story: CycleStory) -> int:
    """Return one cycle; a usage error for an unknown number."""
    if story.record is None:
        raise UsageError(f"the journal has no cycle {number}", path="--cycle")
    lines = [story.record, *story.decisions, *story.outcomes, *story.shadows]
    terminal.emit(story.result(), lambda console: _print_lines(console, lines))
    return Exit.DONE


def show_story(terminal: Terminal, name: str, told: list[StoryEntry], now: WaitsNow | None) -> int:
    """Return one story; a usage error for an unknown name."""
    if not told:
        raise UsageError(f"the journal says nothing about {name!r}; jobs and pods are namespace/name", path="--about")
    ended = end_of(name, told)
    found = JournalStory(about=name, story=[entry.told() for entry in told], waits=now, ended=ended)

    def lines(console: Console) -> None:
        _print_lines(console, told)
        if ended:
            console.print(f"{name} is {ended['state']}: {ended['message']}")
        if now is not None and now["message"]:
            console.print(f"Cycle {now['cycle']}: {name} waits: {now['message']}")

    terminal.emit(found, lines)
    return Exit.DONE


def show_overview(console: Console, overview: Overview) -> None:
    """Print the number of records by kind, the last cycles, and the failures."""
    table = WholeTable("records", "how many")
    for kind, count in sorted(overview.records.items()):
        table.add_row(kind, str(count))
    console.print(table)
    if overview.records:
        span = f"{_time(overview.began)} to {_time(overview.ended)}"
        console.print(f"{counted(overview.cycles, 'cycle')}, {counted(overview.decisions, 'decision')}, {span}")
    _print_lines(console, [*overview.last_cycles, *overview.events])


def _print_lines(console: Console, lines: list[StoryEntry]) -> None:
    for entry in lines:
        console.print(line_of(entry))


def line_of(entry: StoryEntry) -> str:
    """Return a line of number, time and sentence."""
    return f"{entry.sequence:>8}  {_time(entry.at)}  {entry.text}"


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
