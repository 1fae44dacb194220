"""Draws tables of `experiment.py`: `python plot.py runs.csv -o fgd.svg`; and says how each policy ends, in a table.

The mean over the seeds of one trace: what is allocated by what has arrived, both in per cent of all GPUs.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Final

import typer

from pumice.cli.exits import Exit, guarded
from pumice.errors import InputError, demand
from pumice.load.source import read_text
from pumice.questions.report.charts import plot

SHOWN: Final = range(70, 131)
TOLD: Final = (80, 100, 130)


@guarded
def main(
    tables: Annotated[list[Path], typer.Argument()],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PICTURE")] = Path("fgd.svg"),
    workload: Annotated[str, typer.Option(help="The trace.")] = "openb_pod_list_default",
) -> int:
    """Draw it as SVG or PNG, and print what is allocated at the end."""
    rows = [row for table in tables for row in csv.DictReader(read_text(table).splitlines())]
    curves = means([row for row in rows if row["workload"] == workload])
    if not curves:
        raise InputError(f"no runs of {workload} with a curve", source=", ".join(map(str, tables)))
    draw(curves, output, workload)
    typer.echo(" | ".join(["policy", "runs", *(f"at {x} %" for x in TOLD)]))
    for policy, curve in sorted(curves.items(), key=lambda each: each[1][TOLD[-1]], reverse=True):
        runs = sum(1 for row in rows if (row["workload"], row["sc_policy"]) == (workload, policy))
        typer.echo(" | ".join([policy, str(runs), *(f"{curve[x]:.2f}" for x in TOLD)]))
    return Exit.DONE


def means(rows: list[dict[str, str]]) -> dict[str, dict[int, float]]:
    """By policy, the mean of its runs at each demand."""
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        found[row["sc_policy"]].append(row)
    return {
        policy: {x: fmean(float(run[str(x)]) for run in runs) for x in SHOWN if all(run[str(x)] for run in runs)}
        for policy, runs in found.items()
    }


def draw(curves: dict[str, dict[int, float]], output: Path, workload: str) -> None:
    """A line for each policy, the best first in the legend."""
    points: list[dict[str, Any]] = [
        {"policy": policy, "arrived": x, "allocated": round(y, 2)}
        for policy, curve in curves.items()
        for x, y in curve.items()
    ]
    order = sorted(curves, key=lambda policy: curves[policy][SHOWN[-1]], reverse=True)
    domain = {"x": [SHOWN[0], SHOWN[-1]], "y": [SHOWN[0], 100]}
    encoding = {
        axis: {
            "field": name,
            "type": "quantitative",
            "title": f"{name} (% of all GPUs)",
            "scale": {"domain": domain[axis]},
        }
        for axis, name in (("x", "arrived"), ("y", "allocated"))
    }
    colour = {"field": "policy", "type": "nominal", "sort": order, "title": None}
    dashed = {"condition": {"test": "indexof(datum.policy, '+gangs') >= 0", "value": [5, 3]}, "value": [1, 0]}
    mark = {"type": "line", "clip": True}
    lines = {**encoding, "color": colour, "strokeDash": dashed}
    spec = plot(points, mark, lines, f"GPUs allocated, {workload}", height=420)
    convert = demand("vl_convert", "report", "Reports")
    spec = {**(spec or {}), "background": "white"}
    if output.suffix == ".png":
        output.write_bytes(convert.vegalite_to_png(spec, scale=1.5))
    else:
        output.write_text(convert.vegalite_to_svg(spec), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
