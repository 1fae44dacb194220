"""The configuration that a question about a cluster is answered by: the one that was named, the server's own, or the
stock one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from pumice.config.load import default_text, read_text
from pumice.config.schema import SchedulerConfig
from pumice.core.messages.events import ConfigLoaded
from pumice.plugins.loader import identities, install_plugins
from pumice.questions.explain.server import Server, configuration
from pumice.questions.replay.plugins import demand
from pumice.questions.whatif.sources import parsed, taken

UNTOLD: Final = (
    "{}: it does not say how its scheduler is configured: Volcano's stock configuration is taken; name its own with {}"
)


def told_of(config: Path | None) -> ConfigLoaded:
    """A configuration as a journal has it. Raises ConfigError."""
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
    """What was named by `option`, else what the server says of itself, else the stock one, which a server's asker is
    warned of. What a server is configured by was good there, and is read leniently. Raises ConfigError, ServerError.
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
