"""The application: its own options, and the way from an exception to an exit code."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from pumice import __version__
from pumice.cli.exits import Exit
from pumice.collecting import keeping

if TYPE_CHECKING:
    from collections.abc import Mapping

# --- The table of commands


class CommandRow(NamedTuple):
    """One command; the function of its name stands in the module `pumice.cli.<name>`."""

    help: str
    example: str


COMMANDS: Final[Mapping[str, CommandRow]] = {
    "run": CommandRow(
        "Run the whole system: apply the manifests, schedule until told to stop, write the journal.",
        "[bold]pumice run -f job.yaml --until idle[/bold]",
    ),
    "mirror": CommandRow(
        "Follow a real cluster, read only: what is there and what its scheduler decides becomes a journal.",
        "[bold]pumice mirror --kubeconfig ~/.kube/config --db cluster.db[/bold]",
    ),
    "decide": CommandRow(
        "Say what the scheduler would do with these objects, and why it leaves tasks pending.",
        "[bold]kubectl get nodes,pods,podgroups,queues,jobs.batch.volcano.sh -A -o yaml | pumice decide -f -[/bold]",
    ),
    "check": CommandRow(
        "Say what every action, plugin and flag of a configuration will do, and what is without effect.",
        "[bold]pumice check scheduler.conf[/bold]",
    ),
    "conformance": CommandRow(
        "Run conformance cases and say, case by case, what differs from the real Volcano.",
        "[bold]pumice conformance cases/ -k allocate --workers 2[/bold]",
    ),
    "journal": CommandRow(
        "Read a journal: in numbers, the story of a job or pod, one cycle, or the integrity of the chain.",
        "[bold]pumice journal pumice.db --about default/test-job[/bold]",
    ),
    "explain": CommandRow(
        "Say why a pod or job is pending, was placed where it is, or was evicted, with counts that add up.",
        "[bold]pumice explain --db pumice.db pod default/worker-0[/bold]",
    ),
    "queue": CommandRow(
        "Show the queues, and the jobs that wait: who is tried when, why in that order, and what each waits for.",
        "[bold]pumice queue --db pumice.db research[/bold]",
    ),
    "whatif": CommandRow(
        "Live through a cluster's future twice, as it is and with changes, and say what differs.",
        "[bold]pumice whatif --db pumice.db --add-nodes 4:like=n1 --set queue/q1:spec.weight=3[/bold]",
    ),
    "eta": CommandRow(
        "Say when the jobs that wait will start, as a range, from how long pods like those that run have run.",
        "[bold]pumice eta --db pumice.db default/train[/bold]",
    ),
    "replay": CommandRow(
        "Decide every recorded cycle again and compare, or live through the same inputs under another configuration.",
        "[bold]pumice replay pumice.db --verify[/bold]",
    ),
    "measures": CommandRow(
        "Say what a recorded run came to: waits, slowdowns, evictions, lost work and use, as tables or files.",
        "[bold]pumice measures pumice.db --csv jobs.csv[/bold]",
    ),
    "report": CommandRow(
        "Tell a recorded run, or two beside each other, as one HTML file with plots.",
        "[bold]pumice report pumice.db -o report.html[/bold]",
    ),
    "sweep": CommandRow(
        "Live through every combination of configurations, arguments, seeds and traces, as one table.",
        "[bold]pumice sweep sweep.yaml -o table.csv[/bold]",
    ),
    "timeline": CommandRow(
        "Draw a recorded run for Perfetto: nodes, queues, cycles and actors over time, evictions as arrows.",
        "[bold]pumice timeline pumice.db -o trace.perfetto-trace[/bold]",
    ),
    "view": CommandRow(
        "Show a journal that nobody runs on a page, with a slider through its time.",
        "[bold]pumice view pumice.db[/bold]",
    ),
    "top": CommandRow(
        "Watch queues, waiting jobs, nodes and cycles on the terminal, of a server or of a journal.",
        "[bold]pumice top --server http://127.0.0.1:8080[/bold]",
    ),
    "kubeconfig": CommandRow(
        "Print (or write) a kubeconfig for a running `pumice run --http`.",
        "[bold]pumice kubeconfig --http 127.0.0.1:8080 > kubeconfig[/bold]",
    ),
    "schema": CommandRow(
        "Print the JSON Schema of what a command prints with `-o json`, or list them with their versions.",
        "[bold]pumice schema queue[/bold]",
    ),
    "bench": CommandRow(
        "Measure a named scenario.",
        "[bold]pumice bench allocate --nodes 5000 --pods 2000 --gang 8 --runs 5[/bold]",
    ),
    "stress": CommandRow(
        "Storm the scheduler with faults and crashes on virtual time, checking what must hold after every event.",
        "[bold]pumice stress --profile storm --seeds 300[/bold], again: --seed 300 for the next ones",
    ),
}
"""By name, in the order in which they are listed."""

CONTEXT: Final = {"help_option_names": ["-h", "--help"]}


def load(name: str) -> Any:
    """Return the command itself, with its options. Imports what it needs. Raises KeyError."""
    row = COMMANDS[name]
    with keeping():
        function = getattr(import_module(f"pumice.cli.{name}"), name)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=CONTEXT)
    alone.command(name, help=row.help, epilog=f"Example: {row.example}")(function)
    return typer.main.get_command(alone)


class LazyCommand(TyperCommand):
    """A command that is loaded when it is called."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Return the context of the command itself, which is the one that is invoked then."""
        assert self.name is not None
        return load(self.name).make_context(info_name, args, parent, **extra)


class Commands(TyperGroup):
    """The group of them all."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        return [*COMMANDS]

    def get_command(self, ctx: Any, cmd_name: str) -> LazyCommand | None:
        """Return one of them; None: there is none."""
        row = COMMANDS.get(cmd_name)
        return None if row is None else LazyCommand(cmd_name, help=row.help)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Each with all of its help, which would be cut to one line."""
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
    """Options of `pumice` itself."""


def command_line(arguments: list[str] | None = None) -> int:
    """Run one command and give its exit code."""
    try:
        app(args=arguments, prog_name="pumice", standalone_mode=True)
    except SystemExit as ending:
        return ending.code if isinstance(ending.code, int) else int(Exit.USAGE)
    return int(Exit.DONE)
