"""Reading what every scheduling command is given: manifests and the scheduler's configuration."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from config.errors import ConfigError
from config.load import default_scheduler_config, parse_scheduler_config
from config.schema import SchedulerConfig
from pumice.cli.terminal import Terminal
from pumice.load.manifests import Loaded, load


def load_manifests(paths: Sequence[str], terminal: Terminal) -> Loaded:
    """Everything behind the paths; what was skipped is warned about, what could not be used is said as an error."""
    loaded = load(paths, sys.stdin)
    for line in loaded.skipped:
        terminal.warn(line)
    for problem in loaded.problems:
        terminal.error(str(problem))
    return loaded


def load_config(path: Path | None, lenient: bool, terminal: Terminal) -> SchedulerConfig:
    """The scheduler configuration, Volcano's stock one when no file is named. ConfigError names what is wrong."""
    if path is None:
        return default_scheduler_config()
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"not UTF-8 text (byte {error.start})", source=str(path)) from error
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", source=str(path)) from error
    config = parse_scheduler_config(text, source=str(path), lenient=lenient)
    for warning in config.warnings:
        terminal.warn(warning)
    return config
