# SPDX-License-Identifier: Apache-2.0
"""A specification of `pumice tune`, read from YAML.

    config: scheduler.conf
    workloads: [{input: [nodes.yaml, "csv:monday.csv"]}]
    held_out: [{input: [nodes.yaml, "csv:tuesday.csv"]}]    # the search never sees these
    objective: minimise wait.mean                           # or several
    expect: [{measure: "wait.max[name=urgent-*]", op: <=, value: 10s}]
    seeds: 3
    trials: 100
    placement: false                                        # true: one cycle places everything, no time passes
    space:
      weights: [0, 10]                                      # every weight of its plugins, by their records
      arguments.overcommit.overcommit-factor: {low: 1.1, high: 2, log: true}
      flags.drf.enablePreemptable: [true, false]
      plugins.drf: [true, false]                            # with it, or without
      order.0: [[priority, gang, conformance], [gang, priority, conformance]]    # of a tier's plugins
      actions: ["enqueue, allocate", "enqueue, allocate, backfill"]

Paths are relative to the file. A list is a choice, `low` and `high` a range: of whole numbers if both are whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta, Struct, field

from pumice.config.arguments import INTEGER, NUMBER
from pumice.config.errors import ConfigError
from pumice.config.load import default_text
from pumice.config.read import ValuePlace, mapping, read_yaml, shaped
from pumice.config.scalars import resolve_true_false
from pumice.core.configuration import parse_scheduler_config
from pumice.core.objects.metadata import is_list, is_mapping
from pumice.core.plugins import record_of
from pumice.load.source import read_text
from pumice.questions.evaluation.edited import EditedConfig
from pumice.questions.evaluation.workload import EvaluatedWorkload
from pumice.questions.gate.policy import Noise, WrittenExpectation, WrittenWorkload, workload_of

WEIGHTS: Final = "weights"
ARGUMENTS, FLAGS, PLUGINS, ORDER, ACTIONS = "arguments.", "flags.", "plugins.", "order.", "actions"
Count = Annotated[int, Meta(ge=1, le=100_000, description="a number from 1 to 100000")]


class SearchRange(Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers from `low` to `high`, `log`: evenly by their logarithms."""

    low: float
    high: float
    log: bool = False

    @property
    def is_whole(self) -> bool:
        """Return whether whole numbers are meant."""
        return self.low == int(self.low) and self.high == int(self.high)

    @property
    def ends(self) -> tuple[float, float]:
        """Return both ends, as whole numbers where such are meant."""
        return (int(self.low), int(self.high)) if self.is_whole else (self.low, self.high)


Choices = tuple[Any, ...]
Dimension = SearchRange | Choices


class _Written(Struct, forbid_unknown_fields=True):
    config: str = ""
    workloads: list[WrittenWorkload] = field(default_factory=list[WrittenWorkload])
    held_out: list[WrittenWorkload] = field(default_factory=list[WrittenWorkload])
    objective: list[str] | str = "minimise wait.mean"
    expect: list[WrittenExpectation] = field(default_factory=list[WrittenExpectation])
    seeds: Count = 1
    trials: Count = 50
    noise: Noise = field(default_factory=Noise)
    placement: bool = False
    space: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class TuneSpec:
    """A search. `config`: the text to begin with; `space`: by name, in the order of the file."""

    config: str
    workloads: tuple[EvaluatedWorkload, ...]
    held_out: tuple[EvaluatedWorkload, ...]
    objectives: tuple[str, ...]
    expect: tuple[WrittenExpectation, ...]
    seeds: int
    trials: int
    space: Mapping[str, Dimension]


def read_spec(path: Path) -> TuneSpec:
    """Return the specification of a file. Raises InputError, ConfigError, which name the file and the problem."""
    place, said = read_yaml(read_text(path), str(path), resolve_true_false)
    written = shaped(place, {key: found for key, found in mapping(place, said).items() if found is not None}, _Written)
    folder = path.parent
    config = read_text(folder / written.config) if written.config else default_text()
    if not written.workloads:
        raise place.error(ConfigError, "expected workloads: there is nothing to judge by")
    space = dict(_dimensions(written.space, config, place.at("space")))
    if not space:
        raise place.at("space").error(ConfigError, "expected at least one thing that varies")
    _demand_applicable(config, space, str(path))
    found = {
        part: tuple(
            EvaluatedWorkload.of_policy_file(
                workload_of(each, place.at(part).at(number)), folder, written.noise, placement=written.placement
            )
            for number, each in enumerate(listed)
        )
        for part, listed in (("workloads", written.workloads), ("held_out", written.held_out))
    }
    objective = written.objective
    return TuneSpec(
        config,
        found["workloads"],
        found["held_out"],
        (objective,) if isinstance(objective, str) else tuple(objective),
        tuple(written.expect),
        written.seeds,
        written.trials,
        space,
    )


def _dimensions(said: Mapping[str, Any], config: str, place: ValuePlace) -> Iterator[tuple[str, Dimension]]:
    for name, values in said.items():
        at = place.at(name)
        if name == WEIGHTS:
            low, high = (values if is_list(values) else (None, None))[:2]
            if not isinstance(low, int | float) or not isinstance(high, int | float) or low >= high:
                raise at.wrong("two numbers, the lesser first", values)
            for each in weights_of(config):
                yield f"{ARGUMENTS}{each}", SearchRange(float(low), float(high))
        elif name != ACTIONS and not name.startswith((ARGUMENTS, FLAGS, PLUGINS, ORDER)):
            known = (
                WEIGHTS,
                ACTIONS,
                f"{ARGUMENTS}PLUGIN.ARGUMENT",
                f"{FLAGS}PLUGIN.FLAG",
                f"{PLUGINS}PLUGIN",
                f"{ORDER}TIER",
            )
            raise at.unknown("dimension", name, known)
        elif is_list(values) and values:
            yield name, tuple(values)
        elif is_mapping(values):
            found = shaped(at, values, SearchRange)
            if found.low >= found.high or (found.log and found.low <= 0):
                raise at.wrong("a range: low below high, above 0 for log", values)
            yield name, found
        else:
            raise at.wrong("a list of choices, or a range {low, high}", values)


def _demand_applicable(config: str, space: Mapping[str, Dimension], source: str) -> None:
    """Raise ConfigError for a choice, or an end of a range, that makes no valid configuration: before hours of search
    and not in the middle of them.
    """
    for name, of in space.items():
        for value in of.ends if isinstance(of, SearchRange) else of:
            parse_scheduler_config(applied(config, {name: value}), source=f"{source} ({name}: {value})")


def weights_of(config: str) -> list[str]:
    """Return the weights of a configuration's plugins, as PLUGIN.ARGUMENT, by the plugins' records. Raises
    ConfigError.
    """
    return [
        f"{plugin}.{argument.name}"
        for plugin in EditedConfig(config, "config").plugins
        for argument in record_of(plugin).arguments
        if argument.kind in (INTEGER, NUMBER) and "weight" in argument.name.lower() and "*" not in argument.name
    ]


def applied(config: str, chosen: Mapping[str, Any]) -> str:
    """Return a configuration with what was chosen laid over it. Raises ConfigError for what it does not have."""
    edited = EditedConfig(config, "config")
    # A plugin is taken out last: what else was chosen for it is not wrong then, and orders name it too.
    for name, value in sorted(chosen.items(), key=lambda item: item[0].startswith(PLUGINS)):
        kind, _, rest = name.partition(".")
        plugin, _, what = rest.partition(".")
        path = f"space.{kind}.{plugin}"
        if name == ACTIONS:
            edited.set_actions(value)
        elif name.startswith(ORDER):
            edited.reorder(int(rest) if rest.isdecimal() else -1, value, path)
        elif name.startswith(FLAGS):
            edited.set_flag(plugin, what, value, path)
        elif name.startswith(ARGUMENTS):
            edited.set_argument(plugin, what, value, path)
        elif not value:
            edited.drop(plugin, path)
        else:
            edited.demand(plugin, path)
    return edited.text
