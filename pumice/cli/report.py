# SPDX-License-Identifier: Apache-2.0
"""`pumice report`: a recorded run, or two beside each other, as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import anyio
import typer

from pumice.cli.exits import Exit, UsageError
from pumice.cli.terminal import Terminal, speaking
from pumice.config.input_file import demand_output, note_inputs
from pumice.core.objects.metadata import Object
from pumice.errors import absent, demand
from pumice.questions.adviser.waiting_jobs import waits_at_the_end
from pumice.questions.report.charts import charts
from pumice.questions.report.cycle_reasons import reasons_by_cycle
from pumice.questions.report.page import page
from pumice.questions.report.recorded import RecordedRun, recorded
from pumice.results import Result
from pumice.storage.sqlite import open_history

SCALE: Final = 2.0
"""Of PNGs, for screens with small dots."""


class ReportResult(Result, kw_only=True, tag="report/1"):
    """The file that was written, its size, and the files with plots."""

    report: str
    bytes: int
    plots: list[str]


@speaking
def report(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="One journal, or two to compare.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="HTML", help="File to write. Default: FILE.html.", show_default=False),
    ] = None,
    png: Annotated[
        Path | None, typer.Option("--png", metavar="FOLDER", help="Write each plot as a PNG too.", show_default=False)
    ] = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FOLDER", help="Write each plot as an SVG too.", show_default=False)
    ] = None,
    *,
    terminal: Terminal,
) -> int:
    """Write a report of one run, or of two compared; it opens in any browser without a network.

    Without vl-convert (pip install 'pumice[report]') it has tables and no plots.
    """
    if len(files) > 2:
        raise UsageError("expected one journal, or two to compare")
    if png or svg:
        demand("vl_convert", "report", "Plots")
    plain = absent("vl_convert", "report", "Plots")
    target = output or files[0].with_name(f"{files[0].name}.html")
    note_inputs(*files)
    demand_output(target)
    runs = anyio.run(_read, files)
    for run, file in zip(runs, files, strict=True):
        run.standing = waits_at_the_end(file) if run.waiting or run.admitted_for else []
    drawn = {} if plain else charts(runs)
    target.write_text(page(runs, drawn), "utf-8")
    plots = [*_save(drawn, png, "png"), *_save(drawn, svg, "svg")]
    if plain:
        terminal.warn(f"{plain}; the report has tables only")
    said = ReportResult(report=str(target), bytes=target.stat().st_size, plots=[str(path) for path in plots])
    terminal.emit(said, lambda console: console.print(f"{target}: open it in a browser"))
    return Exit.DONE


async def _read(files: list[Path]) -> list[RecordedRun]:
    runs: list[RecordedRun] = []
    for number, file in enumerate(files):
        async with open_history(file) as journal:
            name = file.stem if file.stem not in {run.name for run in runs} else f"{file.stem} ({number + 1})"
            runs.append(await recorded(journal, name, await reasons_by_cycle(file)))
    return runs


def _save(drawn: dict[str, Object], folder: Path | None, form: str) -> list[Path]:
    """Save each plot on white paper, as a file of its name, and return the files."""
    if folder is None:
        return []
    drawer = demand("vl_convert", "report", "Plots")
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for name, spec in drawn.items():
        on_white = {**spec, "background": "white"}
        path = folder / f"{name}.{form}"
        demand_output(path)
        if form == "png":
            path.write_bytes(drawer.vegalite_to_png(on_white, scale=SCALE))
        else:
            path.write_text(drawer.vegalite_to_svg(on_white), "utf-8")
        paths.append(path)
    return paths
