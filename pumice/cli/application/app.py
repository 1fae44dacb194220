"""The application: its own options, and the way from an exception to an exit code."""

from __future__ import annotations

import sys
from typing import Annotated, Final

import typer

from pumice import __version__
from pumice.cli.application.commands import CONTEXT, Commands
from pumice.cli.exits import Exit

app: Final = typer.Typer(
    name="pumice",
    cls=Commands,
    help="The Volcano batch scheduler as one long-lived process made of actors.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich takes longer to import than a plain page of help takes altogether
    context_settings=CONTEXT,
)


def _show_version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"pumice {__version__}\n")
        raise typer.Exit(Exit.DONE)


@app.callback()
def options(
    version: Annotated[  # its callback has done the work by the time the body runs
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Options of `pumice` itself."""


def command_line(arguments: list[str] | None = None) -> int:
    """Run one command and give its exit code."""
    try:
        app(args=arguments, prog_name="pumice", standalone_mode=True)
    except SystemExit as ending:
        return ending.code if isinstance(ending.code, int) else int(Exit.USAGE)
    return int(Exit.DONE)
