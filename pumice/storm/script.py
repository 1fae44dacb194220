"""What happens in a storm, as a list of events: it can be generated, recorded, cut down, written down and run again.

An event either comes at a time (`at`, virtual seconds) and does something to the cluster, or waits for an occasion
(`on`, such as "bind default/j1-0 #2": the second attempt to bind that pod) and is a fault.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from config.errors import ConfigError

VERSION: Final = 1


class Event(Struct, frozen=True, omit_defaults=True):
    """`what`: its kind; `target`: the node, job, queue or actor; `amount`: seconds, steps or a share, by kind."""

    what: str
    at: float = 0.0
    on: str = ""
    target: str = ""
    amount: float = 0.0
    details: dict[str, Any] = field(default_factory=dict[str, Any])


class Script(Struct, frozen=True, omit_defaults=True):
    """One storm. `rates`: probability of each fault on each occasion, beside those that are listed.

    `news_delay_s`: watchers hear of changes up to so much later.
    """

    seed: int
    events: tuple[Event, ...] = ()
    rates: dict[str, float] = field(default_factory=dict[str, float])
    profile: str = ""
    planted: str = ""
    invariant: str = ""
    faults_end_s: float = 20.0
    period_s: float = 1.0
    news_delay_s: float = 0.1
    config: str = ""
    version: int = VERSION


def read_script(path: Path) -> Script:
    """Raises ConfigError for a file that is no list of events; OSError when it cannot be read."""
    try:
        script = msgspec.json.decode(path.read_bytes(), type=Script)
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{path}: not a list of events: {error}") from error
    if script.version > VERSION:
        raise ConfigError(f"{path}: version {script.version}, this release knows {VERSION}")
    return script


def write_script(script: Script, path: Path) -> None:
    """As JSON, one key a line, for people to read and change."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(script), indent=1) + b"\n")
