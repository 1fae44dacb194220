# SPDX-License-Identifier: Apache-2.0
"""The plots of a report as Vega-Lite specifications, of one run or of two beside each other.

Vega-Lite is data: vl-convert draws it as SVG and PNG without a browser, and brings the JavaScript that draws it in one.
Source: https://vega.github.io/vega-lite/docs/
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from pumice.core.objects.metadata import Object
from pumice.core.resources.amounts import CPU, MEMORY, PODS
from pumice.questions.measures.over_time import Grid, Steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pumice.questions.measures.jobs import JobRow
    from pumice.questions.report.recorded import PodSlice, RecordedRun

# --- Plots

Spec = Object
Row = Object

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


def plot(rows: list[Row], mark: object, encoding: Spec, title: str, height: int = 200) -> Spec | None:
    """Return a whole specification; None without data."""
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
    """Return the number of seconds in a unit of the time axis, and the axis."""
    longest = max(run.measures.horizon_s for run in runs)
    for seconds, unit in ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes")):
        if longest >= 3 * seconds:
            return seconds, {"field": "t", "type": "quantitative", "title": unit}
    return 1.0, {"field": "t", "type": "quantitative", "title": "seconds"}


# --- Pods on nodes

MOST_NODES: Final = 80
MOST_SLICES: Final = 15_000
"""More cannot be distinguished, and the file stays below five megabytes."""
EVICTED: Final = "evicted"
FRAMED: Final[Spec] = {
    "field": "end",
    "type": "nominal",
    "scale": {"domain": ["", EVICTED], "range": ["transparent", "#c62828"]},
    "legend": {"title": None, "values": [EVICTED]},
}
"""Bars of pods that were evicted have a frame."""


class DrawnPods(NamedTuple):
    """Pods on the `nodes` busiest of `all_nodes`; `left_out`: the number of those that are too short to be drawn."""

    slices: list[PodSlice]
    nodes: int
    all_nodes: int
    left_out: int = 0


def pods_on_nodes(run: RecordedRun, *, named: bool) -> Spec | None:
    """Plot the pods on the busiest nodes; `named`: the title names the run."""
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
    """Return the title's remark about parts that are not drawn."""
    told = [f"the {found.nodes} busiest of {found.all_nodes}"] if found.nodes < found.all_nodes else []
    if found.left_out:
        told.append(f"without the {found.left_out} shortest pods")
    return f" ({', '.join(told)})" if told else ""


def drawn(slices: Sequence[PodSlice], most: int = MOST_SLICES) -> DrawnPods:
    """Return everything on the busiest nodes, as many as fit: a node that is drawn in part would look idle. Where one
    node alone has too many pods, the shortest are left out.
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
    """Yield each with its lane: those on one node at one time have different ones."""
    lanes: dict[str, list[float]] = {}
    for one in sorted(slices, key=lambda each: (each.begun, each.ended, each.pod)):
        ends = lanes.setdefault(one.node, [])
        lane = next((number for number, end in enumerate(ends) if end <= one.begun), len(ends))
        ends[lane : lane + 1] = [one.ended]
        yield one, lane


SHORT_WORDS: Final[Spec] = {"labelLimit": {"expr": "max(width / 3 - 30, 60)"}, "columns": 3}
LONG_WORDS: Final[Spec] = {"labelLimit": {"expr": "max(width - 20, 200)"}, "columns": 1}
"""Legends go on in the next line. Their columns are a plain number: of an expression Vega cuts rows off."""
WHOLE: Final[Spec] = {"axis": {"tickMinStep": 1, "format": "~f"}}
"""Counts have whole numbers at their axis."""
MOST_REASONS: Final = 8
MOST_POINTS: Final = 5_000


def charts(runs: Sequence[RecordedRun]) -> dict[str, Spec]:
    """Return the charts by name, in the order in which they are shown; empty ones are left out."""
    found: dict[str, Spec | None] = {
        "utilisation": _utilisation(runs),
        **_queues(runs),
        **_stages(runs),
        **_waiting(runs),
        "waits": _by_queue(runs, "wait_s", "wait (s)"),
        "slowdowns": _by_queue(runs, "bounded_slowdown", "bounded slowdown"),
        "wait-sizes": _by_size(runs, "wait_s", "wait (s)"),
        "sizes": _by_size(runs, "bounded_slowdown", "bounded slowdown"),
        "fragmentation": _fragmentation(runs),
    }
    for number, run in enumerate(runs):
        found["nodes" if len(runs) == 1 else f"nodes-{number + 1}"] = pods_on_nodes(run, named=len(runs) > 1)
    return {name: spec for name, spec in found.items() if spec is not None}


def _series(run: RecordedRun, what: str, resource: str) -> Iterator[tuple[str, list[float]]]:
    """Return queue and values."""
    for series in run.measures.series:
        if series.what == what and series.resource == resource:
            yield series.queue, series.values


def _of_all(run: RecordedRun, what: str, resource: str) -> list[float]:
    return next((values for queue, values in _series(run, what, resource) if not queue), list[float]())


def _resources(runs: Sequence[RecordedRun]) -> list[str]:
    """Return the resources in use at any time, without pods; cpu and memory first."""
    names = [name for run in runs for name, of in run.measures.summary["resources"].items() if of["held_s"]]
    return [name for name in dict.fromkeys(names) if name != PODS]


def _thinned(starts: Sequence[float], values: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Yield the points where the value changes, and those just before; none for a run without such a resource."""
    if not values:
        return
    for index, (start, value) in enumerate(zip(starts, values, strict=True)):
        if index in (0, len(values) - 1) or value != values[index - 1] or value != values[index + 1]:
            yield start, value


def _lines(runs: Sequence[RecordedRun], color: str) -> Spec:
    """Return encodings that tell runs apart, where there are two."""
    found: Spec = {"color": {"field": color, "type": "nominal", "title": color, "legend": SHORT_WORDS}}
    if len(runs) > 1:
        found["strokeDash"] = {"field": "run", "type": "nominal", "title": "run"}
    return found


def _utilisation(runs: Sequence[RecordedRun]) -> Spec | None:
    unit, axis = time_axis(runs)
    rows: list[Row] = []
    for run in runs:
        for resource in _resources(runs):
            held, capacity = (_of_all(run, what, resource) for what in ("held", "capacity"))
            shares = [
                round(part / whole, 4) if whole else 0.0 for part, whole in zip(held, capacity, strict=len(held) > 0)
            ]
            starts = run.measures.starts_s
            for start, share in _thinned(starts[: len(shares)], shares):
                rows.append({"t": round(start / unit, 4), "share": share, "resource": resource, "run": run.name})
    encoding = {
        "x": axis,
        "y": {"field": "share", "type": "quantitative", "title": "of all there is", "axis": {"format": "%"}},
        **_lines(runs, "resource"),
    }
    return plot(rows, {"type": "line", "interpolate": "step-after"}, encoding, "Utilisation by resource")


def _scarce(runs: Sequence[RecordedRun]) -> str | None:
    """Return the resource with the greatest part held."""
    summaries = [run.measures.summary["resources"] for run in runs]
    of: dict[str, float] = {
        name: max((each[name]["utilisation"] for each in summaries if name in each), default=0.0)
        for name in _resources(runs)
    }
    return max(of, key=lambda name: of[name]) if of else None


class Stacked(NamedTuple):
    """Stacked series: amounts over time by name for each run, and their titles."""

    rows: Callable[[RecordedRun], Mapping[str, Sequence[float]]]
    y: str
    unit: str
    color: str
    title: str
    legend: Spec = SHORT_WORDS
    more: Spec = {}  # noqa: RUF012  # no code writes into it


def _stacked(runs: Sequence[RecordedRun], name: str, of: Stacked) -> dict[str, Spec | None]:
    """Return an area over time for each run; those of two runs have the same axes, so that they can stand side by
    side."""
    unit, axis = time_axis(runs)
    latest = max(run.measures.horizon_s for run in runs)
    axis |= {"scale": {"domain": [0, round(latest / unit, 4)], "nice": False}}
    names = list(dict.fromkeys(what for run in runs for what in of.rows(run)))
    largest = max((sum(values) for run in runs for values in zip(*of.rows(run).values(), strict=False)), default=0.0)
    found: dict[str, Spec | None] = {}
    for number, run in enumerate(runs):
        rows: list[Row] = [
            {"t": round(start / unit, 4), of.y: round(value, 3), of.color: what}
            for what, values in of.rows(run).items()
            for start, value in zip(run.measures.starts_s, values, strict=False)
        ]
        encoding: Spec = {
            "x": axis,
            "y": {
                "field": of.y,
                "type": "quantitative",
                "title": of.unit,
                "stack": True,
                "scale": {"domain": [0, largest or 1]},
                **of.more,
            },
            "color": {"field": of.color, "type": "nominal", "legend": of.legend, "scale": {"domain": names}},
            "tooltip": [{"field": of.color}, {"field": of.y}, {"field": "t", "title": axis["title"]}],
        }
        title = of.title if len(runs) == 1 else f"{of.title}: {run.name}"
        spec = plot(rows, {"type": "area", "interpolate": "step-after"}, encoding, title)
        found[name if len(runs) == 1 else f"{name}-{number + 1}"] = spec
    return found


def _queues(runs: Sequence[RecordedRun]) -> dict[str, Spec | None]:
    resource = _scarce(runs)
    if resource is None:
        return {}
    scale, unit = (2.0**30, "GiB") if resource == MEMORY else (1.0, "cores" if resource == CPU else "pieces")

    def held(run: RecordedRun) -> dict[str, list[float]]:
        of = {queue or "-": values for queue, values in _series(run, "held", resource) if queue}
        return {queue: [value / scale for value in values] for queue, values in of.items()}

    return _stacked(runs, "queues", Stacked(held, "held", unit, "queue", f"{resource} held by queue"))


def _waiting(runs: Sequence[RecordedRun]) -> dict[str, Spec | None]:
    total = {why: sum(sum(run.reasons.get(why, [])) for run in runs) for run in runs for why in run.reasons}
    first = sorted(total, key=lambda why: (-total[why], why))[:MOST_REASONS]

    def pods(run: RecordedRun) -> dict[str, list[float]]:
        return {why: run.reasons[why] for why in first if why in run.reasons}

    stacked = Stacked(pods, "pods", "pods", "reason", "Pods that wait, by reason", LONG_WORDS, WHOLE)
    return _stacked(runs, "waiting", stacked)


def _stages(runs: Sequence[RecordedRun]) -> dict[str, Spec | None]:
    """Return the stages of waiting jobs: many of them have no pods until they are admitted."""
    stacked = Stacked(waiting_jobs, "jobs", "jobs", "stage", "Jobs that wait, for what", more=WHOLE)
    return _stacked(runs, "stages", stacked)


def waiting_jobs(run: RecordedRun) -> dict[str, list[float]]:
    """Return the number of jobs that wait over time for admission (PodGroup Pending → Inqueue), and for nodes after
    that."""
    grid = Grid(0.0, run.measures.starts_s[1] if len(run.measures.starts_s) > 1 else 1.0)
    found: dict[str, list[float]] = {}
    for stage, spans in (("admission", _outside(run)), ("nodes", _unplaced(run))):
        steps = Steps(grid)
        for at, change in sorted(point for begun, ended in spans for point in ((begun, 1), (ended, -1))):
            steps.add(change, at)
        steps.to(run.measures.horizon_s)
        if steps.total:
            found[stage] = steps.means(run.measures.horizon_s)
    return found


def _outside(run: RecordedRun) -> Iterator[tuple[float, float]]:
    for job in run.jobs:
        if job.admission_s is not None:
            yield job.submitted, job.submitted + job.admission_s
        else:
            yield job.submitted, run.measures.horizon_s if job.ended is None else job.ended


def _unplaced(run: RecordedRun) -> Iterator[tuple[float, float]]:
    for job in run.jobs:
        if job.admission_s is not None:
            until = run.measures.horizon_s if job.ended is None else job.ended
            begun = job.submitted + job.admission_s
            yield begun, max(until, begun) if job.scheduling_s is None else begun + job.scheduling_s


def _by_queue(runs: Sequence[RecordedRun], field: str, title: str) -> Spec | None:
    """Return for each queue the part of its jobs that had at most so much."""
    rows: list[Row] = []
    for run in runs:
        by_queue: dict[str, list[float]] = {}
        for job in run.jobs:
            value = getattr(job, field)
            if value is not None:
                by_queue.setdefault(job.queue or "-", []).append(value)
        for queue, values in sorted(by_queue.items()):
            for part, value in _quantiles(sorted(values)):
                rows.append({"value": value, "part": part, "queue": queue, "run": run.name})
    encoding = {
        "x": {
            "field": "value",
            "type": "quantitative",
            "title": title,
            "scale": _scale(field, rows),
            "axis": {"labelOverlap": True},
        },
        "y": {"field": "part", "type": "quantitative", "title": "of the jobs, at most that", "axis": {"format": "%"}},
        **_lines(runs, "queue"),
    }
    name = title.partition(" (")[0].capitalize()
    return plot(rows, {"type": "line", "interpolate": "step-after"}, encoding, f"{name} by queue")


def _scale(field: str, rows: Sequence[Row]) -> Spec:
    """Return the scale: from 0 on for waits, from 1 on for slowdowns; never a single point, even if all jobs had the
    same."""
    largest = max((row["value"] for row in rows), default=0.0)
    if field == "wait_s":
        return {"type": "symlog", "domain": [0, largest or 1.0], "nice": False}
    return {"type": "log", "domain": [1, max(2.0, largest)], "nice": False}


def _quantiles(values: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Yield at most a hundred points of the distribution."""
    step = max(1, len(values) // 100)
    for index in (*range(0, len(values), step), len(values) - 1):
        yield round((index + 1) / len(values), 4), values[index]


def most_telling(found: Sequence[tuple[float, JobRow]], most: int) -> list[tuple[float, JobRow]]:
    """Return the largest values, and evenly many of all the others, where there are more than are drawn."""
    if len(found) <= most:
        return [*found]
    falling = sorted(found, key=lambda each: -each[0])
    largest, rest = falling[: most // 2], falling[most // 2 :]
    step = -(-len(rest) // (most - len(largest)))
    return largest + rest[::step]


def _known(run: RecordedRun, field: str) -> list[tuple[float, JobRow]]:
    return [(value, job) for job in run.jobs if (value := getattr(job, field)) is not None]


def _by_size(runs: Sequence[RecordedRun], field: str, title: str) -> Spec | None:
    rows = [
        {"pods": job.pods, "value": value, "queue": job.queue or "-", "run": run.name, "job": job.job}
        for run in runs
        for value, job in most_telling(_known(run, field), MOST_POINTS // len(runs))
    ]
    largest = max((job.pods for run in runs for job in run.jobs), default=0)
    sizes = [step * 10**power for power in range(7) for step in (1, 2, 5) if step * 10**power <= largest]
    encoding: Spec = {
        "x": {
            "field": "pods",
            "type": "quantitative",
            "title": "pods of the job",
            "scale": {"type": "symlog"},
            "axis": {"values": sizes, "labelOverlap": True},
        },
        "y": {"field": "value", "type": "quantitative", "title": title, "scale": _scale(field, rows)},
        "color": {"field": "queue", "type": "nominal", "legend": SHORT_WORDS},
        "tooltip": [{"field": "job"}, {"field": "pods"}, {"field": "value", "title": title}, {"field": "queue"}],
    }
    if len(runs) > 1:
        encoding["shape"] = {"field": "run", "type": "nominal"}
    name = title.partition(" (")[0].capitalize()
    return plot(rows, {"type": "point", "filled": True, "opacity": 0.6, "size": 30}, encoding, f"{name} by size")


def _fragmentation(runs: Sequence[RecordedRun]) -> Spec | None:
    unit, axis = time_axis(runs)
    rows = [
        {"t": round(start / unit, 4), "part": value, "resource": resource, "run": run.name}
        for run in runs
        for resource in _resources(runs)
        for start, value in _thinned(run.measures.starts_s, _of_all(run, "fragmentation", resource))
    ]
    encoding = {
        "x": axis,
        "y": {
            "field": "part",
            "type": "quantitative",
            "title": "of what is free, on nodes in use",
            "axis": {"format": "%"},
        },
        **_lines(runs, "resource"),
    }
    return plot(rows, {"type": "line", "interpolate": "step-after"}, encoding, "Fragmentation")
