"""The samples of a soak as one picture: a panel for memory, journal, counts, latency, lag and processor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pumice.questions.report.charts import CONFIG, SCHEMA
from tests.benches.soak.judging import Row

PANELS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("memory (MB)", ("rss_mb", "uss_mb")),
    ("journal (MB)", ("journal_mb", "wal_mb")),
    ("descriptors, threads", ("descriptors", "threads")),
    ("objects", ("objects",)),
    ("requests, median (ms)", ("post_p50_ms", "delete_p50_ms", "patch_p50_ms", "get_p50_ms", "list_p50_ms")),
    ("requests, 99 % (ms)", ("post_p99_ms", "delete_p99_ms", "patch_p99_ms", "get_p99_ms", "list_p99_ms")),
    ("lag of watches (ms)", ("lag_p50_ms", "lag_p99_ms")),
    ("processor (share of a core)", ("cpu", "load_cpu")),
)
WIDTH: Final = 380
HEIGHT: Final = 130
MOST_POINTS: Final = 100


def curves(rows: Sequence[Row], title: str, warm_s: float) -> dict[str, Any]:
    """A specification in Vega-Lite; the rule in each panel is where the warm-up ends. A long run is thinned out."""
    thin = rows[:: -(-len(rows) // MOST_POINTS)]
    return {
        "$schema": SCHEMA,
        "background": "white",
        "title": title,
        "config": CONFIG,
        "concat": [_panel(thin, name, columns, warm_s / 60) for name, columns in PANELS],
        "columns": 2,
        "resolve": {"scale": {"color": "independent"}},
    }


def _panel(rows: Sequence[Row], name: str, columns: Sequence[str], warm: float) -> dict[str, Any]:
    values = [
        {"t": round(row["t_s"] / 60, 3), "value": round(row[column], 3), "figure": column}
        for row in rows
        for column in columns
        if column in row
    ]
    lines = {
        "data": {"values": values},
        "mark": {"type": "line", "strokeWidth": 1},
        "encoding": {
            "x": {"field": "t", "type": "quantitative", "title": "minutes"},
            "y": {"field": "value", "type": "quantitative", "title": None},
            "color": {"field": "figure", "type": "nominal", "title": None, "sort": None},
        },
    }
    rule = {
        "data": {"values": [{"t": warm}]},
        "mark": {"type": "rule", "strokeDash": [4, 4], "color": "#808790"},
        "encoding": {"x": {"field": "t", "type": "quantitative"}},
    }
    return {"title": name, "width": WIDTH, "height": HEIGHT, "layer": [lines, rule]}
