# SPDX-License-Identifier: Apache-2.0
"""`pumice schema`: JSON Schemas of the commands' results."""

from __future__ import annotations

import sys
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from pumice.cli.app import COMMANDS
from pumice.cli.exits import Exit, UsageError
from pumice.cli.tables.table import WholeTable
from pumice.cli.terminal import Terminal, speaking
from pumice.config.errors import nearest_names
from pumice.core.objects.metadata import Object
from pumice.results import FORMS, Result, forms_of, json_schema, tag_of


class SchemaResult(Result, kw_only=True, tag="schema/1"):
    """JSON Schemas (2020-12) by the command whose result they describe."""

    schemas: dict[str, Object]


@speaking
def schema(
    command: Annotated[
        str | None,
        typer.Argument(metavar="COMMAND", help="Command whose result the schema describes.", show_default=False),
    ] = None,
    *,
    terminal: Terminal,
) -> int:
    """Print JSON Schemas with `-o json`, by command; without a name, list the commands and the versions of their
    results.
    """
    if command is not None and command not in FORMS:
        near = nearest_names(command, FORMS)
        problem = f"no command {command!r} prints JSON" + (f"; near: {', '.join(near)}" if near else "")
        raise UsageError(problem, path="COMMAND")
    if command is not None and terminal.tables:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(json_schema(command)), indent=2).decode() + "\n")
        return Exit.DONE
    names = () if terminal.tables else FORMS if command is None else (command,)
    terminal.emit(SchemaResult(schemas={name: json_schema(name) for name in names}), show)
    return Exit.DONE


def show(console: Console) -> None:
    """Print a line a command: the version of its result, and what the command does."""
    table = WholeTable("command", "schema", "what the command does", sentences=True)
    for name in FORMS:
        table.add_row(name, tag_of(forms_of(name)[0]), COMMANDS[name].help if name in COMMANDS else "")
    console.print(table)
