"""Fault profiles from a YAML file. A file may come from anybody: all of it is checked before the first storm."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from re import compile as pattern
from typing import Final

from msgspec import Struct, field

from pumice.actors.api_server.faults.strikes import KINDS
from pumice.config.errors import ConfigError, ConfigSyntaxError
from pumice.config.load import parse_scheduler_config, read_text
from pumice.config.read import Strictness, ValuePlace, known_entries, mapping, sequence, text
from pumice.config.yaml_tree import Document, read_documents
from pumice.core.actions import ACTIONS
from pumice.core.plugins import PLUGINS
from pumice.proof.storm.script.workload import DISTURBANCES

NAME: Final = pattern(r"\w[\w.-]{0,49}")
"""Names are joined by "+", and stand in the names of files."""
MOST: Final = 1000
"""So many disturbances of a kind: a storm lasts some seconds."""
NOWHERE: Final = ValuePlace(Document("", None))


class Profile(Struct, frozen=True):
    """`rates`: probability by kind of fault; `disturbances`: how many of each; `include`: profiles to start from.

    `varied`: the seed says how much of the rates a storm has, from nothing to all of them.
    Of simulated storms only: `claims`, the share of the jobs that claim devices or volumes; `shares`, of those that ask
    for shares of cards or NUMA cells; `config`, the scheduler configuration ("" is the stock one). `place`: where it
    stands, for errors (nowhere, once composed).
    """

    rates: dict[str, float] = field(default_factory=dict[str, float])
    disturbances: dict[str, float] = field(default_factory=dict[str, float])
    include: tuple[str, ...] = ()
    varied: bool = False
    claims: float = 0.0
    shares: float = 0.0
    config: str = ""
    place: ValuePlace = NOWHERE


KEYS: Final = tuple(key for key in Profile.__struct_fields__ if key != "place")


def read_profiles(path: Path) -> dict[str, Profile]:
    """By name; what they include is not looked up. Raises ConfigError with file, line, path, expected and found."""
    documents = read_documents(read_text(path), str(path))
    if len(documents) != 1:
        raise ConfigSyntaxError(f"expected one YAML document, was {len(documents)}", source=str(path))
    top = ValuePlace(documents[0])
    return {_name(top, name): _profile(top.at(name), found) for name, found in mapping(top, top.document.data).items()}


def _name(top: ValuePlace, name: str) -> str:
    if not NAME.fullmatch(name):
        raise top.at(name).wrong("a name of at most 50 letters, digits, - _ and .", name)
    return name


def _profile(place: ValuePlace, value: object) -> Profile:
    found = known_entries(place, value, KEYS, Strictness())
    includes = enumerate(sequence(place.at("include"), found.get("include")))
    return Profile(
        rates=_numbers(place.at("rates"), found.get("rates"), KINDS, "fault", _share),
        disturbances=_numbers(
            place.at("disturbances"), found.get("disturbances"), DISTURBANCES, "disturbance", _amount
        ),
        include=tuple(text(place.at("include").at(index), name) for index, name in includes),
        varied=_switch(place.at("varied"), found.get("varied", False)),
        claims=_share(place.at("claims"), found.get("claims", 0.0)),
        shares=_share(place.at("shares"), found.get("shares", 0.0)),
        config=_config(place.at("config"), found.get("config")),
        place=place,
    )


def _numbers(
    place: ValuePlace, value: object, known: Collection[str], what: str, read: Callable[[ValuePlace, object], float]
) -> dict[str, float]:
    found = known_entries(place, value, known, Strictness(), what)
    return {name: read(place.at(name), number) for name, number in found.items()}


def _share(place: ValuePlace, value: object) -> float:
    return _number(place, value, 1, "a share from 0 to 1")


def _amount(place: ValuePlace, value: object) -> float:
    return _number(place, value, MOST, f"a number from 0 to {MOST}")


def _number(place: ValuePlace, value: object, most: float, expected: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= most:
        raise place.wrong(expected, value)
    return float(value)


def _switch(place: ValuePlace, value: object) -> bool:
    if not isinstance(value, bool):
        raise place.wrong("true or false", value)
    return value


def _config(place: ValuePlace, value: object) -> str:
    """The text of a configuration that loads."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise place.wrong("the text of a scheduler.conf", value)
    source = place.document.source
    try:
        parse_scheduler_config(value, source=source, built_plugins=PLUGINS, built_actions=ACTIONS)
    except ConfigError as error:
        literal = error.line and place.path in place.document.literals
        line = place.line + (error.line if literal else 0)
        path = ".".join(filter(None, (place.dotted, error.path)))
        raise ConfigError(error.problem, source=source, line=line, path=path) from error
    return value
