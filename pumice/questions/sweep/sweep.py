# SPDX-License-Identifier: Apache-2.0
"""A sweep from its specification to its table; an earlier run is not repeated."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from pumice.core.objects.metadata import Object
from pumice.errors import InputError, demand
from pumice.executors import Executors
from pumice.plugins.loader import install_plugins
from pumice.questions.evaluation.kept import KeptResults, run_missing
from pumice.questions.sweep.one_run import WALL, key_of, lived
from pumice.questions.sweep.spec import Settings, SweepSpec

Work = Callable[[Settings, str], Object]
PARQUET: Final = ".parquet"


class SweepPart(NamedTuple):
    """Every `of`-th run from run `number` on, which counts from 0."""

    number: int
    of: int


WHOLE: Final = SweepPart(0, 1)


def read_part(text: str) -> SweepPart:
    """Read `NUMBER/OF`. InputError for anything else."""
    number, _, of = text.partition("/")
    if not (number.isdecimal() and of.isdecimal() and int(number) < int(of)):
        raise InputError(f"expected NUMBER/OF such as 0/4, the first of four parts; was {text!r}", path="--part")
    return SweepPart(int(number), int(of))


@dataclass(frozen=True, slots=True)
class Swept:
    """A sweep's results. `rows` in the order of the specification; `fresh`: how many were run now, `missing`: how many
    of the rest have no result yet, and so no rows.
    """

    rows: list[Object]
    fresh: int
    missing: int = 0


def sweep(
    spec: SweepSpec,
    results: Path,
    executors: Executors,
    ended: Callable[[], None] = lambda: None,
    work: Work = lived,
    part: SweepPart = WHOLE,
) -> Swept:
    """Run the missing results of a part, a file for each run; `ended` is called with each.

    Raises InputError for input that a run cannot use, and WorkerDiedError when workers keep dying over one.
    """
    install_plugins()
    keys = [key_of(run, spec.folder) for run in spec.runs]
    kept = KeptResults(results, Object, strict=True)
    results.mkdir(parents=True, exist_ok=True)
    mine = dict([*zip(keys, spec.runs, strict=True)][part.number :: part.of])
    before = {key for key in mine if kept.get(key) is not None}
    run_missing(work, {key: (run, str(spec.folder)) for key, run in mine.items()}, kept, executors, ended)
    found = {key: result for key in dict.fromkeys(keys) if (result := kept.get(key)) is not None}
    rows = [
        {**{name: _plain(run.get(name)) for name in spec.varied}, **found[key]}
        for key, run in zip(keys, spec.runs, strict=True)
        if key in found
    ]
    return Swept(rows, len(mine) - len(before), len(set(keys)) - len(found))


def _plain(value: object) -> Any:
    return value if value is None or isinstance(value, str | int | float) else msgspec.json.encode(value).decode()


def write(rows: list[Object], path: Path) -> None:
    """Write the rows as CSV, or Parquet by the name of the file; varied settings first, the duration last."""
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name != WALL]
    names.append(WALL)
    if path.suffix == PARQUET:
        arrow = demand("pyarrow", "tables", "Parquet files")
        parquet = demand("pyarrow.parquet", "tables", "Parquet files")
        parquet.write_table(arrow.table({name: [row.get(name) for row in rows] for name in names}), path)
        return
    if path.suffix != ".csv":
        raise InputError(f"expected a name that ends in .csv or {PARQUET}", source=str(path))
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.DictWriter(file, names, lineterminator="\n")
        lines.writeheader()
        lines.writerows({name: "" if row.get(name) is None else row[name] for name in names} for row in rows)
