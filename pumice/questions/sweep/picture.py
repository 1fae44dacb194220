# SPDX-License-Identifier: Apache-2.0
"""The table of a sweep as a picture: a bar for each run in a panel for each figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pumice.core.objects.metadata import Object
from pumice.errors import InputError, demand
from pumice.questions.report.charts import CONFIG, SCHEMA

if TYPE_CHECKING:
    from collections.abc import Sequence

FIGURES: Final = ("mean_wait_s", "p95_wait_s", "mean_bounded_slowdown", "evictions")
UTILISATION: Final = " utilisation"
SCALE: Final = 2
FORMS: Final = (".svg", ".png")


def picture(rows: Sequence[Object], varied: Sequence[str]) -> Object:
    """Return a specification in Vega-Lite. The first column that varied is the bar's name, the others its colour;
    panels are waits, slowdown, evictions, and the use of every used resource.
    """
    used = [name for name in rows[0] if name.endswith(UTILISATION) and name != f"pods{UTILISATION}"] if rows else []
    figures = [*FIGURES, *(name for name in used if any(row.get(name) for row in rows))]
    first, others = varied[0], varied[1:]
    bars = [
        {
            "run": str(row[first]),
            "as": " · ".join(f"{row[name]}" for name in others),
            "figure": figure,
            "value": row.get(figure),
        }
        for row in rows
        for figure in figures
    ]
    order = list(dict.fromkeys(bar["run"] for bar in bars))
    encoding: Object = {
        "y": {"field": "run", "type": "nominal", "title": None, "sort": order},
        "x": {"field": "value", "type": "quantitative", "title": None},
    }
    if others:
        encoding |= {
            "yOffset": {"field": "as", "sort": None},
            "color": {
                "field": "as",
                "type": "nominal",
                "sort": None,
                "legend": {"title": None, "orient": "bottom", "columns": 1, "labelLimit": 600},
            },
        }
    return {
        "$schema": SCHEMA,
        "background": "white",
        "config": CONFIG,
        "data": {"values": bars},
        "facet": {"field": "figure", "type": "nominal", "title": None, "sort": figures},
        "columns": 3,
        "spec": {"width": 230, "height": {"step": 14 if others else 22}, "mark": "bar", "encoding": encoding},
        "resolve": {"scale": {"x": "independent"}},
    }


def checked(path: Path) -> Path:
    """Return the name with its form. InputError for a name without a known form."""
    if path.suffix not in FORMS:
        raise InputError(f"expected a name that ends in {' or '.join(FORMS)}", source=str(path), path="--plot")
    return path


def draw(spec: Object, path: Path) -> None:
    """Draw the plot as SVG or PNG, by the name of the file. RequestError without the extra `report`."""
    convert = demand("vl_convert", "report", "Plots")
    if path.suffix == ".png":
        path.write_bytes(convert.vegalite_to_png(spec, scale=SCALE))
    else:
        path.write_text(convert.vegalite_to_svg(spec), "utf-8")
