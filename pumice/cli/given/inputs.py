"""Reading what every scheduling command is given: manifests and the scheduler's configuration."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from config.load import load_scheduler_config
from config.schema import SchedulerConfig
from core.actions import ACTIONS
from core.objects.metadata import parse_time, section
from core.plugins import PLUGINS
from pumice.cli.terminal import Terminal
from pumice.eta.rehearsal import BEGAN
from pumice.load.manifests import Loaded, load
from pumice.load.remarks import remarks, strangers
from pumice.oneshot.bring import brought
from pumice.plugins.loader import install_plugins


def load_manifests(paths: Sequence[str], terminal: Terminal) -> Loaded:
    """Everything behind the paths; what was skipped is warned about, what could not be used is said as an error."""
    loaded = load(paths, sys.stdin)
    for line in loaded.skipped:
        terminal.warn(line)
    for problem in loaded.problems:
        terminal.error(str(problem))
    for remark in remarks(loaded):
        terminal.warn(remark)
    return loaded


def warn_of_token(token: str | None, terminal: Terminal) -> None:
    """A token among a command's words is no secret."""
    if token and token != os.environ.get("PUMICE_TOKEN"):
        terminal.warn("--token is shown to everybody on this machine by ps; use --token-file or PUMICE_TOKEN")


def load_config(
    path: Path | None, lenient: bool, terminal: Terminal, *, plugins: Path | None = None
) -> SchedulerConfig:
    """The scheduler configuration, Volcano's stock one when no file is named. ConfigError names what is wrong.

    Installed plugins, and those in the folder `plugins`, may be named in it.
    """
    install_plugins(plugins)
    config = load_scheduler_config(path, lenient=lenient, built_plugins=PLUGINS, built_actions=ACTIONS)
    for warning in config.warnings:
        terminal.warn(warning)
    return config


def moment_of(objects: Sequence[dict[str, Any]]) -> float:
    """The moment that manifests show (seconds since the epoch): when the newest of their objects was made."""
    newest = 0.0
    for obj in objects:
        try:
            newest = max(newest, parse_time(section(obj, "metadata").get("creationTimestamp")))
        except (ValueError, TypeError, AttributeError):
            continue  # whoever takes the object says so
    return newest or BEGAN


def take_manifests(
    paths: Sequence[str], beside: Sequence[dict[str, Any]], now: float | None, terminal: Terminal
) -> tuple[list[dict[str, Any]], bool]:
    """The objects behind the paths, and those `beside` them, with what controllers make of them; whether all of it
    could be used. What could not, and what was assumed, is said.
    """
    loaded = load_manifests(paths, terminal)
    now = moment_of(loaded.objects) if now is None else now
    with terminal.progress("reading", len(loaded.objects)) as advance:
        found = brought(loaded, beside, now, advance)
    for problem in found.problems:
        terminal.error(str(problem))
    for note in (*found.notes, *strangers(found.objects)):
        terminal.warn(note)
    return found.objects, not loaded.problems and not found.problems
