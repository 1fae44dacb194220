# SPDX-License-Identifier: Apache-2.0
"""The usage of a command: its help, and one line for a mistake, worded like every other error of Pumice."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import typer
from typer.core import TyperCommand

from pumice.config.errors import nearest_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# --- Help


class HelpfulCommand(TyperCommand):
    """A command whose help has a line for each argument and option, wrapped at the width of the terminal; the
    environment variable and the default stand in brackets.
    """

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words behind the command's name."""
        arguments = [each for each in self.get_params(ctx) if each.param_type_name == "argument"]
        names = [(f"{each.metavar}{'...' if each.nargs != 1 else ''}", each.required) for each in arguments]
        return ["[OPTIONS]", *(name if required else f"[{name}]" for name, required in names)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options, those of a panel below its name."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for each in self.get_params(ctx):
            if not getattr(each, "hidden", False):
                panel = "Arguments" if each.param_type_name == "argument" else "Options"
                panel = getattr(each, "rich_help_panel", None) or panel
                sections.setdefault(panel, []).append(_row(each))
        for panel, rows in sections.items():
            with formatter.section(panel):
                formatter.write_dl(rows)


def _row(parameter: Any) -> tuple[str, str]:
    """Return a parameter's form, and its purpose."""
    metavar = parameter.metavar or ""
    if parameter.param_type_name == "argument":
        return metavar, parameter.help or ""
    names = ", ".join(sorted(parameter.opts, key=len))
    noted = [parameter.envvar] if parameter.envvar else []
    default = parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
    if (
        parameter.show_default
        and default is not None
        and default is not False
        and default != ""
        and not callable(default)
    ):
        noted.append(f"default: {default}")
    brackets = f" [{'; '.join(noted)}]" if noted else ""
    return f"{names} {metavar}".strip(), f"{parameter.help or ''}{brackets}".strip()


# --- Mistakes

MISTAKE: Final[type[Exception]] = typer.BadParameter.__mro__[1]
"""The parser's usage error, for which typer has no public name."""
EXPECTED: Final = (
    (re.compile(r"Input should be a valid (?P<what>\w+).*"), "a {what}"),
    (re.compile(r"Input should be greater than or equal to (?P<what>\S+)"), "a number of at least {what}"),
    (re.compile(r"Input should be less than or equal to (?P<what>\S+)"), "a number of at most {what}"),
    (re.compile(r"(Value error, )?'.*' is not one of (?P<what>.*?)\.?"), "one of {what}"),
    (re.compile(r"'.*' is not a valid (?P<what>int|float)( range)?\."), "a {what}"),
    (re.compile(r"\S+ is not in the range x>=(?P<what>[^<]+)\."), "a number of at least {what}"),
    (re.compile(r"\S+ is not in the range x<=(?P<what>.+)\."), "a number of at most {what}"),
)
"""Messages of the parser about a value, from its version 0.29 on and before it, and what was expected instead."""
SAID: Final = {"a integer": "an integer", "a int": "an integer", "a float": "a number"}


def mistake_of(error: Any, arguments: Sequence[str], commands: Iterable[str]) -> str:
    """Return the problem of an option, the expected value, and where the options are listed."""
    command = error.ctx.command_path if error.ctx is not None else "pumice"
    listed = f"{command} --help lists the options"
    option, parameter, message = getattr(error, "option_name", ""), getattr(error, "param", None), str(error.message)
    if "No such option" in message:
        near = f"; near: {', '.join(error.possibilities[:3])}" if error.possibilities else ""
        return f"{option}: {command} has no such option{near}; {listed}"
    if option:
        return f"{option}: expected a value, found none; {listed}"
    if message.startswith("No such command"):
        name = message.split("'")[1]
        alike = nearest_names(name, commands)
        hint = f"near: {', '.join(alike)}" if alike else f"{command} --help lists them"
        return f"command {name!r} does not exist; {hint}"
    if parameter is None:
        return f"{message[:1].lower()}{message[1:].removesuffix('.')}; {listed}"
    name = parameter.opts[-1] if parameter.param_type_name == "option" else (parameter.metavar or parameter.name)
    if not message:
        return f"{name}: expected a value, found none; {listed}"
    for pattern, expected in EXPECTED:
        if found := pattern.fullmatch(message):
            said = expected.format(what=found["what"].replace("'", ""))
            message = f"expected {SAID.get(said, said)}"
            break
    return f"{name}: {message}{_given(parameter.opts, arguments)}"


def _given(options: Sequence[str], arguments: Sequence[str]) -> str:
    """Return ", was 'x'" for the value of an option; "" if it came from elsewhere."""
    for at, argument in enumerate(arguments):
        name, has_value, value = argument.partition("=")
        if name in options and (has_value or at + 1 < len(arguments)):
            return f", was {value if has_value else arguments[at + 1]!r}"
    return ""
