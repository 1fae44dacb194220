"""One frame of `pumice top`: queues, jobs that wait, nodes and cycles as the adviser tells of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from core.messages.queue_gauges import WHOLE, reckoned
from pumice.adviser.queues import QueueStanding
from pumice.cli.tables.sparks import bar, sparkline
from pumice.cli.tables.standings import QueueTree
from pumice.explain.scene import job_of
from pumice.units import amount

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console, ConsoleOptions, RenderableType

Plain = dict[str, Any]
SHOWN: Final = 8
"""At most so many jobs and so many nodes; JSON has all."""
AMOUNTS: Final = ("deserved", "allocated", "pending")
CYCLES: Final = 60
WIDTH: Final = 10
"""Characters of a bar, half of them where a line has fewer than WIDE."""
WIDE: Final = 120


@dataclass(frozen=True, slots=True)
class Frame:
    """Answers of the adviser about the newest cycle: `standings`, its `board`, and the `course` of all cycles.
    `cycle_ms`: how long a cycle takes on average, None where nobody measures. `on_screen`: no line is out of sight
    where less of it will do.
    """

    standings: Plain
    board: Plain
    course: Plain
    cycle_ms: float | None = None
    on_screen: bool = False

    def to_dict(self) -> Plain:
        """The JSON of `pumice top`."""
        told = {"standings": self.standings, "board": self.board}
        return {**told, "cycles": self.course["cycles"][-CYCLES:], "cycle_ms": self.cycle_ms}

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """The parts of the frame. The tree of queues, of any length, comes last; on a screen with as many jobs and
        nodes before it as leave it half of the room.
        """
        width = WIDTH if options.max_width >= WIDE else WIDTH // 2
        queues = QueueTree(
            f"queues as cycle {self.standings['cycle']} opened",
            msgspec.convert(self.standings["queues"], dict[str, QueueStanding]),
            AMOUNTS,
        )
        shown = SHOWN
        if self.on_screen:
            room = options.max_height - min(len(console.render_lines(queues, options)), options.max_height // 2)
            while shown > 1 and len(console.render_lines(self._above(shown, width), options)) > room:
                shown -= 1
        yield self._above(shown, width)
        yield queues

    def _above(self, shown: int, width: int) -> Group:
        told = [_counts(self.board), _cycles(self.course["cycles"][-CYCLES:], self.cycle_ms)]
        jobs = [_jobs(self.standings["waiting"], shown)] if self.standings["waiting"] else [Text("No job waits.")]
        return Group(*told, *jobs, *_nodes(self.board, shown, width))


def _counts(board: Plain) -> Text:
    pods, jobs = (", ".join(f"{count} {state}" for state, count in board[what].items()) for what in ("pods", "jobs"))
    going = f"{board['binding']} binding, {board['evicting']} evicting"
    return Text(f"pods: {pods or 'none'}; jobs: {jobs or 'none'}; {going}")


def _cycles(cycles: list[list[float]], took_ms: float | None) -> Text:
    """How far they lie apart and what they decided, the newest last."""
    apart = [later[1] - earlier[1] for earlier, later in pairwise(cycles)]
    decided = [each[2] for each in cycles]
    between = f"{sorted(apart)[len(apart) // 2]:.3g} s apart (median) {sparkline(apart)}" if apart else "one cycle"
    took = "" if took_ms is None else f", {took_ms:.3g} ms each (mean)"
    return Text(f"cycles: {between}{took}\ndecisions: {sum(decided):g} in the last {len(decided)} {sparkline(decided)}")


def _jobs(waiting: list[Plain], shown: int) -> Table:
    job_column, queue_column, because = (Column(head, overflow="fold") for head in ("job", "queue", "waits for"))
    table = Table("#", job_column, queue_column, "placed", "class", because, box=SIMPLE_HEAD)
    for job in waiting[:shown]:
        place = "" if job["position"] is None else str(job["position"])
        placed = f"{job['held']} of {job['held'] + job['pods']}"
        table.add_row(place, job_of(job["job"]), job["queue"], placed, job["class"], job["because"])
    table.title = _title("jobs that wait", len(waiting), shown)
    return table


def _nodes(board: Plain, shown: int, width: int) -> Iterator[Table]:
    """What is used of each resource, all nodes together, then the fullest nodes."""
    if not board["nodes"]:
        return
    resources, rows = board["resources"], range(len(board["nodes"]))
    table = Table("node", *resources, box=SIMPLE_HEAD, title=_title("nodes, the fullest first", len(rows), shown))
    table.add_row("all", *(_use(name, board, at, rows, width) for at, name in enumerate(resources)))
    fullest = sorted(rows, key=lambda row: (-_fullness(board, row), row))
    for row in fullest[:shown]:
        told = "" if board["ready"][row] else " (not ready)"
        told += " (cordoned)" if board["cordoned"][row] else ""
        table.add_row(
            board["nodes"][row] + told, *(_use(name, board, at, (row,), width) for at, name in enumerate(resources))
        )
    yield table


def _use(resource: str, board: Plain, at: int, rows: Iterable[int], width: int) -> str:
    used, there = (sum(board[what][at][row] for row in rows) for what in ("used", "allocatable"))
    if not there:
        return ""
    told = (amount(resource, reckoned(resource, value)).removesuffix(f" {resource}") for value in (used, there))
    return f"{bar(used / there, width)} {' of '.join(told)}"


def _fullness(board: Plain, row: int) -> float:
    """The largest part of any resource but pods."""
    parts = [
        used[row] / there[row]
        for name, used, there in zip(board["resources"], board["used"], board["allocatable"], strict=True)
        if there[row] and name != WHOLE
    ]
    return max(parts, default=0.0)


def _title(what: str, count: int, shown: int) -> str:
    return f"{what} ({shown} of {count})" if count > shown else what
