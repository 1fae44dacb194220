# SPDX-License-Identifier: Apache-2.0
"""The input of scheduling commands besides manifests: the scheduler's configuration, a moment, a token."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, TextIO

from pumice.cli.terminal import Terminal
from pumice.config.load import default_text, read_text
from pumice.config.schema import SchedulerConfig
from pumice.core.configuration import load_scheduler_config, parse_or_built_in, parsed, taken
from pumice.core.messages.events import ConfigLoaded
from pumice.errors import InputError
from pumice.load.source import STDIN, read_texts
from pumice.plugins.loader import identities, install_plugins
from pumice.questions.explain.server import Server, configuration
from pumice.questions.replay.plugins import demand

# --- The configuration of a question

UNTOLD: Final = (
    "{}: it does not say how its scheduler is configured: Volcano's stock configuration is taken; name its own with {}"
)


def told_of(config: Path | None) -> ConfigLoaded:
    """Return a configuration as a journal has it. Raises ConfigError."""
    text = default_text() if config is None else read_text(config)
    return ConfigLoaded("", text, "default.conf" if config is None else str(config), plugins=identities())


def in_force(
    path: Path | None,
    server: Server | None,
    plugins_dir: Path | None,
    lenient: bool,
    warn: Callable[[str], None],
    option: str = "--config",
) -> tuple[ConfigLoaded, SchedulerConfig]:
    """Return the configuration named by `option`, else the server's own, else the stock one (with a warning if a
    server was asked). A server's configuration was accepted there, so it is read leniently. Raises ConfigError,
    ServerError.
    """
    install_plugins(plugins_dir)
    asked = None if server is None or path is not None else configuration(server)
    if asked is not None:
        demand({name: {identity} for name, identity in asked.plugins.items()}, asked.source, warn)
    elif server is not None and path is None:
        warn(UNTOLD.format(server.url, option))
    told = asked or told_of(path)
    if asked is None:
        told, config = taken(told, lenient=lenient)
    else:
        config = parsed(told)
    for warning in config.warnings:
        warn(warning)
    return told, config


def warn_of_token(token: str | None, terminal: Terminal) -> None:
    """Warn that a token among a command's words is not secret."""
    if token and token != os.environ.get("PUMICE_TOKEN"):
        terminal.warn("--token is visible to all users of this machine in ps; use --token-file or PUMICE_TOKEN")


def load_config(
    path: Path | None,
    lenient: bool,
    terminal: Terminal,
    *,
    plugins: Path | None = None,
    stdin: TextIO | None = None,
) -> SchedulerConfig:
    """Return the scheduler configuration, Volcano's stock one when no file is named. ConfigError names the problem.

    Installed plugins, and those in the folder `plugins`, may be named in it. `stdin` is read in place of a file `-`.
    """
    install_plugins(plugins)
    if stdin is not None and str(path) == STDIN:
        ((source, text),) = read_texts(STDIN, stdin)
        if isinstance(text, InputError):
            raise text
        config, _ = parse_or_built_in(text, source=source, lenient=lenient)
    else:
        config = load_scheduler_config(path, lenient=lenient)
    for warning in config.warnings:
        terminal.warn(warning)
    return config
