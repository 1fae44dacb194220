# SPDX-License-Identifier: Apache-2.0
"""Fault profiles from a YAML file. A file may come from another person: all of it is checked before the first storm."""

from __future__ import annotations

from pathlib import Path
from re import compile as pattern
from typing import Annotated, Final

from msgspec import Meta, Struct, field
from msgspec.structs import asdict

from pumice.actors.api_server.faults.strikes import KINDS
from pumice.config.errors import ConfigError, ConfigSyntaxError
from pumice.config.load import read_text
from pumice.config.read import ValuePlace, mapping, shaped
from pumice.config.yaml_tree import Document, read_documents
from pumice.core.configuration import parse_scheduler_config
from pumice.proof.storm.script.workload import DISTURBANCES

NAME: Final = pattern(r"\w[\w.-]{0,49}")
"""Names are joined by "+", and stand in the names of files."""
MOST: Final = 1000
"""Limit of disturbances of a kind: a storm lasts some seconds."""
NOWHERE: Final = ValuePlace(Document("", None))


Share = Annotated[float, Meta(ge=0, le=1, description="a share from 0 to 1")]
Amount = Annotated[float, Meta(ge=0, le=MOST, description=f"a number from 0 to {MOST}")]
Config = Annotated[str, Meta(description="the text of a scheduler.conf")]


class WrittenProfile(Struct, frozen=True, forbid_unknown_fields=True):
    """A profile in the form of a file.

    `rates`: probability by kind of fault; `disturbances`: how many of each; `include`: profiles to start from.
    `varied`: the seed says how much of the rates a storm has, from nothing to all of them.
    Of simulated storms only: `claims`, the share of the jobs that claim devices or volumes; `shares`, of those that ask
    for shares of cards or NUMA cells; `config`, the scheduler configuration ("" is the stock one).
    """

    rates: dict[str, Share] = field(default_factory=dict[str, float])
    disturbances: dict[str, Amount] = field(default_factory=dict[str, float])
    include: tuple[str, ...] = ()
    varied: bool = False
    claims: Share = 0.0
    shares: Share = 0.0
    config: Config = ""


class Profile(WrittenProfile, frozen=True):
    """A profile. `place`: its place in a file, for errors (none, once composed)."""

    place: ValuePlace = NOWHERE


def read_profiles(path: Path) -> dict[str, Profile]:
    """Read the profiles by name, without their includes. Raises ConfigError with file, line, path, expected and
    found.
    """
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
    said = {key: each for key, each in mapping(place, value).items() if each is not None}
    found = shaped(place, said, WrittenProfile)
    for what, key, known in (("fault", "rates", KINDS), ("disturbance", "disturbances", DISTURBANCES)):
        for name in getattr(found, key):
            if name not in known:
                raise place.at(key).at(name).unknown(what, name, known)
    _check_config(place.at("config"), found.config)
    return Profile(**asdict(found), place=place)


def _check_config(place: ValuePlace, text: str) -> None:
    source = place.document.source
    if not text:
        return
    try:
        parse_scheduler_config(text, source=source)
    except ConfigError as error:
        literal = error.line and place.path in place.document.literals
        line = place.line + (error.line if literal else 0)
        path = ".".join(filter(None, (place.dotted, error.path)))
        raise ConfigError(error.problem, source=source, line=line, path=path) from error
