# SPDX-License-Identifier: Apache-2.0
"""Typed, frozen records of a scheduler.conf. Source: Volcano ``pkg/scheduler/conf/scheduler_conf.go``."""

from __future__ import annotations

from typing import Any

import msgspec

from pumice.config.pumice_arguments import PumiceArguments

__all__ = ["PluginOption", "PumiceArguments", "SchedulerConfig", "Tier"]


class PluginOption(msgspec.Struct, frozen=True):
    """One plugin in a tier. ``enabled``: by extension point (``JobOrder``), where it was set or defaulted."""

    name: str
    enabled: dict[str, bool] = {}
    arguments: dict[str, Any] = {}

    def is_enabled(self, point: str) -> bool:
        """Return whether the switch of an extension point is on; an unset one is off (Volcano's ``isEnabled``)."""
        return self.enabled.get(point, False)


class Tier(msgspec.Struct, frozen=True):
    """Plugins of equal standing, in order."""

    plugins: tuple[PluginOption, ...] = ()


class SchedulerConfig(msgspec.Struct, frozen=True):
    """A whole configuration. ``configurations`` are action arguments by action name; ``warnings`` what was ignored."""

    actions: tuple[str, ...]
    tiers: tuple[Tier, ...] = ()
    configurations: dict[str, dict[str, Any]] = {}
    metrics: dict[str, str] = {}
    pumice: PumiceArguments = PumiceArguments()
    warnings: tuple[str, ...] = ()

    def action_arguments(self, name: str) -> dict[str, Any]:
        """Return the arguments configured for an action; the first entry of its name counts."""
        return self.configurations.get(name, {})

    def plugin(self, name: str) -> PluginOption | None:
        """Return the first listing of a plugin, or None."""
        # A plugin may stand in several tiers: Volcano does not refuse that.
        return next((option for tier in self.tiers for option in tier.plugins if option.name == name), None)
