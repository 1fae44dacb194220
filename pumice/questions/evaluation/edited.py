# SPDX-License-Identifier: Apache-2.0
"""A scheduler.conf that is edited: settings are laid over it, and it is written again."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from pumice.config.errors import ConfigError
from pumice.config.unwrap import scheduler_document
from pumice.core.objects.metadata import Object, objects_in
from pumice.yaml_text import dump_yaml


class EditedConfig:
    """A configuration as plain data, read as the scheduler reads it (a ConfigMap around it is taken off).

    A plugin is changed in each tier that has it. A change of what the configuration does not have raises ConfigError
    with the `path` of the change. Values are judged when the text is read as a configuration.
    """

    def __init__(self, text: str, source: str) -> None:
        # The reader keeps its documents, and gives them to all readers of the same text.
        self._data: dict[str, Any] = deepcopy(scheduler_document(text, source).data)

    @property
    def text(self) -> str:
        """Return the configuration as it is now."""
        return dump_yaml(self._data)

    @property
    def plugins(self) -> list[str]:
        """Return the names of the plugins, each once, in their order."""
        return list(dict.fromkeys(str(option.get("name")) for option in self._options()))

    def _options(self) -> list[Object]:
        return [option for tier in objects_in(self._data, "tiers") for option in objects_in(tier, "plugins")]

    def demand(self, plugin: str, path: str) -> None:
        """Raise ConfigError if the configuration does not have a plugin."""
        self._options_of(plugin, path)

    def _options_of(self, plugin: str, path: str) -> list[Object]:
        found = [option for option in self._options() if option.get("name") == plugin]
        if not found:
            raise ConfigError(f"the configuration has no plugin {plugin!r}", path=path)
        return found

    def set_actions(self, actions: str) -> None:
        """Put other actions in place of its own."""
        self._data["actions"] = actions

    def set_argument(self, plugin: str, argument: str, value: object, path: str) -> None:
        """Set an argument of a plugin."""
        for option in self._options_of(plugin, path):
            option["arguments"] = {**(option.get("arguments") or {}), argument: value}

    def set_flag(self, plugin: str, flag: str, value: object, path: str) -> None:
        """Set a flag of a plugin, such as `enablePreemptable`."""
        for option in self._options_of(plugin, path):
            option[flag] = value

    def drop(self, plugin: str, path: str) -> None:
        """Take a plugin out of its tiers."""
        self.demand(plugin, path)
        for tier in objects_in(self._data, "tiers"):
            tier["plugins"] = [option for option in objects_in(tier, "plugins") if option.get("name") != plugin]

    def reorder(self, tier: int, names: Sequence[str], path: str) -> None:
        """Bring the plugins of a tier (the first is 0) into an order that names each of them."""
        tiers = objects_in(self._data, "tiers")
        if not 0 <= tier < len(tiers):
            raise ConfigError(f"the configuration has no tier {tier}: the first one is 0", path=path)
        plugins = objects_in(tiers[tier], "plugins")
        if sorted(str(option.get("name")) for option in plugins) != sorted(names):
            raise ConfigError(f"tier {tier} does not have just the plugins {', '.join(names)}", path=path)
        tiers[tier]["plugins"] = sorted(plugins, key=lambda option: names.index(str(option.get("name"))))
