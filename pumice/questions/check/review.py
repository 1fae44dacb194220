"""A configuration told: what its actions, plugins and flags will do, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pumice.config.argument_types import kind_of
from pumice.config.known import ACTION_ARGUMENTS, FLAGS, PLUGIN_ARGUMENTS, is_argument
from pumice.config.schema import PluginOption, SchedulerConfig
from pumice.questions.check import words
from pumice.questions.check.effects import is_ignored, without_effect
from pumice.questions.check.jobs import of_jobs
from pumice.questions.check.queues import of_queues

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


def review(config: SchedulerConfig, objects: Sequence[Plain] = ()) -> Review:
    """Tell it. `objects`: the queues, PodGroups, Jobs and JobFlows that it meets, where they are known."""
    actions = tuple(
        ActionTold(
            name, words.ACTIONS.get(name, USERS), _heeded(config.action_arguments(name), ACTION_ARGUMENTS.get(name))
        )
        for name in config.actions
    )
    plugins = tuple(
        PluginTold(number, option.name, words.does(option) or USERS, _flags(option), _of_plugin(option))
        for number, tier in enumerate(config.tiers)
        for option in tier.plugins
    )
    met = (*of_queues(config, objects), *of_jobs(config, objects))
    return Review(actions, plugins, (*config.warnings, *without_effect(config), *met))


def _of_plugin(option: PluginOption) -> Plain:
    return _heeded(option.arguments, PLUGIN_ARGUMENTS.get(option.name), option.name)


def _flags(option: PluginOption) -> tuple[FlagTold, ...]:
    heard = (flag for flag in FLAGS if words.listens(option, flag.point))
    told = ((flag, words.flag_does(option.name, flag.point)) for flag in heard)
    return tuple(FlagTold(flag.key, does, option.is_enabled(flag.point)) for flag, does in told)


def _heeded(arguments: Plain, known: tuple[str, ...] | None, plugin: str = "") -> Plain:
    """The arguments that are in force: of those that are known, with a value that is not passed over. `known` None: of
    a plugin that only its author knows.
    """
    if known is None:
        return arguments
    found = {name: value for name, value in arguments.items() if is_argument(name, known)}
    kinds = {name: kind_of(name) for name in found}
    right = {name: value for name, value in found.items() if (kind := kinds[name]) is None or kind.holds(value)}
    return {name: value for name, value in right.items() if not is_ignored(plugin, name, value)}
