"""What all plots of a report have in common: Vega-Lite, the page's colours, and the axis of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.questions.report.recorded import RecordedRun

Spec = dict[str, Any]
Row = dict[str, Any]

SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v6.json"
GREY: Final = "#808790"
CONFIG: Final[Spec] = {
    "background": None,
    "view": {"stroke": None},
    "axis": {"labelColor": GREY, "titleColor": GREY, "gridColor": "#80879033", "domainColor": GREY, "tickColor": GREY},
    "legend": {"labelColor": GREY, "titleColor": GREY, "orient": "bottom"},
    "header": {"labelColor": GREY, "titleColor": GREY},
    "title": {"color": GREY, "anchor": "start"},
    "range": {"category": {"scheme": "tableau10"}},
}
WIDTH: Final = 860


def plot(rows: list[Row], mark: Any, encoding: Spec, title: str, height: int = 200) -> Spec | None:
    """A whole specification; None when there is nothing to show."""
    if not rows:
        return None
    return {
        "$schema": SCHEMA,
        "title": title,
        "width": WIDTH,
        "height": height,
        "config": CONFIG,
        "data": {"values": rows},
        "mark": mark,
        "encoding": encoding,
    }


def time_axis(runs: Sequence[RecordedRun]) -> tuple[float, Spec]:
    """How many seconds the axis of time counts as one, and the axis."""
    longest = max(run.measures.horizon_s for run in runs)
    for seconds, unit in ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes")):
        if longest >= 3 * seconds:
            return seconds, {"field": "t", "type": "quantitative", "title": unit}
    return 1.0, {"field": "t", "type": "quantitative", "title": "seconds"}
