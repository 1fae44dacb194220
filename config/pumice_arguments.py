# SPDX-License-Identifier: Apache-2.0
"""Pumice's own settings inside a scheduler.conf: ``configurations: [{name: pumice, arguments: {...}}]``.

The record is the schema: key, type, range, default and description of a setting stand at its field; reading and the
table in docs/reference/settings.md follow from it.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, field

from pumice.config.durations import parse_duration
from pumice.config.errors import NotBuiltError, RemovedSettingError
from pumice.config.fixes import BUILT_FIXES, KNOWN_FIXES
from pumice.config.read import Strictness, ValuePlace, known_entries, mapping
from pumice.config.time_zones import UTC, time_zone

Count = Annotated[int, Meta(ge=1, le=1024, title="an integer from 1 to 1024")]
Percent = Annotated[int, Meta(ge=0, le=100, title="an integer from 0 to 100")]
Whole = Annotated[int, Meta(ge=0, le=2**31 - 1, title="an integer of at least 0")]
Seconds = Annotated[float, Meta(ge=0.001, le=3600, title="a duration from 1ms to 1h, such as 100ms or 1.5s")]
Ties = Annotated[Literal["documented", "hash"], Meta(title="documented or hash")]
Zone = Annotated[str, Meta(title="the IANA name of a time zone, such as Europe/Berlin")]
Names = Annotated[tuple[str, ...], Meta(title="a list of names")]


class PumiceArguments(msgspec.Struct, frozen=True, kw_only=True):
    """Pumice's settings of one configuration; durations in seconds (the YAML has Go durations)."""

    ties: Annotated[
        Ties, Meta(description="What decides among equals: the documented order, or a hash of seed, cycle and task.")
    ] = "documented"
    fix: Annotated[Names, Meta(description="Defects of the reference to mend, by name.")] = ()
    schedule_period_s: Annotated[
        Seconds, Meta(description="Least time between the starts of two cycles.", extra={"default": "100ms"})
    ] = field(default=0.1, name="schedulePeriod")
    percentage_of_nodes_to_find: Annotated[
        Percent,
        Meta(
            description="Share of the nodes at which the search for feasible ones stops; 0: Volcano's adaptive share."
        ),
    ] = field(default=100, name="percentageOfNodesToFind")
    minimum_feasible_nodes: Annotated[
        Whole, Meta(description="Feasible nodes that are sought at least; smaller clusters are searched whole.")
    ] = field(default=100, name="minimumFeasibleNodes")
    minimum_percentage_of_nodes_to_find: Annotated[
        Percent, Meta(description="The adaptive share never falls below this.")
    ] = field(default=5, name="minimumPercentageOfNodesToFind")
    ignored_provisioners: Annotated[
        Names,
        Meta(
            description="Provisioners whose volumes are not counted as a resource (Volcano's --ignored-provisioners), "
            "beside rancher.io/local-path and hostpath.csi.k8s.io."
        ),
    ] = field(default=(), name="ignoredProvisioners")
    time_zone: Annotated[
        Zone,
        Meta(description="Whose clock the hours of tdm's revocable zones are read by; Volcano's own image has UTC."),
    ] = field(default=UTC, name="timeZone")
    bind_workers: Annotated[Count, Meta(description="Bind workers.")] = field(default=4, name="bindWorkers")
    evict_workers: Annotated[Count, Meta(description="Evict workers.")] = field(default=2, name="evictWorkers")
    dry_run_workers: Annotated[
        Count, Meta(description="Dry-run workers of topology-aware preemption; results do not depend on it.")
    ] = field(default=4, name="dryRunWorkers")
    checkpoint_every: Annotated[
        Whole, Meta(description="Journal records between two checkpoints, taken in the background; 0: none.")
    ] = field(default=50_000, name="checkpointEvery")


DEFAULT: Final = PumiceArguments()

GONE: Final = {"dryRunProcesses": "dry runs in processes were slower than in one, so all are made in this one"}
"""Former settings, and why they were removed."""


class Setting(msgspec.Struct, frozen=True):
    """One setting as the documentation shows it."""

    key: str
    expected: str
    default: str
    description: str
    is_duration: bool


def settings() -> dict[str, Setting]:
    """Return every setting by its key, from the record's own annotations."""
    info = msgspec.inspect.type_info(PumiceArguments)
    assert isinstance(info, msgspec.inspect.StructType)
    return {item.encode_name: _setting(item) for item in info.fields}


def _setting(item: msgspec.inspect.Field) -> Setting:
    kind: Any = item.type  # inspect.Metadata: every field is annotated
    words: dict[str, str] = kind.extra_json_schema
    written: dict[str, str] = kind.extra or {}
    # `extra` has the default of durations, which the YAML writes otherwise than the record.
    default = written.get("default", "none" if item.default == () else str(item.default))
    return Setting(item.encode_name, words["title"], default, words["description"], item.name.endswith("_s"))


def read_pumice_arguments(place: ValuePlace, value: object, strictness: Strictness) -> PumiceArguments:
    """Return the settings of the configuration named pumice. Raises UnknownNameError, WrongTypeError, NotBuiltError."""
    known = settings()
    kept = _without_gone(place, mapping(place, value), strictness)
    # After the former settings, or these would be reported as unknown without the reason.
    given = known_entries(place, kept, known, strictness, "setting of pumice")
    plain = {key: _read(place.at(key), known[key], item) for key, item in given.items() if item is not None}
    if "fix" in plain:
        plain["fix"] = _usable_fixes(place.at("fix"), plain["fix"], strictness)
    return msgspec.convert(plain, PumiceArguments)


def _without_gone(place: ValuePlace, given: dict[str, Any], strictness: Strictness) -> dict[str, Any]:
    for key in GONE.keys() & given.keys():
        strictness.refuse(place.at(key).error(RemovedSettingError, f"this setting is gone ({GONE[key]}): remove it"))
    return {key: item for key, item in given.items() if key not in GONE}


def _read(place: ValuePlace, setting: Setting, value: object) -> Any:
    """Return one value, converted alone so that the error can name it."""
    try:
        plain = _seconds(value) if setting.is_duration else value
        # For msgspec a zone is any text. Of other settings this looks at the default zone, which exists.
        time_zone(msgspec.convert({setting.key: plain}, PumiceArguments).time_zone)
    except ValueError as error:  # msgspec's ValidationError is one
        raise place.wrong(setting.expected, value) from error
    return plain


def _seconds(value: object) -> float:
    if not isinstance(value, str):
        raise ValueError("a duration is a text")
    return parse_duration(value)


def _usable_fixes(place: ValuePlace, names: list[str], strictness: Strictness) -> list[str]:
    usable: list[str] = []
    for index, name in enumerate(names):
        here = place.at(index)
        if name in BUILT_FIXES:
            usable.append(name)
        elif name in KNOWN_FIXES:
            strictness.refuse(here.error(NotBuiltError, f"the fix {name!r} is not supported yet"))
        else:
            strictness.refuse(here.unknown("fix", name, KNOWN_FIXES))
    return usable
