# SPDX-License-Identifier: Apache-2.0
"""One frame of `pumice top`: queues, waiting jobs, nodes and cycles from the adviser's answers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from rich.console import Group
from rich.segment import Segment, SegmentLines
from rich.text import Text

from pumice.cli.tables.standings import QueueTree
from pumice.cli.tables.table import WholeTable
from pumice.config.errors import PumiceError
from pumice.core.messages.queue_tables import WHOLE, reckoned
from pumice.core.objects.metadata import Object
from pumice.questions.adviser.queues import QueueStanding
from pumice.questions.explain.server import Server, ask
from pumice.questions.measures.measures import measure
from pumice.results import Result
from pumice.storage.sqlite import open_history
from pumice.units import figure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from rich.console import Console, ConsoleOptions, RenderableType


# --- Sparklines

LEVELS: Final = "▁▂▃▄▅▆▇█"
FULL: Final = "█"
EMPTY: Final = "·"


def sparkline(values: Sequence[float], most: float | None = None) -> str:
    """Return a character a value, from 0 to `most` (None: the largest of them). What lies beyond is drawn as the
    nearest."""
    top = max(values, default=0.0) if most is None else most
    steps = len(LEVELS) - 1
    return "".join(LEVELS[min(max(round(value / top * steps), 0), steps) if top > 0 else 0] for value in values)


def bar(part: float, width: int) -> str:
    """Return a bar for a part from 0 to 1 (more counts as 1) of so many characters; any part above 0 is shown."""
    filled = min(max(round(part * width), 1 if part > 0 else 0), width)
    return FULL * filled + EMPTY * (width - filled)


SHOWN: Final = 8
"""At most so many jobs and so many nodes; JSON has all."""
MOST: Final = 500
"""Rows of a table on a screen that is scrolled."""
LEAST_WIDTH: Final = 24
"""Characters of a reason on a screen."""
NARROW: Final = 100
"""Characters of a line on a screen that has no room for bars of nodes."""
AMOUNTS: Final = ("deserved", "allocated", "pending")
CYCLES: Final = 60
WIDTH: Final = 10
"""Characters of a bar, half of them where a line has fewer than WIDE."""
WIDE: Final = 120


class TopResult(Result, kw_only=True, tag="top/1"):
    """The newest cycle as the page shows it: its `standings` (as of `pumice queue`), its `board` of nodes, and of the
    last `cycles` each number, moment (seconds since the epoch) and count of decisions. `cycle_ms`: mean duration of a
    cycle; null: not measured.
    """

    standings: Object
    board: Object
    cycles: list[list[float]]
    cycle_ms: float | None


@dataclass(frozen=True, slots=True)
class Frame:
    """Answers of the adviser about the newest cycle: `standings`, its `board`, and the `course` of all cycles.
    `cycle_ms`: mean duration of a cycle, None where it is not measured. `screen`: the part that a terminal shows, None
    for all of it.
    """

    standings: Object
    board: Object
    course: Object
    cycle_ms: float | None = None
    screen: ScreenPart | None = None

    def result(self) -> TopResult:
        """Return it as it is printed."""
        return TopResult(
            standings=self.standings,
            board=self.board,
            cycles=self.course["cycles"][-CYCLES:],
            cycle_ms=self.cycle_ms,
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the parts of the frame, cut to the lines of the screen."""
        if self.screen is None:
            yield Group(*self._head(), self._jobs(SHOWN), *self._nodes(SHOWN, options), self._queues())
        elif self.screen.first:
            whole = Group(*self._head(), self._jobs(MOST), self._queues(), *self._nodes(MOST, options))
            yield self.screen.part(console.render_lines(whole, options, pad=False), options.max_height)
        else:
            yield from self._fitted(console, options)

    def _fitted(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Fit all parts: nodes lose lines first, then jobs, then queues, which keep a third."""

        def lines(*parts: RenderableType) -> int:
            return len(console.render_lines(Group(*parts), options))

        queues = console.render_lines(self._queues(), options, pad=False)
        room = options.max_height - min(len(queues), options.max_height // 3)
        jobs, nodes = SHOWN, SHOWN
        while lines(*self._head(), self._jobs(jobs), *self._nodes(nodes, options)) > room and (jobs > 1 or nodes):
            if nodes > 1 or jobs == 1:
                nodes -= 1
            else:
                jobs -= 1
        above, below = (*self._head(), self._jobs(jobs)), self._nodes(nodes, options)
        yield Group(*above)
        yield _cut(queues, max(2, options.max_height - lines(*above) - (lines(*below) if below else 0)))
        yield from below

    def _head(self) -> tuple[RenderableType, ...]:
        return _counts(self.board), _cycles(self.course["cycles"][-CYCLES:], self.cycle_ms)

    def _queues(self) -> QueueTree:
        return QueueTree(
            f"queues as cycle {self.standings['cycle']} opened",
            msgspec.convert(self.standings["queues"], dict[str, QueueStanding]),
            AMOUNTS,
        )

    def _jobs(self, shown: int) -> RenderableType:
        waiting = self.standings["waiting"]
        return _jobs(waiting, shown, whole=self.screen is None) if waiting else Text("No job waits.")

    def _nodes(self, shown: int, options: ConsoleOptions) -> tuple[RenderableType, ...]:
        width = WIDTH if options.max_width >= WIDE else WIDTH // 2
        return tuple(_nodes(self.board, shown, 0 if options.max_width < NARROW else width))


@dataclass
class ScreenPart:
    """The lines of a frame that a terminal shows: all that fits when `first` is 0, else those from there on."""

    first: int = 0

    def move(self, by: int) -> None:
        """Scroll down, or up when `by` is negative."""
        self.first = max(0, self.first + by)

    def part(self, lines: list[list[Segment]], height: int) -> RenderableType:
        """Return those lines, and a line that says where they are."""
        self.first = min(self.first, max(0, len(lines) - height + 1))
        last = min(len(lines), self.first + height - 1)
        where = Text(f"lines {self.first + 1} to {last} of {len(lines)}: ↑ ↓ PgUp PgDn scroll, q ends", style="reverse")
        return Group(SegmentLines(lines[self.first : last], new_lines=True), where)


def _cut(lines: list[list[Segment]], room: int) -> RenderableType:
    """Return the lines that fit; the last one tells how many are left out."""
    if len(lines) <= room:
        return SegmentLines(lines, new_lines=True)
    return Group(
        SegmentLines(lines[: room - 1], new_lines=True),
        Text(f"  … {len(lines) - room + 1} more lines of queues (↓ scrolls)"),
    )


def _counts(board: Object) -> Text:
    pods, jobs = (", ".join(f"{count} {state}" for state, count in board[what].items()) for what in ("pods", "jobs"))
    going = f"{board['binding']} binding, {board['evicting']} evicting"
    return Text(f"pods: {pods or 'none'}; jobs: {jobs or 'none'}; {going}")


def _cycles(cycles: list[list[float]], took_ms: float | None) -> Text:
    """Return a line with the time between cycles and their numbers of decisions, the newest last."""
    apart = [later[1] - earlier[1] for earlier, later in pairwise(cycles)]
    decided = [each[2] for each in cycles]
    between = f"{sorted(apart)[len(apart) // 2]:.3g} s apart (median) {sparkline(apart)}" if apart else "one cycle"
    took = "" if took_ms is None else f", {took_ms:.3g} ms each (mean)"
    return Text(f"cycles: {between}{took}\ndecisions: {sum(decided):g} in the last {len(decided)} {sparkline(decided)}")


def _jobs(waiting: list[Object], shown: int, *, whole: bool) -> WholeTable:
    """Return the jobs' lines. `whole`: a reason takes as many lines as it needs, else its beginning is shown."""
    title = _title("jobs that wait", len(waiting), shown)
    table = WholeTable("#", "job", "queue", "placed", "reason", "waits for", title=title, sentences=whole)
    for job in waiting[:shown]:
        place = "" if job["position"] is None else str(job["position"])
        placed = f"{job['held']} of {job['held'] + job['pods']}"
        because = job["because"]
        if not whole and len(because) > LEAST_WIDTH:
            because = f"{because[: LEAST_WIDTH - 1]}…"
        table.add_row(place, job.get("made_for") or job["job"], job["queue"], placed, job["reason"], because)
    return table


def _nodes(board: Object, shown: int, width: int) -> Iterator[WholeTable]:
    """Yield the use of each resource on all nodes together, then the fullest nodes."""
    if not board["nodes"]:
        return
    resources, rows = board["resources"], range(len(board["nodes"]))
    table = WholeTable("node", *resources, title=_title("nodes, the fullest first", len(rows), shown))
    table.add_row("all", *(_use(name, board, at, rows, width) for at, name in enumerate(resources)))
    fullest = sorted(rows, key=lambda row: (-_fullness(board, row), row))
    for row in fullest[:shown]:
        told = "" if board["ready"][row] else " (not ready)"
        told += " (cordoned)" if board["cordoned"][row] else ""
        table.add_row(
            board["nodes"][row] + told, *(_use(name, board, at, (row,), width) for at, name in enumerate(resources))
        )
    yield table


def _use(resource: str, board: Object, at: int, rows: Iterable[int], width: int) -> str:
    used, there = (sum(board[what][at][row] for row in rows) for what in ("used", "allocatable"))
    if not there:
        return ""
    told = (figure(resource, reckoned(resource, value)) for value in (used, there))
    return f"{bar(used / there, width)} {' of '.join(told)}".strip()


def _fullness(board: Object, row: int) -> float:
    """Return the largest part of any resource but pods."""
    parts = [
        used[row] / there[row]
        for name, used, there in zip(board["resources"], board["used"], board["allocatable"], strict=True)
        if there[row] and name != WHOLE
    ]
    return max(parts, default=0.0)


def _title(what: str, count: int, shown: int) -> str:
    return f"{what} ({shown} of {count})" if count > shown else what


# --- The recent past of queues

BARS: Final = 12


def held_lately(db: Path | None, server: Server | None, until: float) -> dict[str, str]:
    """Return for each queue a sparkline of the resource that it held the largest part of, relative to its maximum, up
    to `until` (seconds since the epoch). Empty where the journal is damaged, or the server has none.
    """
    try:
        if server is not None:
            return drawn(ask(server, "measures"), until)
        return {} if db is None else drawn(anyio.run(_measured, db), until)
    except PumiceError:
        return {}


async def _measured(db: Path) -> Object:
    async with open_history(db) as journal:
        found: Object = msgspec.to_builtins(await measure(journal, shares=False))
    return found


def drawn(measures: Object, until: float) -> dict[str, str]:
    """Return the sparklines of `held_lately`, from measures that are already computed."""
    count = sum(1 for start in measures["starts_s"] if measures["began"] + start <= until)
    series = {(one["what"], one["queue"], one["resource"]): one["values"][:count] for one in measures["series"]}
    found: dict[str, tuple[float, str]] = {}
    for (what, queue, resource), values in series.items():
        there = max(series.get(("capacity", "", resource), ()), default=0.0)
        if what != "held" or not queue or resource == WHOLE or not there:
            continue
        part = max(values, default=0.0) / there
        if part > found.get(queue, (0.0, ""))[0]:
            found[queue] = (part, f"{sparkline(values[-BARS:], max(values))} {resource}")
    return {queue: line for queue, (_, line) in found.items()}
