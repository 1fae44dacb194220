"""Named fault profiles, from `profiles.yaml` beside this file."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from actors.api.faults import KINDS
from config.errors import ConfigError

FILE: Final = Path(__file__).with_name("profiles.yaml")


class Profile(Struct, frozen=True, forbid_unknown_fields=True):
    """`rates`: probability by kind of fault; `disturbances`: how many of each; `include`: profiles to start from."""

    rates: dict[str, float] = field(default_factory=dict[str, float])
    disturbances: dict[str, float] = field(default_factory=dict[str, float])
    include: tuple[str, ...] = ()


@cache
def profiles() -> dict[str, Profile]:
    """All of them by name."""
    return msgspec.yaml.decode(FILE.read_bytes(), type=dict[str, Profile])


def profile(names: str) -> Profile:
    """One profile, or several joined by "+": of each number the greatest. ConfigError for an unknown name."""
    found = [_whole(name.strip()) for name in names.split("+")]
    whole = Profile(_greatest([each.rates for each in found]), _greatest([each.disturbances for each in found]))
    if unknown := sorted(whole.rates.keys() - KINDS):
        raise ConfigError(f"{FILE.name}: unknown fault {unknown[0]!r}")
    return whole


def _whole(name: str) -> Profile:
    chosen = profiles().get(name)
    if chosen is None:
        raise ConfigError(f"unknown fault profile {name!r}; known: {', '.join(profiles())}")
    included = [_whole(each) for each in chosen.include]
    rates = _greatest([each.rates for each in included]) | chosen.rates
    return Profile(rates, _greatest([each.disturbances for each in included]) | chosen.disturbances)


def _greatest(tables: list[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for table in tables for name in table)
    return {name: max(table.get(name, 0.0) for table in tables) for name in names}
