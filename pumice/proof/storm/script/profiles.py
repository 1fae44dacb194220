# SPDX-License-Identifier: Apache-2.0
"""Named fault profiles, from `profiles.yaml` beside this file and from a file of the user's; they include each other
and compose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from pumice.actors.api_server.faults.strikes import POSSIBLE
from pumice.config.errors import ConfigError, ConflictError
from pumice.config.read import ValuePlace
from pumice.proof.storm.script.profile_file import NOWHERE, Profile, read_profiles

FILE: Final = Path(__file__).with_name("profiles.yaml")
PACKAGED: Final = (
    "calm", "binds", "evictions", "statuses", "claims", "watches", "nodes", "pods", "crashes", "journal", "clock",
    "turns", "cards", "cards-memory", "cards-number", "cards-mig", "cards-npu", "cards-chips", "cards-locks", "outside",
    "both", "half", "late", "live", "storm", "victims",
)  # fmt: skip
"""The names in `profiles.yaml`, for the help of commands, which read no file to be shown."""
ROUNDING: Final = 1e-9
DEEPEST: Final = 50
"""Limit of nested profiles."""


@cache
def profiles(own: Path | None = None) -> dict[str, Profile]:
    """Return the packaged profiles and those of a file, with their includes, by name. ConfigError for any error
    there.
    """
    known = read_profiles(FILE)
    if own is not None:
        mine = read_profiles(own)
        for name in mine.keys() & known.keys():
            raise mine[name].place.error(ConflictError, f"expected a name of its own, {name} is a packaged profile")
        known |= mine
    whole: dict[str, Profile] = {}
    for name in known:
        _include(name, known, whole, ())
    return {name: whole[name] for name in known}


def profile(names: str, own: Path | None = None) -> Profile:
    """Return one profile, or several joined by "+": of each number the greatest, and the one configuration that any
    has.

    `own`: a file with more of them. Raises ConfigError for unknown names, for two configurations, for faults that
    strike the same request with more than certainty, and for what `profiles` refuses.
    """
    known = profiles(own)
    parts = [name.strip() for name in names.split("+")]
    for name in parts:
        if name not in known:
            raise ConfigError(f"unknown fault profile {name!r}; known: {', '.join(known)}")
    whole = _together([known[name] for name in parts], NOWHERE, names)
    _check_sums(whole, NOWHERE, names)
    return whole


def _include(name: str, known: Mapping[str, Profile], whole: dict[str, Profile], trail: tuple[str, ...]) -> Profile:
    """Return the profile with its includes: its own values override theirs, but `varied` stays."""
    if name in whole:
        return whole[name]
    chosen = known[name]
    parts: list[Profile] = []
    for index, each in enumerate(chosen.include):
        _check_include(each, chosen.place.at("include").at(index), known, (*trail, name))
        parts.append(_include(each, known, whole, (*trail, name)))
    if chosen.config:
        parts = [msgspec.structs.replace(part, config=chosen.config) for part in parts]
    basis = _together(parts, chosen.place.at("include"), name)
    whole[name] = Profile(
        rates=basis.rates | chosen.rates,
        disturbances=basis.disturbances | chosen.disturbances,
        varied=chosen.varied or basis.varied,
        claims=max(basis.claims, chosen.claims),
        shares=max(basis.shares, chosen.shares),
        config=chosen.config or basis.config,
    )
    _check_sums(whole[name], chosen.place.at("rates"), name)
    return whole[name]


def _check_include(name: str, place: ValuePlace, known: Mapping[str, Profile], trail: tuple[str, ...]) -> None:
    if name not in known:
        raise place.unknown("profile", name, known)
    if name in trail:
        raise place.error(ConflictError, f"expected no circle, was {' > '.join((*trail, name))}")
    if len(trail) >= DEEPEST:
        raise place.error(ConflictError, f"expected at most {DEEPEST} profiles within each other")


def _check_sums(whole: Profile, place: ValuePlace, names: str) -> None:
    """Check the sums of rates: one throw of the dice decides about a request, so faults past certainty would never
    strike.
    """
    for sort, kinds in POSSIBLE.items():
        together = sum(whole.rates.get(kind, 0.0) for kind in kinds)
        if together > 1.0 + ROUNDING:
            summed = " + ".join(f"{kind} {whole.rates[kind]:g}" for kind in kinds if whole.rates.get(kind))
            problem = f"expected 1 at most for all that can strike one {sort}, was {together:g} in {names}: {summed}"
            raise place.error(ConflictError, problem)


def _together(parts: Sequence[Profile], place: ValuePlace, names: str) -> Profile:
    """Combine the profiles: the greatest of each number, and the one configuration."""
    configs = dict.fromkeys(each.config for each in parts if each.config)
    if len(configs) > 1:
        problem = f"expected one scheduler configuration, was {len(configs)} different ones in {names}"
        raise place.error(ConflictError, problem)
    return Profile(
        rates=_greatest([each.rates for each in parts]),
        disturbances=_greatest([each.disturbances for each in parts]),
        varied=any(each.varied for each in parts),
        claims=max((each.claims for each in parts), default=0.0),
        shares=max((each.shares for each in parts), default=0.0),
        config=next(iter(configs), ""),
    )


def _greatest(tables: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for table in tables for name in table)
    return {name: max(table.get(name, 0.0) for table in tables) for name in names}
