"""Pods on their nodes over time, each in a lane of its own while it runs beside others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.report.plot import Row, Spec, plot, time_axis

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pumice.report.recorded import PodSlice, RecordedRun

MOST_NODES: Final = 80


def pods_on_nodes(run: RecordedRun, *, named: bool) -> Spec | None:
    """Of the busiest nodes; `named`: the title says which run."""
    unit, axis = time_axis([run])
    busy: dict[str, float] = {}
    for one in run.slices:
        busy[one.node] = busy.get(one.node, 0.0) + one.ended - one.begun
    shown = set(sorted(busy, key=lambda node: (-busy[node], node))[:MOST_NODES])
    rows: list[Row] = [
        {
            "node": one.node,
            "lane": lane,
            "t": round(one.begun / unit, 4),
            "to": round(one.ended / unit, 4),
            "pod": one.pod,
            "queue": one.queue or "-",
            "end": "evicted" if one.evicted else "",
        }
        for one, lane in _laned([one for one in run.slices if one.node in shown])
    ]
    encoding = {
        "x": axis,
        "x2": {"field": "to"},
        "y": {"field": "node", "type": "nominal", "title": None, "sort": "ascending"},
        "yOffset": {"field": "lane", "type": "nominal", "scale": {"paddingInner": 0.1}},
        "color": {"field": "queue", "type": "nominal"},
        "opacity": {"condition": {"test": "datum.end === 'evicted'", "value": 1.0}, "value": 0.7},
        "tooltip": [{"field": "pod"}, {"field": "node"}, {"field": "queue"}, {"field": "end"}],
    }
    title = f"Pods on nodes{': ' + run.name if named else ''}"
    if len(busy) > MOST_NODES:
        title += f" (the {MOST_NODES} busiest of {len(busy)})"
    return plot(rows, {"type": "bar"}, encoding, title, max(60, 16 * len(shown)))


def _laned(slices: Sequence[PodSlice]) -> Iterator[tuple[PodSlice, int]]:
    """Each with its lane: those on one node at one time have different ones."""
    lanes: dict[str, list[float]] = {}
    for one in sorted(slices, key=lambda each: (each.begun, each.ended, each.pod)):
        ends = lanes.setdefault(one.node, [])
        lane = next((number for number, end in enumerate(ends) if end <= one.begun), len(ends))
        ends[lane : lane + 1] = [one.ended]
        yield one, lane
