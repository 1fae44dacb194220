"""A configuration told: what its actions, plugins and flags will do, in the order in which they are asked."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from config.known import FLAGS
from config.schema import PluginOption, SchedulerConfig
from pumice.check import words
from pumice.check.effects import without_effect

Plain = dict[str, Any]
USERS = "a plugin of one's own"


@dataclass(frozen=True)
class ActionTold:
    """One action: what it does, with which arguments."""

    name: str
    does: str
    arguments: Plain


@dataclass(frozen=True)
class FlagTold:
    """One flag of a plugin, as it is written in the file: what the plugin says there, if it may."""

    key: str
    does: str
    on: bool


@dataclass(frozen=True)
class PluginTold:
    """One plugin of a tier (from 0)."""

    tier: int
    name: str
    does: str
    flags: tuple[FlagTold, ...]
    arguments: Plain


@dataclass(frozen=True)
class Review:
    """The whole; `warnings`: what is without effect, or not what it seems."""

    actions: tuple[ActionTold, ...]
    plugins: tuple[PluginTold, ...]
    warnings: tuple[str, ...]

    def to_dict(self) -> Plain:
        """For `pumice check -o json`."""
        return asdict(self)


def review(config: SchedulerConfig) -> Review:
    """Tell it."""
    actions = tuple(
        ActionTold(name, words.ACTIONS.get(name, USERS), config.action_arguments(name)) for name in config.actions
    )
    plugins = tuple(
        PluginTold(number, option.name, words.does(option) or USERS, _flags(option), option.arguments)
        for number, tier in enumerate(config.tiers)
        for option in tier.plugins
    )
    return Review(actions, plugins, (*config.warnings, *without_effect(config)))


def _flags(option: PluginOption) -> tuple[FlagTold, ...]:
    heard = (flag for flag in FLAGS if words.listens(option, flag.point))
    return tuple(FlagTold(flag.key, words.FLAGS[flag.point], option.is_enabled(flag.point)) for flag in heard)
