"""`pumice explain`: why a pod or a job is pending, or why it was placed there, or evicted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import anyio
import typer
from rich.console import Console
from rich.table import Table

from core.messages.decisions import Bind, Evict
from pumice.cli.exits import Exit, UsageError, guarded
from pumice.cli.options import Lenient, Level, LogLevel, Output, PluginsDir, Quiet
from pumice.cli.terminal import Terminal
from pumice.explain.account import Account, account_of
from pumice.history.rewind import rewind_file
from pumice.replay.plugins import demand_plugins
from storage import codec
from storage.journal import CYCLE, DECISION
from storage.sqlite import SqliteJournal

HELP: Final = "Say why a pod or job is pending, was placed where it is, or was evicted, with counts that add up."
EXAMPLE: Final = "Example: [bold]pumice explain --db pumice.db pod default/worker-0[/bold]"

KINDS: Final = {"pod": "pod", "pods": "pod", "podgroup": "podgroup", "pg": "podgroup", "job": "job", "vcjob": "job"}


@guarded
def explain(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="pod, podgroup or job.")],
    name: Annotated[str, typer.Argument(metavar="NS/NAME", help="Its name; the namespace is default when left out.")],
    db: Annotated[Path, typer.Option("--db", help="The journal.", envvar="PUMICE_DB")] = Path("pumice.db"),
    cycle: Annotated[
        int | None,
        typer.Option("--cycle", min=1, help="The cycle. Default: the last that decided about it, else the newest."),
    ] = None,
    plugins_dir: PluginsDir = None,
    output: Output = None,
    quiet: Quiet = False,
    log_level: Level = LogLevel.WARNING,
    lenient: Lenient = False,
) -> int:
    """Decide the cycle again and tell what it did about the object."""
    del lenient
    terminal = Terminal(output, quiet, log_level)
    known = KINDS.get(kind.lower())
    if known is None:
        raise UsageError(f"cannot explain a {kind!r}; known: {', '.join(sorted(set(KINDS.values())))}", path="KIND")
    whole = name if "/" in name else f"default/{name}"
    anyio.run(demand_plugins, db, plugins_dir, terminal.warn)
    account = anyio.run(_explain, db, known, whole, cycle)
    terminal.emit(account.to_dict(), lambda console: show(console, account))
    return Exit.DONE


async def _explain(db: Path, kind: str, name: str, cycle: int | None) -> Account:
    number = cycle if cycle is not None else await _telling_cycle(db, kind, name)
    return account_of(await rewind_file(db, number, path="--cycle"), kind, name)


async def _telling_cycle(db: Path, kind: str, name: str) -> int:
    """The last cycle that decided about the pod, or about a pod of the job; else the newest."""
    async with await SqliteJournal.open(db, read_only=True) as journal:
        newest = found = after = 0
        while batch := await journal.read(after, (CYCLE, DECISION)):
            for stored in batch:
                if stored.kind == CYCLE:
                    newest = int(codec.unpack(stored.payload)["cycle"])
                elif _is_about(codec.decode(stored.payload, Bind | Evict), kind, name):
                    found = newest
            after = batch[-1].sequence
    if not newest:
        raise UsageError("the journal has no cycle", path=str(db))
    return found or newest


def _is_about(decision: Bind | Evict, kind: str, name: str) -> bool:
    if kind == "pod":
        return f"{decision.namespace}/{decision.name}" == name
    return decision.job == name or (kind == "job" and decision.job.startswith(f"{name}-"))


def show(console: Console, account: Account) -> None:
    """The sentence first, then the counts."""
    console.print(f"{account.kind} {account.name} in cycle {account.cycle}: {account.state}", markup=False)
    if account.message:
        console.print(account.message, markup=False, soft_wrap=True)
    if account.nodes:
        table = Table("nodes", "how many", title=f"{sum(account.nodes.values())} nodes")
        for reason, count in account.nodes.items():
            table.add_row(reason, str(count))
        console.print(table)
    for plugin, said in account.plugins.items():
        console.print(f"{plugin}: {', '.join(f'{key} {value}' for key, value in said.items())}", markup=False)
    for advice in account.unblock:
        console.print(f"would help: {advice}", markup=False, soft_wrap=True)
