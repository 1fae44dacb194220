# SPDX-License-Identifier: Apache-2.0
"""Events of a storm, as a list: it can be generated, recorded, cut down, written and run again.

An event either comes at a time (`at`, virtual seconds) and does something to the cluster, or waits for an occasion
(`on`, such as "bind default/j1-0 #2": the second attempt to bind that pod) and is a fault.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from pumice.config.errors import ConfigError
from pumice.config.input_file import demand_output, read_bytes, unreadable
from pumice.config.read import ValuePlace, sequence, shaped
from pumice.config.yaml_tree import Document
from pumice.core.objects.metadata import Object, is_mapping
from pumice.proof.storm.script.checking import NotNegative, Share, check_script

VERSION: Final = 1
Natural = Annotated[int, Meta(ge=0, description="a whole number from 0")]
Version = Annotated[int, Meta(ge=1, description=f"a version from 1 to {VERSION}")]


class Event(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """An event. `what`: its kind; `target`: the node, job, queue or actor; `amount`: seconds, steps or a share, by
    kind.
    """

    what: str
    at: NotNegative = 0.0
    on: str = ""
    target: str = ""
    amount: float = 0.0
    details: Object = field(default_factory=Object)


class Script(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One storm. `rates`: probability of each fault on each occasion; with rates, faults are not listed.

    `profile`: where it came from, a word for people: the storm itself stands here, configuration and all.
    `news_delay_s`: watchers see changes up to so much later. `order`: the seed of the order in which everything
    runs, where that is not the storm's own: one that was cut down may show what it shows in another order only.
    """

    seed: Natural
    events: tuple[Event, ...] = ()
    rates: dict[str, Share] = field(default_factory=dict[str, float])
    profile: str = ""
    invariant: str = ""
    faults_end_s: NotNegative = 20.0
    period_s: Annotated[float, Meta(gt=0, description="seconds, more than 0")] = 1.0
    news_delay_s: NotNegative = 0.1
    config: str = ""
    order: Natural | None = None
    version: Version = VERSION

    @property
    def order_seed(self) -> int:
        """Return the seed that decides the order in which tasks run."""
        return self.seed if self.order is None else self.order


def read_script(path: Path) -> Script:
    """Read a storm. Raises ConfigError, which names the file and `events[i].key`, for a file that cannot be read or is
    not a storm.
    """
    script, place = read_events(path, Script)
    check_script(script, place)
    return script


AnyScript = TypeVar("AnyScript", bound=Struct)


def read_events(path: Path, form: type[AnyScript]) -> tuple[AnyScript, ValuePlace]:
    """Read a storm of that form, whose events are not checked yet, and its place. Raises ConfigError."""
    source = str(path)
    try:
        found: object = msgspec.json.decode(read_bytes(path))
    except OSError as error:
        raise ConfigError(unreadable(error), source=source) from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"not JSON: {error}", source=source) from error
    place = ValuePlace(Document(source, None))
    if not is_mapping(found):
        raise place.wrong("a storm: a mapping with seed and events", found)
    _check_version(place.at("version"), found.get("version", VERSION))
    script = shaped(place, {**found, "events": ()}, form)
    each = enumerate(sequence(place.at("events"), found.get("events")))
    events = tuple(shaped(place.at("events").at(index), event, Event) for index, event in each)
    return msgspec.structs.replace(script, events=events), place


def write_script(script: Struct, path: Path) -> None:
    """Write the script in JSON, one key a line, for people to read and change; the version is always written."""
    demand_output(path)
    written = {"version": VERSION} | msgspec.to_builtins(script)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(written), indent=1) + b"\n")


def _check_version(place: ValuePlace, found: object) -> None:
    checked: Any = Version
    if shaped(place, found, checked) > VERSION:
        raise place.error(ConfigError, f"version {found}, this release knows {VERSION}")
