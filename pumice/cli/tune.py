# SPDX-License-Identifier: Apache-2.0
"""`pumice tune` searches for a better configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pumice.cli.exits import Exit
from pumice.cli.gate import demand_folder
from pumice.cli.options import Dask, PluginsDir, Workers
from pumice.cli.terminal import Terminal, speaking
from pumice.config.input_file import note_inputs
from pumice.executors import executors
from pumice.plugins.loader import install_plugins
from pumice.questions.tuning.spec import read_spec
from pumice.questions.tuning.tune import SettingsSearch, page_of


@speaking
def tune(
    file: Annotated[Path, typer.Argument(metavar="SPEC", help="What varies, as YAML (docs/reference/tune.md).")],
    workers: Workers,
    folder: Annotated[
        Path | None,
        typer.Option("--results", metavar="FOLDER", help="Trials and the winner lie there. Default: SPEC.tune."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of the search.")] = 0,
    dask: Dask = None,
    plugins_dir: PluginsDir = None,
    *,
    terminal: Terminal,
) -> int:
    """Search among configurations; what was tried before is not tried again. Needs `pip install 'pumice[tune]'`."""
    install_plugins(plugins_dir)
    note_inputs(file)
    spec, place = read_spec(file), folder or file.with_suffix(".tune")
    demand_folder(place, "--results")
    pool = None if workers == 1 and dask is None else executors(workers, dask)
    search = SettingsSearch(spec, place, pool, seed, str(plugins_dir or ""))
    with terminal.progress("trials", spec.trials) as advance:
        result = search.run(lambda: advance(1))

    def show(console: Console) -> None:
        console.print(page_of(result), markup=False)
        console.print(f"This page: {result.page}", markup=False)
        if result.config is not None:
            console.print(f"The best configuration: {result.config}", markup=False)

    terminal.emit(result, show)
    return Exit.DONE if result.chosen is not None else Exit.DIFFERS
