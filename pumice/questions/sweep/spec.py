# SPDX-License-Identifier: Apache-2.0
"""Settings that a sweep varies, read from YAML.

    fixed:                     # the same in every run
      input: ["swf:nasa.swf.gz,nodes=8x16"]
      until: idle
    grid:                      # every combination of these
      config: [drf.conf, capacity.conf]
      seed: [0, 1, 2]
      arguments.binpack.binpack.weight: [1, 10]
    list:                      # or these, one by one; each with every combination of the grid
    - {default_duration: 5s}

Paths are relative to the file. Of every run: `input` (manifests and traces as `-f` takes them, one or several),
`config`, `actions` (in place of the configuration's), `seed`, `until` (`idle` or a duration), `default_duration`,
`arguments.PLUGIN.ARGUMENT`, and any other name, which is a column and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta, Struct, field

from pumice.config.durations import duration_s
from pumice.config.errors import ConfigError
from pumice.config.read import ValuePlace, mapping, read_yaml, shaped
from pumice.config.yaml_tree import Document
from pumice.config.yaml_tree import Path as YamlPath
from pumice.core.objects.metadata import Object, is_list
from pumice.load.source import read_text

ARGUMENTS: Final = "arguments."
Settings = Object
Varied = Annotated[list[Any], Meta(min_length=1, description="a list of at least one value")]


class _Written(Struct, forbid_unknown_fields=True):
    fixed: Settings = field(default_factory=Settings)
    grid: dict[str, Varied] = field(default_factory=dict[str, list[Any]])
    listed: list[Settings] = field(default_factory=list[Settings], name="list")


class _Run(Struct):
    seed: int = 0
    until: str = "idle"
    default_duration: str = "idle"


@dataclass(frozen=True, slots=True)
class SweepSpec:
    """A sweep. `runs`: the settings of each run, in the order of the table; `varied`: the differing settings, the first
    columns.
    """

    folder: Path
    runs: tuple[Settings, ...]
    varied: tuple[str, ...]


def read_spec(path: Path) -> SweepSpec:
    """Return the sweep of a file. Raises InputError, ConfigError, which name the file and the problem."""
    place, said = read_yaml(read_text(path), str(path))
    spec = shaped(place, {key: found for key, found in mapping(place, said).items() if found is not None}, _Written)
    listed, runs = spec.listed or [{}], list[Settings]()
    for number, one in enumerate(listed):
        given = {"fixed": spec.fixed, "list": one, "grid": spec.grid}
        places = {"fixed": place.at("fixed"), "list": place.at("list").at(number), "grid": place.at("grid")}
        lines: dict[YamlPath, int] = {(name,): places[part].at(name).line for part in given for name in given[part]}
        for combined in _combinations(spec.grid):
            runs.append({**spec.fixed, **one, **combined})
            _check(runs[-1], ValuePlace(Document(str(path), None, lines)))
    varied = tuple(dict.fromkeys([*(name for one in listed for name in one), *spec.grid]))
    return SweepSpec(path.parent, tuple(runs), varied)


def _combinations(grid: Mapping[str, list[Any]]) -> Iterator[Settings]:
    for values in product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def _check(run: Settings, place: ValuePlace) -> None:
    said = shaped(place, run, _Run)
    for name, duration in (("until", said.until), ("default_duration", said.default_duration)):
        if duration != "idle" and duration_s(duration) is None:
            raise place.at(name).wrong("a duration such as 90s", duration)
    if not inputs_of(run):
        raise place.at("input").wrong("manifests or a trace, as -f takes them", run.get("input"))
    for name in run:
        if name.startswith(ARGUMENTS) and len(name.split(".", 2)) < len(("arguments", "PLUGIN", "ARGUMENT")):
            raise place.at(name).error(ConfigError, "expected arguments.PLUGIN.ARGUMENT")


def inputs_of(run: Settings) -> list[str]:
    """Return the inputs as values of `-f`."""
    said = run.get("input")
    return [str(one) for one in said] if is_list(said) else [str(said)] if said else []
