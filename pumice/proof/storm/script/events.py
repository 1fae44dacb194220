"""What happens in a storm, as a list of events: it can be generated, recorded, cut down, written down and run again.

An event either comes at a time (`at`, virtual seconds) and does something to the cluster, or waits for an occasion
(`on`, such as "bind default/j1-0 #2": the second attempt to bind that pod) and is a fault.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec import Struct, field

from pumice.config.errors import ConfigError, WrongTypeError
from pumice.config.input_file import demand_output, read_bytes
from pumice.proof.storm.script.checking import check_script

VERSION: Final = 1
T = TypeVar("T", bound=Struct)


class Event(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """`what`: its kind; `target`: the node, job, queue or actor; `amount`: seconds, steps or a share, by kind."""

    what: str
    at: float = 0.0
    on: str = ""
    target: str = ""
    amount: float = 0.0
    details: dict[str, Any] = field(default_factory=dict[str, Any])


class Script(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One storm. `rates`: probability of each fault on each occasion; with rates, faults are not listed.

    `profile`: where it came from, a word for people: the storm itself stands here, configuration and all.
    `news_delay_s`: watchers hear of changes up to so much later. `order`: the seed of the order in which everything
    runs, where that is not the storm's own: one that was cut down may show what it shows in another order only.
    """

    seed: int
    events: tuple[Event, ...] = ()
    rates: dict[str, float] = field(default_factory=dict[str, float])
    profile: str = ""
    invariant: str = ""
    faults_end_s: float = 20.0
    period_s: float = 1.0
    news_delay_s: float = 0.1
    config: str = ""
    order: int | None = None
    version: int = VERSION

    @property
    def order_seed(self) -> int:
        """What decides the order in which everything runs."""
        return self.seed if self.order is None else self.order


def read_script(path: Path) -> Script:
    """Raises ConfigError, which names the file and `events[i].key`, for a file that cannot be read or is no storm."""
    source = str(path)
    try:
        found: object = msgspec.json.decode(read_bytes(path))
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", source=source) from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"not JSON: {error}", source=source) from error
    if not isinstance(found, dict):
        raise WrongTypeError("a storm: a mapping with seed and events", found, source=source)
    parts = cast("dict[str, Any]", found)
    _check_version(parts.get("version", VERSION), source)
    events = parts.get("events", [])
    if not isinstance(events, list):
        raise WrongTypeError("a list of events", events, source=source, path="events")
    script = _converted({**parts, "events": ()}, Script, source, "")
    each = enumerate(cast("list[object]", events))
    read = tuple(_converted(event, Event, source, f"events[{index}]") for index, event in each)
    script = msgspec.structs.replace(script, events=read)
    check_script(script, source)
    return script


def write_script(script: Script, path: Path) -> None:
    """Write the script in JSON, one key a line, for people to read and change; the version is always told."""
    demand_output(path)
    written = {"version": script.version} | msgspec.to_builtins(script)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(written), indent=1) + b"\n")


def _check_version(found: object, source: str) -> None:
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise WrongTypeError(f"a version from 1 to {VERSION}", found, source=source, path="version")
    if found > VERSION:
        raise ConfigError(f"version {found}, this release knows {VERSION}", source=source, path="version")


def _converted(found: object, to: type[T], source: str, path: str) -> T:
    """Where msgspec says "$.at", the error says `events[3].at`."""
    try:
        return msgspec.convert(found, to)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `")
        inside = place.removesuffix("`").removeprefix("$").lstrip(".")
        if unknown := re.search(r"unknown field `(.*)`", problem):
            problem = f"unknown key {unknown[1]!r}; known: {', '.join(to.__struct_fields__)}"
        raise ConfigError(problem, source=source, path=".".join(filter(None, (path, inside)))) from error
