# SPDX-License-Identifier: Apache-2.0
"""`pumice timeline`: a recorded run as a file for Perfetto."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import anyio
import typer

from pumice.cli.exits import Exit
from pumice.cli.terminal import Terminal, speaking
from pumice.config.input_file import demand_output, note_inputs
from pumice.questions.measures.measures import Measures
from pumice.questions.timeline.perfetto import PerfettoWriter
from pumice.questions.timeline.timeline import draw
from pumice.results import Result
from pumice.storage.sqlite import open_history


class TimelineResult(Result, kw_only=True, tag="timeline/1"):
    """The file that was written, its size, and the number of its jobs."""

    timeline: str
    bytes: int
    jobs: int


@speaking
def timeline(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The journal that `pumice run` wrote.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="TRACE", help="Default: FILE.perfetto-trace.", show_default=False),
    ] = None,
    *,
    terminal: Terminal,
) -> int:
    """Draw nodes, queues, cycles and actors as tracks, pods as slices, evictions as arrows. Open the file in
    ui.perfetto.dev.
    """
    target = output or file.with_name(f"{file.name}.perfetto-trace")
    note_inputs(file)
    demand_output(target)
    found = anyio.run(_draw, file, target)
    said = TimelineResult(timeline=str(target), bytes=target.stat().st_size, jobs=found.summary["jobs"])
    terminal.emit(said, lambda console: console.print(f"{target}: open it in https://ui.perfetto.dev"))
    return Exit.DONE


async def _draw(file: Path, target: Path) -> Measures:
    async with open_history(file) as journal:
        with target.open("wb") as opened:
            return await draw(journal, PerfettoWriter(opened))
