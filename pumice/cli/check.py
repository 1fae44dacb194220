# SPDX-License-Identifier: Apache-2.0
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

from pumice.cli.exits import Exit, UsageError
from pumice.cli.inputs import load_config
from pumice.cli.manifests import take_manifests
from pumice.cli.options import PluginsDir
from pumice.cli.sources import Certificate, ServerUrl, Token, TokenFile, server_of
from pumice.cli.terminal import Terminal, speaking
from pumice.config.schema import SchedulerConfig
from pumice.config.settings import config_map_of
from pumice.core.configuration import parse_or_built_in
from pumice.plugins.loader import install_plugins
from pumice.questions.check.review import Review, review
from pumice.questions.explain.server import Server, config_map, fetch


@speaking
def check(
    config: Annotated[
        str,
        typer.Argument(
            metavar="CONF",
            help="A scheduler.conf, plain or in its ConfigMap (- for stdin), or configmap:NAMESPACE/NAME of --server.",
        ),
    ],
    manifests: Annotated[
        list[str] | None,
        typer.Option(
            "-f",
            "--file",
            metavar="PATH",
            help="Queues and PodGroups to check it against: a file, a folder, or - for stdin.",
        ),
    ] = None,
    server: ServerUrl = None,
    token: Token = None,
    token_file: TokenFile = None,
    certificate: Certificate = None,
    plugins_dir: PluginsDir = None,
    *,
    terminal: Terminal,
    lenient: bool = False,
) -> int:
    """Check a configuration. Exit code 2 for a refused configuration or object; warnings change nothing."""
    asked = server_of(server, token, token_file, certificate, terminal)
    if asked is not None and manifests:
        raise UsageError("--server and -f name different clusters: say one of them", path="--server")
    settings = _settings(config, asked, plugins_dir, lenient, terminal)
    objects = list(fetch(asked)) if asked is not None else []
    given = take_manifests(manifests, (), None, terminal) if manifests else None
    told = review(settings, objects if given is None else given.objects)
    terminal.emit(told, lambda console: show(console, told))
    return Exit.DONE if given is None or given.whole else Exit.USAGE


def _settings(
    config: str, server: Server | None, plugins_dir: Path | None, lenient: bool, terminal: Terminal
) -> SchedulerConfig:
    """Return a file's, stdin's, or that of a ConfigMap on the server. Raises UsageError, ConfigError, ServerError."""
    named = config_map_of(config)
    if named is None:
        return load_config(Path(config), lenient, terminal, plugins=plugins_dir, stdin=sys.stdin)
    if server is None:
        raise UsageError("a ConfigMap is read from a server: add --server URL", path=config)
    install_plugins(plugins_dir)
    text = config_map(server, named.namespace, named.name)
    settings, _ = parse_or_built_in(text, source=named.said, lenient=lenient)
    for warning in settings.warnings:
        terminal.warn(warning)
    return settings


def show(console: Console, told: Review) -> None:
    """Print actions in their order, plugins tier by tier, and warnings."""
    say = partial(console.print, markup=False, highlight=False)
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
