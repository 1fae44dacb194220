"""What a sweep varies, read from YAML.

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
from typing import Any, Final

import yaml

from pumice.cluster.api.fields import is_list, is_mapping
from pumice.config.durations import duration_s
from pumice.config.yaml_tree import bounded_events
from pumice.errors import InputError
from pumice.load.source import read_text

ARGUMENTS: Final = "arguments."
KEYS: Final = ("fixed", "grid", "list")
Settings = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SweepSpec:
    """`runs`: the settings of each run, in the order of the table; `varied`: what differs, the first columns."""

    folder: Path
    runs: tuple[Settings, ...]
    varied: tuple[str, ...]


def read_spec(path: Path) -> SweepSpec:
    """A sweep from its file. InputError names the file and what is wrong with it."""
    text = read_text(path)
    try:
        list(bounded_events(text, yaml.SafeLoader, 100))
        said: Any = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(f"malformed YAML: {error}", source=str(path)) from error
    if not is_mapping(said):
        raise InputError("expected a mapping with fixed, grid or list", source=str(path))
    for key in said:
        if key not in KEYS:
            raise InputError(f"unknown key, expected one of {', '.join(KEYS)}", source=str(path), path=str(key))
    fixed, grid = (_mapping(said.get(key), key, path) for key in ("fixed", "grid"))
    each: Any = said.get("list") or [{}]
    if not is_list(each) or not all(is_mapping(one) for one in each):
        raise InputError("expected a list of mappings", source=str(path), path="list")
    for name, values in grid.items():
        if not is_list(values) or not values:
            raise InputError("expected a list of at least one value", source=str(path), path=f"grid.{name}")
    runs = tuple({**fixed, **one, **combined} for one in each for combined in _combinations(grid))
    for run in runs:
        _check(run, path)
    varied = tuple(dict.fromkeys([*(name for one in each for name in one), *grid]))
    return SweepSpec(path.parent, runs, varied)


def _mapping(value: Any, key: str, path: Path) -> Settings:
    if value is not None and not is_mapping(value):
        raise InputError("expected a mapping", source=str(path), path=key)
    return dict(value or {})


def _combinations(grid: Mapping[str, list[Any]]) -> Iterator[Settings]:
    for values in product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def _check(run: Settings, path: Path) -> None:
    for name in ("until", "default_duration"):
        said = run.get(name, "idle")
        if said != "idle" and (not isinstance(said, str) or duration_s(said) is None):
            raise InputError(f"expected a duration such as 90s, was {said!r}", source=str(path), path=name)
    if not isinstance(run.get("seed", 0), int):
        raise InputError(f"expected a whole number, was {run['seed']!r}", source=str(path), path="seed")
    if not inputs_of(run):
        raise InputError("expected manifests or a trace, as -f takes them", source=str(path), path="input")
    for name in run:
        if name.startswith(ARGUMENTS) and len(name.split(".", 2)) < len(("arguments", "PLUGIN", "ARGUMENT")):
            raise InputError("expected arguments.PLUGIN.ARGUMENT", source=str(path), path=name)


def inputs_of(run: Settings) -> list[str]:
    """What `-f` would be given."""
    said = run.get("input")
    return [str(one) for one in said] if is_list(said) else [str(said)] if said else []
