"""The commands in one visible table, and the way from an exception to an exit code."""

from __future__ import annotations

import sys
from typing import Annotated, Final

import typer

from pumice import __version__
from pumice.cli import bench, conformance, decide, explain, journal, kubeconfig, replay, run, stress
from pumice.cli.exits import Exit

app: Final = typer.Typer(
    name="pumice",
    help="The Volcano batch scheduler as one long-lived process made of actors.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("run", help=run.HELP, epilog=run.EXAMPLE)(run.run)
app.command("decide", help=decide.HELP, epilog=decide.EXAMPLE)(decide.decide)
app.command("conformance", help=conformance.HELP, epilog=conformance.EXAMPLE)(conformance.conformance)
app.command("journal", help=journal.HELP, epilog=journal.EXAMPLE)(journal.journal)
app.command("explain", help=explain.HELP, epilog=explain.EXAMPLE)(explain.explain)
app.command("replay", help=replay.HELP, epilog=replay.EXAMPLE)(replay.replay)
app.command("kubeconfig", help=kubeconfig.HELP, epilog=kubeconfig.EXAMPLE)(kubeconfig.kubeconfig)
app.command("bench", help=bench.HELP, epilog=bench.EXAMPLE)(bench.bench)


def _show_version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"pumice {__version__}\n")
        raise typer.Exit(Exit.DONE)


app.command("stress", help=stress.HELP, epilog=stress.EXAMPLE)(stress.stress)


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
