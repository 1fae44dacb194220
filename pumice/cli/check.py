"""`pumice check`: what a scheduler configuration will do."""

from __future__ import annotations

import sys
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pumice.check.review import Review, review
from pumice.cli.exits import Exit
from pumice.cli.given.inputs import load_config
from pumice.cli.options import Lenient, PluginsDir
from pumice.cli.terminal import Terminal, speaking


@speaking
def check(
    config: Annotated[
        Path, typer.Argument(metavar="CONF", help="A scheduler.conf, plain or in its ConfigMap (- for stdin).")
    ],
    plugins_dir: PluginsDir = None,
    *,
    terminal: Terminal,
    lenient: Lenient = False,
) -> int:
    """Exit code 2 for a configuration that is refused; warnings change nothing."""
    told = review(load_config(config, lenient, terminal, plugins=plugins_dir, stdin=sys.stdin))
    terminal.emit(told.to_dict(), lambda console: show(console, told))
    return Exit.DONE


def show(console: Console, told: Review) -> None:
    """Actions in their order, plugins tier by tier, warnings."""
    say = partial(console.print, markup=False, highlight=False, soft_wrap=True)
    say("In every cycle:")
    for action in told.actions:
        say(f"  {action.name}: {action.does}{_shown(action.arguments)}")
    for number, plugins in groupby(told.plugins, key=attrgetter("tier")):
        say(f"Tier {number}:")
        for plugin in plugins:
            say(f"  {plugin.name}: {plugin.does}{_shown(plugin.arguments)}")
            for flag in plugin.flags:
                say(f"      {flag.key}: {flag.does}" if flag.on else f"      {flag.key}: off")
    for warning in told.warnings:
        say(f"warning: {warning}")


def _shown(arguments: dict[str, object]) -> str:
    said = ", ".join(f"{name} {value}" for name, value in arguments.items())
    return f" ({said})" if said else ""
