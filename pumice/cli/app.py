# SPDX-License-Identifier: Apache-2.0
"""The application: its own options, and the way from an exception to an exit code."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from pumice import __version__
from pumice.cli.exits import Exit
from pumice.cli.usage import MISTAKE, HelpfulCommand, mistake_of
from pumice.collecting import keeping

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# --- The table of commands


class CommandRow(NamedTuple):
    """One command; the function of its name stands in the module `pumice.cli.<name>`."""

    help: str
    example: str


COMMANDS: Final[Mapping[str, CommandRow]] = {
    "run": CommandRow(
        "Run the whole system: apply the manifests, schedule until told to stop, write the journal.",
        "pumice run -f job.yaml --until idle",
    ),
    "mirror": CommandRow(
        "Follow a real cluster, read only, and write its objects and decisions to a journal.",
        "pumice mirror --kubeconfig ~/.kube/config --db cluster.db",
    ),
    "decide": CommandRow(
        "Decide what the scheduler would do with these objects, and why tasks stay pending.",
        "kubectl get nodes,pods,podgroups,queues,jobs.batch.volcano.sh -A -o yaml | pumice decide -f -",
    ),
    "check": CommandRow(
        "Check a configuration: what each action, plugin and flag does, and what has no effect.",
        "pumice check scheduler.conf",
    ),
    "conformance": CommandRow(
        "Run conformance cases and list what differs from the real Volcano.",
        "pumice conformance cases/ -k allocate --workers 2",
    ),
    "journal": CommandRow(
        "Read a journal: an overview, the story of a job or pod, one cycle, or its integrity.",
        "pumice journal pumice.db --about default/test-job",
    ),
    "explain": CommandRow(
        "Explain why a pod or job is pending, was placed where it is, or was evicted.",
        "pumice explain --db pumice.db pod default/worker-0",
    ),
    "queue": CommandRow(
        "Show the queues and the waiting jobs: their order, and what each waits for.",
        "pumice queue --db pumice.db research",
    ),
    "whatif": CommandRow(
        "Compare two futures of a cluster, as it is and with changes.",
        "pumice whatif --db pumice.db --add-nodes 4:like=n1 --set queue/q1:spec.weight=3",
    ),
    "eta": CommandRow(
        "Estimate when waiting jobs start, as a range, from how long similar pods ran.",
        "pumice eta --db pumice.db default/train",
    ),
    "replay": CommandRow(
        "Decide every recorded cycle again and compare, or run the same inputs under another configuration.",
        "pumice replay pumice.db --verify",
    ),
    "measures": CommandRow(
        "Measure a recorded run: waits, slowdowns, evictions, lost work and use.",
        "pumice measures pumice.db --csv jobs.csv",
    ),
    "report": CommandRow(
        "Write an HTML report of a recorded run, or of two side by side.",
        "pumice report pumice.db -o report.html",
    ),
    "sweep": CommandRow(
        "Run every combination of configurations, arguments, seeds and traces, as one table.",
        "pumice sweep sweep.yaml -o table.csv",
    ),
    "gate": CommandRow(
        "Judge a change of a cluster's policy before it is merged, by what it does to workloads.",
        "pumice gate gate.yaml --base main",
    ),
    "tune": CommandRow(
        "Search for a better configuration: weights, flags, orders and actions, judged on workloads.",
        "pumice tune tune.yaml",
    ),
    "timeline": CommandRow(
        "Draw a recorded run for Perfetto: nodes, queues, cycles and actors over time.",
        "pumice timeline pumice.db -o trace.perfetto-trace",
    ),
    "view": CommandRow(
        "Serve the page over a finished journal, with a slider through its time.",
        "pumice view pumice.db",
    ),
    "top": CommandRow(
        "Watch queues, waiting jobs, nodes and cycles on the terminal, of a server or of a journal.",
        "pumice top --server http://127.0.0.1:8080",
    ),
    "mcp": CommandRow(
        "Answer agents: read-only tools over a journal, a server or manifests (Model Context Protocol).",
        "pumice mcp --db pumice.db",
    ),
    "kubeconfig": CommandRow(
        "Print (or write) a kubeconfig for a running `pumice run --http`.",
        "pumice kubeconfig --http 127.0.0.1:8080 > kubeconfig",
    ),
    "schema": CommandRow(
        "Print the JSON Schema of what a command prints with `-o json`, or list them with their versions.",
        "pumice schema queue",
    ),
    "bench": CommandRow(
        "Run a named benchmark.",
        "pumice bench allocate --nodes 5000 --pods 2000 --gang 8 --runs 5",
    ),
    "stress": CommandRow(
        "Run storms of faults and crashes on virtual time, and check invariants after each event.",
        "pumice stress --profile storm --seeds 300",
    ),
}
"""By name, in the order in which they are listed."""

CONTEXT: Final = {"help_option_names": ["-h", "--help"]}


def load(name: str) -> Any:
    """Return the command itself, with its options. Imports its dependencies. Raises KeyError."""
    row = COMMANDS[name]
    with keeping():
        function = getattr(import_module(f"pumice.cli.{name}"), name)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=CONTEXT)
    alone.command(name, cls=HelpfulCommand, help=row.help, epilog=f"Example: {row.example}")(function)
    return typer.main.get_command(alone)


class LazyCommand(TyperCommand):
    """A command that is loaded when it is called."""

    def make_context(self, info_name: str | None, args: list[str], parent: object = None, **extra: Any) -> Any:
        """Return the context of the command itself, which is then the invoked one."""
        assert self.name is not None
        return load(self.name).make_context(info_name, args, parent, **extra)


class Commands(TyperGroup):
    """The group of all commands."""

    def list_commands(self, ctx: object) -> list[str]:
        """Return their names."""
        return [*COMMANDS]

    def get_command(self, ctx: object, cmd_name: str) -> LazyCommand | None:
        """Return a command; None for an unknown name."""
        row = COMMANDS.get(cmd_name)
        return None if row is None else LazyCommand(cmd_name, help=row.help)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command; a mistake in the command line becomes one line, as any other error does."""
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except MISTAKE as error:
            given = sys.argv[1:] if args is None else args
            sys.stderr.write(f"pumice: {mistake_of(error, given, COMMANDS)}\n" if given else f"{error}\n")
            code = Exit.USAGE
        if standalone_mode:
            raise SystemExit(code or Exit.DONE)
        return code

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each command with its whole help, which click would cut to one line."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, row.help) for name, row in COMMANDS.items()])


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
    """Set the options of `pumice` itself."""


def command_line(arguments: list[str] | None = None) -> int:
    """Run one command and give its exit code."""
    try:
        app(args=arguments, prog_name="pumice", standalone_mode=True)
    except SystemExit as ending:
        return ending.code if isinstance(ending.code, int) else int(Exit.USAGE)
    return int(Exit.DONE)
