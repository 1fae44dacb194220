# SPDX-License-Identifier: Apache-2.0
"""Reader of Volcano's scheduler.conf, plain or inside its ConfigMap. Source: ``pkg/scheduler/util.go``.

Volcano ignores what it does not know; here that is an error with file, line, path and the nearest known name. Lenient
loading ignores too, and says so.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.config import input_file
from pumice.config.arguments import argument_named
from pumice.config.errors import (
    ConfigError,
    ConfigSyntaxError,
    ConflictError,
    IgnoredFileError,
    WrongTypeError,
)
from pumice.config.known import (
    ACTION_ARGUMENTS,
    FLAGS,
    KNOWN_ACTIONS,
    METRICS_KEYS,
    PUMICE,
    Arguments,
    KnownPlugins,
)
from pumice.config.pumice_arguments import DEFAULT, PumiceArguments, read_pumice_arguments
from pumice.config.read import Strictness, ValuePlace, known_entries, mapping, sequence, switch, text
from pumice.config.rules import VERSION, under
from pumice.config.schema import PluginOption, SchedulerConfig, Tier
from pumice.config.unwrap import scheduler_document
from pumice.config.yaml_tree import Document

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_POINTS = {flag.key: flag.point for flag in FLAGS}
_DEFAULTS = {flag.point: True for flag in FLAGS if flag.on_by_default}
_TOP = ("actions", "tiers", "configurations", "metrics")
OFF: Final[tuple[Any, ...]] = (None, False, "0", "f", "F", "false", "False", "FALSE", "", [])
"""Values that switch an argument off, however they are written."""
_CONFLICT = (
    "proportion and drf with enableHierarchy conflict in one tier: both order queues and decide who may reclaim; "
    "drop one of them or turn enableHierarchy off"
)


BUILT_IN: Final = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
"""The configuration of a Volcano that ignored its first file (util.go, DefaultSchedulerConf); no file holds it."""
INSTEAD: Final = (
    "the whole file is ignored, as Volcano does, and Volcano's built-in default is in force (actions enqueue, "
    "allocate, backfill; plugins priority, gang, conformance, overcommit, drf, predicates, proportion, nodeorder)"
)


class ConfigReader:
    """Reads configurations that may name the actions of Volcano and the plugins of a table. `plugins` returns that
    table on each reading: users' plugins may come to it after this layer was set up.
    """

    def __init__(self, plugins: Callable[[], KnownPlugins]) -> None:
        self._plugins = plugins

    def parse(
        self, text: str, *, source: str, lenient: bool = False, rules: int = VERSION, drops_actions: bool = True
    ) -> SchedulerConfig:
        """Read a scheduler.conf or a ConfigMap with one; ``source`` names it in errors.

        ``lenient``: unknown names are left out with a warning. Raises ConfigError in any case for values of the wrong
        type. ``rules``: the version of the rules it is read by (`config.rules`); NewerVersionError when that is not
        known here. ``drops_actions``: lenient, an unknown action is left out, as texts of journals were read before;
        else it raises IgnoredFileError.
        """
        strictness = Strictness(lenient=lenient)
        place = ValuePlace(scheduler_document(text, source))
        loader = _Loader(self._plugins(), strictness, flags_default_on=True, parsed=False, drops_actions=drops_actions)
        return under(loader.config(place), rules)

    def parse_or_built_in(self, text: str, *, source: str, lenient: bool) -> tuple[SchedulerConfig, str]:
        """Return the configuration of a process that starts with the text, and that configuration's text: lenient,
        Volcano's built-in default where an action does not exist. Raises ConfigError.
        """
        try:
            return self.parse(text, source=source, lenient=lenient, drops_actions=False), text
        except IgnoredFileError as error:
            # Parsed as any other text: so its switches have the defaults of the loader, and a journal can hold it.
            built_in = self.parse(BUILT_IN, source=source, lenient=lenient)
            return msgspec.structs.replace(built_in, warnings=(f"{error}; {INSTEAD}",)), BUILT_IN

    def from_parsed(self, conf: dict[str, Any], flags_default_on: bool, *, source: str = "conf") -> SchedulerConfig:
        """Return a configuration that is already data, ``actions`` being a list (conformance cases).

        Unknown names warn. Where flags do not default to on, it was built by hand, past Volcano's loader and its
        conflict check: that is left out then.
        """
        strictness = Strictness(lenient=True)
        loader = _Loader(self._plugins(), strictness, flags_default_on=flags_default_on, parsed=True)
        return under(loader.config(ValuePlace(Document(source, conf))), VERSION)

    def load(self, path: Path | None, *, lenient: bool = False) -> SchedulerConfig:
        """Read a file; None: Volcano's stock configuration. Raises ConfigError, also for a file that cannot be read."""
        if path is None:
            return self.parse(default_text(), source="default.conf", lenient=lenient)
        return self.parse_or_built_in(read_text(path), source=str(path), lenient=lenient)[0]


def read_text(path: Path) -> str:
    """Return a configuration file's text. Raises ConfigError naming the file and the problem."""
    try:
        return input_file.read_text(path)
    except UnicodeDecodeError as error:
        raise ConfigSyntaxError(f"not UTF-8 text (byte {error.start})", source=str(path)) from error
    except OSError as error:
        raise ConfigError(input_file.unreadable(error), source=str(path)) from error


@cache
def default_text() -> str:
    """Return the text of Volcano's stock configuration."""
    return files("pumice.config").joinpath("default.conf").read_text(encoding="utf-8")


class _Loader:
    """One pass over one document."""

    def __init__(
        self,
        plugins: KnownPlugins,
        strictness: Strictness,
        *,
        flags_default_on: bool,
        parsed: bool,
        drops_actions: bool = True,
    ) -> None:
        self._drops_actions = drops_actions
        self._plugins = plugins
        sections = (plugin.sections for plugin in plugins.values())
        self._sections: dict[str, Arguments] = {name: each for one in sections for name, each in one.items()}
        self._strictness = strictness
        self._defaults = _DEFAULTS if flags_default_on else {}
        self._check_conflicts = flags_default_on
        self._parsed = parsed  # actions are a list already

    def config(self, place: ValuePlace) -> SchedulerConfig:
        top = known_entries(place, place.document.data, _TOP, self._strictness)
        actions = self._actions(place.at("actions"), top.get("actions"))
        tiers = self._tiers(place.at("tiers"), top.get("tiers"))
        configurations, pumice = self._configurations(place.at("configurations"), top.get("configurations"))
        metrics = self._metrics(place.at("metrics"), top.get("metrics"))
        return SchedulerConfig(actions, tiers, configurations, metrics, pumice, tuple(self._strictness.warnings))

    def _actions(self, place: ValuePlace, value: object) -> tuple[str, ...]:
        listed = sequence(place, value) if self._parsed else _comma_separated(place, value)
        return tuple(name for name in listed if self._is_usable(place, "action", name))

    def _is_usable(self, place: ValuePlace, what: str, name: str) -> bool:
        """Return whether an action or plugin can be used; refuse it when not."""
        known: Collection[str] = self._plugins if what == "plugin" else KNOWN_ACTIONS
        if name in known:
            return True
        error = place.unknown(what, name, known)
        if what == "action" and self._strictness.lenient and not self._drops_actions:
            raise place.error(IgnoredFileError, error.problem)
        self._strictness.refuse(error)
        return False

    def _tiers(self, place: ValuePlace, value: object) -> tuple[Tier, ...]:
        return tuple(self._tier(place.at(index), item) for index, item in enumerate(sequence(place, value)))

    def _tier(self, place: ValuePlace, value: object) -> Tier:
        entries = known_entries(place, value, ("plugins",), self._strictness)
        here = place.at("plugins")
        listed = enumerate(sequence(here, entries.get("plugins")))
        options = [option for index, item in listed if (option := self._plugin(here.at(index), item)) is not None]
        hierarchical = any(option.name == "drf" and option.is_enabled("Hierarchy") for option in options)
        # Volcano looks at each tier by itself: in two tiers both may stand (`pkg/scheduler/util.go`).
        if self._check_conflicts and hierarchical and any(option.name == "proportion" for option in options):
            raise place.error(ConflictError, _CONFLICT)
        return Tier(tuple(options))

    def _plugin(self, place: ValuePlace, value: object) -> PluginOption | None:
        entries = known_entries(place, value, ("name", "arguments", *_POINTS), self._strictness, "key or flag")
        name = text(place.at("name"), entries.pop("name", None))
        if not name:
            raise place.at("name").wrong("the name of a plugin", None)
        if not self._is_usable(place.at("name"), "plugin", name):
            return None
        plugin = self._plugins[name]
        arguments = self._arguments(place.at("arguments"), entries.pop("arguments", None), plugin.arguments)
        exclusive = [key for key in plugin.exclusive if arguments.get(key) not in OFF]
        if self._check_conflicts and len(exclusive) > 1:
            problem = f"Volcano does not start with both {exclusive[0]} and {exclusive[1]}: leave one of them out"
            raise place.at("arguments").error(ConflictError, problem)
        said = {_POINTS[key]: switch(place.at(key), item) for key, item in entries.items()}
        # A switch that is null is a nil pointer for Volcano, as one that is left out (`plugins/defaults.go`).
        enabled = self._defaults | {point: on for point, on in said.items() if on is not None}
        return PluginOption(name, enabled, arguments)

    def _arguments(self, place: ValuePlace, value: object, known: Arguments | None) -> dict[str, Any]:
        """Return the arguments of a plugin or action; ``known`` None for one that only its author knows."""
        found = mapping(place, value)
        if known is None:
            return found
        for key, item in found.items():
            argument = argument_named(key, known)
            if argument is None:
                self._strictness.refuse(place.at(key).unknown("argument", key, [each.name for each in known]))
            elif not argument.kind.holds(item):
                self._strictness.pass_over(place.at(key).wrong(argument.kind.expected, item))
        return found

    def _configurations(self, place: ValuePlace, value: object) -> tuple[dict[str, dict[str, Any]], PumiceArguments]:
        """Return action arguments by name, and Pumice's own; of two entries of one name the first counts, as in
        Volcano.
        """
        found: dict[str, dict[str, Any]] = {}
        pumice = DEFAULT
        for index, item in enumerate(sequence(place, value)):
            here = place.at(index)
            entries = known_entries(here, item, ("name", "arguments"), self._strictness)
            name = text(here.at("name"), entries.get("name"))
            arguments, values = here.at("arguments"), entries.get("arguments")
            if name in found:
                problem = f"{name!r} is configured twice, the first counts"
                self._strictness.refuse(here.at("name").error(ConflictError, problem))
            elif name == PUMICE:
                pumice = read_pumice_arguments(arguments, values, self._strictness)
                found[name] = mapping(arguments, values)
            # Plugins have sections here as well, under names of their own (`KnownPlugin.sections`).
            elif (known := ACTION_ARGUMENTS.get(name, self._sections.get(name))) is not None:
                found[name] = self._arguments(arguments, values, known)
            else:
                self._strictness.refuse(here.at("name").unknown("action", name, (*KNOWN_ACTIONS, PUMICE)))
        return found, pumice

    def _metrics(self, place: ValuePlace, value: object) -> dict[str, str]:
        entries = known_entries(place, value, METRICS_KEYS, self._strictness)
        return {key: text(place.at(key), item) for key, item in entries.items()}


def _comma_separated(place: ValuePlace, value: object) -> list[str]:
    """Return ``actions`` as Volcano splits it: an empty name is an error, so an empty text is one too."""
    try:
        names = [name.strip() for name in text(place, value).split(",")]
    # One message for all that is not a list of names: `text` would only ask for a text.
    except WrongTypeError:
        names = [""]
    if "" in names:
        raise place.wrong('action names with commas between: "enqueue, allocate, backfill"', value)
    return names
