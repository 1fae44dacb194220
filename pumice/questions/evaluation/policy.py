# SPDX-License-Identifier: Apache-2.0
"""A policy under evaluation: a scheduler.conf, settings laid over it, and plugins as Python source."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from pumice.config.load import default_text
from pumice.core.objects.metadata import Object, is_mapping
from pumice.core.plugins import PLUGINS
from pumice.errors import InputError
from pumice.load.source import read_text
from pumice.plugins.loader import from_sources, install
from pumice.questions.evaluation.edited import EditedConfig
from pumice.questions.evaluation.kept import content_key
from pumice.yaml_text import dump_yaml


class Policy(Struct, frozen=True, forbid_unknown_fields=True):
    """A policy. `config`: the text of a scheduler.conf ("": the stock one); `actions` stands in place of its own,
    `arguments` (by `PLUGIN.ARGUMENT`, as `binpack.binpack.weight`) over its own. `modules`: plugins as Python source by
    the name of the module; each has a table `PLUGINS`, as a module in a folder of plugins. `name` is for readers.
    """

    config: str = ""
    actions: str = ""
    arguments: Object = field(default_factory=Object)
    modules: dict[str, str] = field(default_factory=dict[str, str])
    name: str = ""

    @classmethod
    def of(cls, said: Policy | str | Path | Mapping[str, Any] | None) -> Policy:
        """Return the policy that is meant: a path or text of a scheduler.conf, its value, or None for the stock one.
        Raises InputError.
        """
        match said:
            case Policy():
                return said
            case None:
                return cls(name="stock")
            case str() if "\n" in said or ": " in said:
                return cls(said)
            case str() | Path():
                return cls(read_text(Path(said)), name=Path(said).stem)
            case _ if is_mapping(said):
                return cls(dump_yaml(dict(said)))
            case _:
                raise InputError(f"expected a policy, a path, a text or a mapping, was {said!r:.80}", path="policy")

    def with_modules(self, *files: str | Path) -> Policy:
        """Return the policy with these Python files as plugins. Raises InputError."""
        read = {Path(file).stem: read_text(Path(file)) for file in files}
        return replace(self, modules={**self.modules, **read})

    @property
    def text(self) -> str:
        """Return the text of the configuration, settings included. Raises ConfigError, InputError."""
        return configured(self.config or default_text(), self.actions, self.arguments)

    @property
    def written(self) -> Policy:
        """Return the same policy with its settings in its text: it is written once, for many runs. Raises ConfigError,
        InputError.
        """
        return replace(self, config=self.text, actions="", arguments={})

    @property
    def key(self) -> str:
        """Return the key of the content: equal for policies that decide alike by what they say."""
        return content_key(self.text, self.modules)


def configured(text: str, actions: str, arguments: Mapping[str, Any]) -> str:
    """Return a configuration with other actions ("": its own), and arguments by `PLUGIN.ARGUMENT` set wherever the
    plugin stands. Raises ConfigError for a plugin that it does not have.
    """
    if not arguments and not actions:
        return text
    edited = EditedConfig(text, "config")
    if actions:
        edited.set_actions(actions)
    for name, value in arguments.items():
        plugin, _, argument = name.partition(".")
        edited.set_argument(plugin, argument, value, f"arguments.{plugin}")
    return edited.text


@contextmanager
def installed(modules: Mapping[str, str]) -> Generator[None]:
    """Install plugins from sources for the block; those of the same names are back after it. Raises ConfigError."""
    before = dict(PLUGINS)
    try:
        install(from_sources(modules))
        yield
    finally:
        PLUGINS.clear()
        PLUGINS.update(before)
