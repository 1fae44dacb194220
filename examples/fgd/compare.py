"""How far a table of `experiment.py` is from the authors': `python compare.py runs.csv analysis_allo_discrete.csv.gz`.

Prints a row for each policy, and every point that is further away than rounding explains; ends with 1 when there are.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from typing import Annotated, Final

import typer

from pumice.cli.exits import Exit, guarded
from pumice.errors import InputError
from pumice.load.source import read_text

KEY: Final = ("workload", "sc_policy", "tune", "seed")
CURVE: Final = tuple(map(str, range(131)))
NEAR: Final = 1
"""Hundredths of a per cent: means are rounded in the last place."""

Table = dict[tuple[str, ...], dict[str, str]]


@guarded
def main(ours: Annotated[Path, typer.Argument()], theirs: Annotated[Path, typer.Argument()]) -> int:
    """Compare every point of every run that both have."""
    mine, published = table_of(ours), table_of(theirs)
    common = [key for key in mine if key in published]
    if not common:
        raise InputError(f"no run of these is in {theirs}", source=str(ours))
    runs: dict[str, list[list[int]]] = defaultdict(list)
    far: list[str] = []
    for key in common:
        apart = distances(mine[key], published[key])
        runs[key[1]].append([*apart.values()])
        far += [f"{key[0]} {key[1]} seed {key[3]} at {x}: {off / 100}" for x, off in apart.items() if off > NEAR]
    typer.echo("policy | runs | equal runs | points | equal | 0.01 off | more | worst")
    for policy, some in [*sorted(runs.items()), ("all", [run for each in runs.values() for run in each])]:
        typer.echo(row_of(policy, some))
    for line in far:
        typer.echo(line)
    return Exit.DIFFERS if far else Exit.DONE


def row_of(policy: str, runs: list[list[int]]) -> str:
    """A line of the table."""
    points = [each for run in runs for each in run]
    equal = sum(1 for run in runs if not any(run))
    counts = [sum(1 for each in points if low <= each <= high) for low, high in ((0, 0), (1, NEAR), (NEAR + 1, 10**6))]
    return " | ".join(map(str, [policy, len(runs), equal, len(points), *counts, max(points, default=0) / 100]))


def distances(mine: dict[str, str], published: dict[str, str]) -> dict[str, int]:
    """Between two curves, in hundredths of a per cent, by the demand; where one has nothing, there is no distance."""
    both = [x for x in CURVE if mine[x] and published[x]]
    return {x: abs(round(100 * float(mine[x])) - round(100 * float(published[x]))) for x in both}


def table_of(path: Path) -> Table:
    """The runs of a table by what tells them apart."""
    rows = list(csv.DictReader(read_text(path).splitlines()))
    if not rows or not {*KEY, *CURVE} <= rows[0].keys():
        raise InputError(f"expected a table with the columns {', '.join(KEY)}, 0, 1, …, 130", source=str(path))
    return {tuple(row[name] for name in KEY): row for row in rows}


if __name__ == "__main__":
    typer.run(main)
