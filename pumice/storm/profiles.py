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
    """`rates`: probability by kind of fault; `disturbances`: how many of each; `include`: profiles to start from.

    `varied`: the seed says how much of the rates a storm has, from nothing to all of them.
    Of simulated storms only: `claims`, the share of the jobs that claim devices or volumes; `config`, the scheduler
    configuration ("" is the stock one).
    """

    rates: dict[str, float] = field(default_factory=dict[str, float])
    disturbances: dict[str, float] = field(default_factory=dict[str, float])
    include: tuple[str, ...] = ()
    varied: bool = False
    claims: float = 0.0
    config: str = ""


@cache
def profiles() -> dict[str, Profile]:
    """All of them by name."""
    return msgspec.yaml.decode(FILE.read_bytes(), type=dict[str, Profile])


def profile(names: str) -> Profile:
    """One profile, or several joined by "+": of each number the greatest. ConfigError for an unknown name."""
    found = [_whole(name.strip()) for name in names.split("+")]
    whole = _together(found)
    if unknown := sorted(whole.rates.keys() - KINDS):
        raise ConfigError(f"{FILE.name}: unknown fault {unknown[0]!r}")
    return whole


def _whole(name: str) -> Profile:
    chosen = profiles().get(name)
    if chosen is None:
        raise ConfigError(f"unknown fault profile {name!r}; known: {', '.join(profiles())}")
    basis = _together([_whole(each) for each in chosen.include])
    rates, disturbances = basis.rates | chosen.rates, basis.disturbances | chosen.disturbances
    claims, config = max(basis.claims, chosen.claims), chosen.config or basis.config
    return Profile(rates, disturbances, varied=chosen.varied, claims=claims, config=config)


def _together(profiles: list[Profile]) -> Profile:
    """Of each number the greatest, and the last configuration."""
    configs = [each.config for each in profiles if each.config]
    rates, disturbances = [each.rates for each in profiles], [each.disturbances for each in profiles]
    claims = max((each.claims for each in profiles), default=0.0)
    varied, config = any(each.varied for each in profiles), configs[-1] if configs else ""
    return Profile(_greatest(rates), _greatest(disturbances), varied=varied, claims=claims, config=config)


def _greatest(tables: list[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for table in tables for name in table)
    return {name: max(table.get(name, 0.0) for table in tables) for name in names}
