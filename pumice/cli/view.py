# SPDX-License-Identifier: Apache-2.0
"""`pumice view`: the page over a journal that has no server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import anyio
import typer

from pumice.cli.exits import Exit
from pumice.cli.options import PluginsDir
from pumice.cli.terminal import Terminal, speaking
from pumice.config.errors import ConflictError
from pumice.questions.history.rewind import newest_cycle
from pumice.questions.view import view_journal
from pumice.results import Result

MOST_PORT: Final = 65_535


class ViewResult(Result, kw_only=True, tag="view/1"):
    """Address at which the page over a journal is served, and the newest cycle of the journal."""

    url: str
    journal: str
    cycles: int


@speaking
def view(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The journal that `pumice run` wrote; it is only read.")],
    http: Annotated[
        str, typer.Option("--http", metavar="HOST:PORT", help="An address of this machine only; port 0: any free one.")
    ] = "127.0.0.1:0",
    plugins_dir: PluginsDir = None,
    *,
    terminal: Terminal,
) -> int:
    """Print the address, and serve until Ctrl-C. Every cycle of the journal is a stop of the slider."""
    newest = anyio.run(newest_cycle, file)

    def tell(url: str) -> None:
        said = ViewResult(url=url, journal=str(file), cycles=newest)
        terminal.emit(said, lambda console: console.print(f"{file} on {url}"))
        sys.stdout.flush()  # the caller waits for the address

    view_journal(file, None if plugins_dir is None else str(plugins_dir), *address(http), tell, terminal.warn)
    return Exit.DONE


def address(http: str) -> tuple[str, int]:
    """Return the host and port of `--http`. Raises ConflictError."""
    host, _, port = http.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) <= MOST_PORT):
        raise ConflictError(f"expected HOST:PORT, was {http!r}", path="--http")
    return host.strip("[]") or "127.0.0.1", int(port)
