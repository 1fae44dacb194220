"""Changes about what lets a job in before any of its pods is placed: how much more than it has the cluster admits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from pumice.config.arguments import Arguments
from pumice.config.schema import PluginOption, SchedulerConfig, Tier
from pumice.core.plugins.overcommit import DEFAULT_FACTOR, FACTOR_KEY
from pumice.questions.explain.advice.changes import Change, ChangeFamily

OVERCOMMIT: Final = "overcommit"
STEPS: Final = 100
"""The factor is raised by a tenth at a time, so often."""


def about_overcommit(config: SchedulerConfig) -> Iterator[ChangeFamily]:
    """A greater factor, where the plugin is asked at all."""
    option = config.plugin(OVERCOMMIT)
    if option is None:
        return
    given = Arguments(OVERCOMMIT, option.arguments).get_float(FACTOR_KEY, DEFAULT_FACTOR)
    factor = given if given >= 1 else DEFAULT_FACTOR

    def of(size: int) -> Change:
        greater = round(factor + size / 10, 3)
        words = f"{OVERCOMMIT}: {FACTOR_KEY} {greater:g} instead of {factor:g}"
        return Change(words, config=lambda before: _with_factor(before, greater), amount=greater / factor - 1)

    yield ChangeFamily(2, STEPS, of)


def _with_factor(config: SchedulerConfig, factor: float) -> SchedulerConfig:
    def option(one: PluginOption) -> PluginOption:
        if one.name != OVERCOMMIT:
            return one
        return msgspec.structs.replace(one, arguments={**one.arguments, FACTOR_KEY: factor})

    tiers = tuple(Tier(tuple(map(option, tier.plugins))) for tier in config.tiers)
    return msgspec.structs.replace(config, tiers=tiers)
