"""Pods on their nodes over time, each in a lane of its own while it runs beside others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from pumice.questions.report.plot import Row, Spec, plot, time_axis

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pumice.questions.report.recorded import PodSlice, RecordedRun

MOST_NODES: Final = 80
MOST_SLICES: Final = 15_000
"""More cannot be told apart, and the file stays below five megabytes."""
EVICTED: Final = "evicted"
FRAMED: Final[Spec] = {
    "field": "end",
    "type": "nominal",
    "scale": {"domain": ["", EVICTED], "range": ["transparent", "#c62828"]},
    "legend": {"title": None, "values": [EVICTED]},
}
"""Bars of pods that were evicted have a frame."""


class DrawnPods(NamedTuple):
    """Pods on the `nodes` busiest of `all_nodes`; `left_out`: so many of them are too short to be drawn."""

    slices: list[PodSlice]
    nodes: int
    all_nodes: int
    left_out: int = 0


def pods_on_nodes(run: RecordedRun, *, named: bool) -> Spec | None:
    """Of the busiest nodes; `named`: the title says which run."""
    unit, axis = time_axis([run])
    found = drawn(run.slices)
    rows: list[Row] = [
        {
            "node": one.node,
            "lane": lane,
            "t": round(one.begun / unit, 4),
            "to": round(one.ended / unit, 4),
            "pod": one.pod,
            "queue": one.queue or "-",
            "end": EVICTED if one.evicted else "",
        }
        for one, lane in _laned(found.slices)
    ]
    encoding: Spec = {
        "x": axis,
        "x2": {"field": "to"},
        "y": {"field": "node", "type": "nominal", "title": None, "sort": "ascending"},
        "yOffset": {"field": "lane", "type": "nominal", "scale": {"paddingInner": 0.1}},
        "color": {"field": "queue", "type": "nominal"},
        "tooltip": [{"field": "pod"}, {"field": "node"}, {"field": "queue"}, {"field": "end"}],
    }
    if any(one.evicted for one in found.slices):
        encoding["stroke"] = FRAMED
    title = f"Pods on nodes{': ' + run.name if named else ''}{_of(found)}"
    return plot(rows, {"type": "bar", "strokeWidth": 1.5}, encoding, title, max(60, 16 * found.nodes))


def _of(found: DrawnPods) -> str:
    """What is not drawn, for the title."""
    told = [f"the {found.nodes} busiest of {found.all_nodes}"] if found.nodes < found.all_nodes else []
    if found.left_out:
        told.append(f"without the {found.left_out} shortest pods")
    return f" ({', '.join(told)})" if told else ""


def drawn(slices: Sequence[PodSlice], most: int = MOST_SLICES) -> DrawnPods:
    """Everything of the busiest nodes, as many as have room: a node of which a part is drawn would look idle. What one
    node alone has too many of, it has without the shortest.
    """
    on: dict[str, list[PodSlice]] = {}
    for one in slices:
        on.setdefault(one.node, []).append(one)
    busiest = sorted(on, key=lambda node: (-sum(one.ended - one.begun for one in on[node]), node))
    if busiest and len(first := on[busiest[0]]) > most:
        # of equally long ones all over the run, so that no part of it looks idle
        longest = sorted(first, key=lambda one: (one.begun - one.ended, crc32(one.pod.encode())))[:most]
        return DrawnPods(longest, 1, len(on), len(first) - most)
    found: list[PodSlice] = []
    for number, node in enumerate(busiest):
        if number == MOST_NODES or len(found) + len(on[node]) > most:
            return DrawnPods(found, number, len(on))
        found += on[node]
    return DrawnPods(found, len(on), len(on))


def _laned(slices: Sequence[PodSlice]) -> Iterator[tuple[PodSlice, int]]:
    """Each with its lane: those on one node at one time have different ones."""
    lanes: dict[str, list[float]] = {}
    for one in sorted(slices, key=lambda each: (each.begun, each.ended, each.pod)):
        ends = lanes.setdefault(one.node, [])
        lane = next((number for number, end in enumerate(ends) if end <= one.begun), len(ends))
        ends[lane : lane + 1] = [one.ended]
        yield one, lane
