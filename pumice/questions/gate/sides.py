# SPDX-License-Identifier: Apache-2.0
"""A comparison has two sides: a cluster's policy as a folder, or as a git revision has the folder.

Policy is every object of the folder: the scheduler's configuration (a file with `actions` or `tiers`, or a ConfigMap
that holds one), queues, priority classes, HyperNodes, quotas, budgets, limit ranges, and nodes, whose labels and taints
the workload's nodes of the same names get.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from pumice.cluster.api.kinds import KINDS, MAKERS
from pumice.config.errors import ConfigError
from pumice.config.load import default_text
from pumice.config.schema import SchedulerConfig
from pumice.config.yaml_values import bounded_events
from pumice.core.configuration import parse_or_built_in, parse_scheduler_config
from pumice.core.objects.metadata import Object, is_mapping, section
from pumice.errors import InputError
from pumice.load.manifests import Loaded, load_text
from pumice.load.source import SUFFIXES, read_text
from pumice.questions.whatif.ask import named

CONF: Final = ".conf"
CONFIG_MAP: Final = "ConfigMap"
NODE: Final = "Node"
CONFIGURATION: Final = frozenset(("actions", "tiers"))
OF_THE_GATE: Final = frozenset(("workloads", "cases", "then"))
"""Keys of policy files of the gate and of golden cases."""
WORK: Final = frozenset(("Pod", "PodGroup", *(KINDS[key].kind for key in MAKERS)))


@dataclass(frozen=True, slots=True)
class Side:
    """Contains one policy: the text of its configuration and its file, the configuration as Volcano reads it, and the
    other objects. `problem`: why a strict reader refuses the configuration, "" if it does not. `renamed`: queues and
    classes by their names in the workloads, where this policy calls them otherwise.
    """

    name: str
    config: str
    source: str
    settings: SchedulerConfig
    objects: tuple[Object, ...] = ()
    problem: str = ""
    skipped: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])

    def called(self, text: str) -> str:
        """Return a text with the names that the workloads give to queues and classes."""
        for old, new in self.renamed.items():
            text = re.sub(rf"(?<![\w-]){re.escape(new)}(?![\w-])", old, text)
        return text

    def kinds(self) -> frozenset[str]:
        """Return the kinds that the policy states; it states labels and taints of nodes only."""
        return frozenset(obj["kind"] for obj in self.objects if obj["kind"] != NODE)


class PolicySides(NamedTuple):
    """Contains both policies of a comparison."""

    base: Side
    head: Side

    def stated(self) -> frozenset[str]:
        """Return the kinds that either side states: such objects of a workload are left out."""
        return self.base.kinds() | self.head.kinds()


@dataclass(slots=True)
class _Found:
    configs: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    loaded: Loaded = field(default_factory=Loaded)


def read_side(name: str, folder: Path, shown: str = "") -> Side:
    """Return the policy of a folder; `shown`: its name in messages. Raises InputError."""
    if not folder.is_dir():
        raise InputError("no such folder, and no such git revision", source=shown or str(folder))
    found = _Found()
    for file in files_of(folder):
        _take(found, file, f"{shown}/{file.relative_to(folder)}" if shown else str(file))
    for unusable in found.loaded.problems:
        raise unusable
    if not found.configs and not found.loaded.objects:
        raise InputError("there is no policy in this folder: no scheduler.conf, no queues", source=shown or str(folder))
    if len(found.configs) > 1:
        several = ", ".join(source for source, _ in found.configs)
        raise InputError(f"expected one scheduler configuration, found {len(found.configs)}: {several}", source=name)
    source, text = found.configs[0] if found.configs else ("default.conf", default_text())
    settings, config, problem = _settings(text, source)
    objects = tuple(obj for obj in found.loaded.objects if obj["kind"] not in WORK)
    work = [f"{named(obj)}: left out: it is work, not policy" for obj in found.loaded.objects if obj["kind"] in WORK]
    return Side(name, config, source, settings, objects, problem, (*found.loaded.skipped, *work))


def files_of(folder: Path) -> list[Path]:
    """Return the files of a folder that may contain policy: all but hidden files."""
    return sorted(
        each
        for each in folder.rglob("*")
        if (each.suffix == CONF or each.name.endswith(SUFFIXES))
        and not any(part.startswith(".") for part in each.relative_to(folder).parts)
        and each.is_file()
    )


def _take(found: _Found, file: Path, source: str) -> None:
    text = read_text(file)
    if not text.strip():
        return
    keys = frozenset[str]() if file.suffix == CONF else _keys(text)
    if file.suffix == CONF or keys & CONFIGURATION:
        found.configs.append((source, text))
        return
    if keys & OF_THE_GATE:
        return  # a policy that is the whole repository has the gate's own files beside it
    before = len(found.loaded.objects)
    load_text(text, source, found.loaded)
    fresh = found.loaded.objects[before:]
    found.loaded.objects[before:] = [obj for obj in fresh if not _holds_configuration(obj)]
    found.configs += [(source, _text_of(obj)) for obj in fresh if _holds_configuration(obj)]


def _keys(text: str) -> frozenset[str]:
    """Return the keys of a file that is not a manifest."""
    try:
        list(bounded_events(text, yaml.SafeLoader))
        said: Any = next(iter(yaml.safe_load_all(text)), None)
    except yaml.YAMLError:
        return frozenset()  # the reader of manifests says what is wrong
    return frozenset(map(str, said)) if is_mapping(said) and "kind" not in said else frozenset()


def _holds_configuration(obj: Object) -> bool:
    return obj["kind"] == CONFIG_MAP and any(str(key).endswith(CONF) for key in section(obj, "data"))


def _text_of(obj: Object) -> str:
    return next(str(value) for key, value in section(obj, "data").items() if str(key).endswith(CONF))


def _settings(text: str, source: str) -> tuple[SchedulerConfig, str, str]:
    """Return the configuration as Volcano has it, its text, and why a strict reader refuses it. Raises ConfigError for
    one that Volcano refuses, too."""
    try:
        settings = parse_scheduler_config(text, source=source)
    except ConfigError as error:
        lenient, config = parse_or_built_in(text, source=source, lenient=True)
        return lenient, config, str(error)
    return settings, text, ""
