# SPDX-License-Identifier: Apache-2.0
"""The report as one HTML file, with the JavaScript that draws it inside; it sends no requests."""

from __future__ import annotations

from collections import Counter
from difflib import unified_diff
from html import escape
from typing import TYPE_CHECKING, Any, Final

import msgspec
import yaml

from pumice.cluster.kube.statuses import timestamp
from pumice.core.objects.metadata import Object
from pumice.errors import demand

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pumice.questions.measures.jobs import JobRow
    from pumice.questions.report.recorded import RecordedRun

SLOWEST: Final = 20
WORDS: Final = ("job", "queue", "state")
SPLIT: Final = ("for admission (s)", "for nodes (s)")
REASONS: Final = 3
"""Of one job."""
LARGE: Final = 10_000.0
"""Numbers from here on are shown without fractions."""
STYLE: Final = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5b6472; --paper: #fff; --line: #d9dde3; --head: #f3f5f8 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e5e8ec; --soft: #9aa3af; --paper: #14181f; --line: #2d343f; --head: #1c222b }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 120rem; padding: 0 1rem }
h1 { font-size: 1.6rem; margin: 0 } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem }
p.of { color: var(--soft); margin: .2rem 0 1rem }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 34rem), 1fr)); column-gap: 2rem;
  grid-auto-flow: dense }
.charts > * { min-width: 0 } .charts > .whole { grid-column: 1 / -1 }
.chart { overflow-x: auto; display: block !important; width: 100% }
.tables { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 54rem), 1fr)); column-gap: 2rem }
.tables > * { min-width: 0 }
table { border-collapse: collapse; width: 100%; font-size: .9rem } .wide { overflow-x: auto }
th, td { text-align: left; padding: .3rem .4rem; border-bottom: 1px solid var(--line); unicode-bidi: isolate }
th { background: var(--head); font-weight: 600 } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
th:not(.n) { white-space: nowrap } td.job { overflow-wrap: anywhere; min-width: 4.5rem }
td:first-child { min-width: 6rem }
tr.story td { color: var(--soft); padding: 0 .6rem .5rem 1.8rem; overflow-wrap: anywhere }
tr:has(+ tr.story) td { border-bottom: 0 }
pre { background: var(--head); padding: .8rem; overflow-x: auto; font-size: .85rem }
pre del, pre ins { display: block; text-decoration: none } pre del { background: #c6282833 }
pre ins { background: #2e7d3233 } summary { cursor: pointer; color: var(--soft) }
"""
SCRIPT_END: Final = "<\\/script"
"""Spelling in JavaScript that does not end the script."""
DRAW: Final = """
window.vegaEmbed = vegaEmbed;
for (const script of document.querySelectorAll('script[type="application/json"]')) {
  vegaEmbed('#' + script.dataset.chart, JSON.parse(script.textContent), {actions: false, renderer: 'svg'});
}
"""


def page(runs: Sequence[RecordedRun], charts: dict[str, Object]) -> str:
    """Return the whole file. RequestError when there are charts and vl-convert is not installed."""
    title = " and ".join(run.name for run in runs)
    parts = [
        "<!doctype html><html lang=en><head><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width, initial-scale=1'>",
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        *(_what_ran(run) for run in runs),
        _summary(runs),
        f"<div class=charts>{''.join(map(_charts, _rows(charts)))}</div>" if charts else "",
        _configurations(runs),
        f"<div class=tables>{''.join(f'<div>{_tables(run, runs)}</div>' for run in runs)}</div>",
        f"<script type=module>{_drawing()}</script>" if charts else "",
        "</body></html>\n",
    ]
    return "".join(parts)


def _drawing() -> str:
    script: str = demand("vl_convert", "report", "Plots").javascript_bundle(DRAW)
    return script.replace("</script", SCRIPT_END)


def _what_ran(run: RecordedRun) -> str:
    found = run.measures
    span = f"{timestamp(found.began)} to {timestamp(found.began + found.horizon_s)}"
    words = (
        f"{run.name}: {span}, {run.cycles} cycles, {found.summary['jobs']} jobs with {found.summary['pods']} pods, "
        f"{found.summary['evictions']} evictions"
    )
    return f"<p class=of>{escape(words)}</p>"


FIGURES: Final = (
    ("jobs", "jobs"),
    ("ended", "of them ended"),
    ("unstarted", "of them never started"),
    ("pods", "pods"),
    ("makespan_s", "makespan (s)"),
    ("mean_wait_s", "mean wait (s)"),
    ("median_wait_s", "median wait (s)"),
    ("p95_wait_s", "95 % waited at most (s)"),
    ("mean_admission_s", "of the mean wait: for admission (s)"),
    ("mean_scheduling_s", "of the mean wait: for nodes (s)"),
    ("mean_bounded_slowdown", "mean bounded slowdown"),
    ("evictions", "evictions"),
    ("killed", "pods killed by restarts"),
    ("restarts", "restarts of jobs"),
    ("lost_cpu_s", "lost work (cpu × s)"),
    ("jain_of_jobs", "Jain's index of jobs"),
    ("jain_of_queues", "Jain's index of queues"),
)


def _summary(runs: Sequence[RecordedRun]) -> str:
    """Return a column for each run; with two, the difference of the second one."""
    figures: list[Object] = [{**run.measures.summary} for run in runs]
    rows = [[words, *(each[key] for each in figures)] for key, words in FIGURES]
    for resource in dict.fromkeys(name for run in runs for name in run.measures.summary["resources"]):
        of: list[Object] = [each["resources"].get(resource, {}) for each in figures]
        rows.append([f"{resource}: utilisation", *(one.get("utilisation") for one in of)])
        rows.append([f"{resource}: fragmentation", *(one.get("fragmentation") for one in of)])
    head = ["", *(run.name for run in runs)]
    if len(runs) > 1:
        head.append("difference")
        for row in rows:
            row.append(_difference(row[1], row[2]))
    return "<h2>In figures</h2>" + _table(head, rows)


def _difference(before: Any, after: Any) -> float | None:
    return None if before is None or after is None else round(after - before, 4)


def _rows(charts: Mapping[str, Object]) -> list[dict[str, Object]]:
    """Group the plots by subject: those of two runs go side by side."""
    rows: dict[str, dict[str, Object]] = {}
    for name, spec in charts.items():
        base, _, number = name.rpartition("-")
        rows.setdefault(base if number.isdecimal() else name, {})[name] = spec
    return list(rows.values())


def _charts(row: Mapping[str, Object]) -> str:
    drawn = "".join(_chart(name, spec) for name, spec in row.items())
    wide = len(row) > 1 or "nodes" in row  # pods on nodes are small: they have the whole width
    return f"<div class='charts whole'>{drawn}</div>" if wide else drawn


def _chart(name: str, spec: Object) -> str:
    """Return a chart. Its data stands in the page as text that is not run. It is as wide as there is room."""
    fitting = {
        **spec,
        "title": None,
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding", "resize": True},
    }
    data = msgspec.json.encode(fitting).decode().replace("<", "\\u003c")
    return (
        f"<div><h2>{escape(spec['title'])}</h2><div class=chart id='{name}'></div>"
        f"<script type='application/json' data-chart='{name}'>{data}</script></div>"
    )


def _configurations(runs: Sequence[RecordedRun]) -> str:
    """Compare the configurations of two runs, which is why they differ, as a rule."""
    texts = [run.configurations[-1].splitlines() if run.configurations else [] for run in runs]
    if len(texts) < 2 or not all(texts):
        return ""
    names = [escape(run.name) for run in runs]
    head = "<h2>The two configurations</h2>"
    if _meaning(texts[0]) == _meaning(texts[1]):
        return f"{head}<p class=of>{names[0]} and {names[1]} ran under the same configuration.</p>"
    lines = [*unified_diff(texts[0], texts[1], n=sum(map(len, texts)), lineterm="")][3:]  # without its own heading
    marked = "".join(f"<{tag}>{escape(line)}</{tag}>" if tag else escape(line) + "\n" for line, tag in _marked(lines))
    return f"{head}<p class=of>−: {names[0]} alone, +: {names[1]} alone.</p><pre>{marked}</pre>"


def _marked(lines: Sequence[str]) -> Iterable[tuple[str, str]]:
    return ((line, {"-": "del", "+": "ins"}.get(line[:1], "")) for line in lines)


def _meaning(lines: Sequence[str]) -> Any:
    """Return what stands in a configuration, for two of another form may mean one thing."""
    try:
        return yaml.safe_load("\n".join(lines))
    except yaml.YAMLError:
        return lines


def _tables(run: RecordedRun, runs: Sequence[RecordedRun]) -> str:
    return "".join(_told(run, named=len(runs) > 1))


def _told(run: RecordedRun, *, named: bool) -> Iterable[str]:
    """Return tables of one run: jobs that still wait and why, evictions, and the slowest jobs with their story."""
    of = f" of {escape(run.name)}" if named else ""
    if run.waiting:
        waiting = [[why, count] for why, count in run.waiting.most_common(SLOWEST)]
        yield f"<h2>Waiting at the end{of}</h2>" + _table(["reason", "pods"], waiting)
    if run.standing:
        classes = Counter(f"{each.wait.wait_class} ({each.wait.code})" for each in run.standing)
        of_all = ", ".join(f"{name} {number}" for name, number in classes.most_common())
        standing = [
            [each.job, each.queue, each.wait.code.value, each.wait.sentence, each.wait.helps]
            for each in run.standing[:SLOWEST]
        ]
        yield f"<h2>What jobs wait for{of}</h2><p class=of>{escape(of_all)}; in the order in which they are tried.</p>"
        yield _table(["job", "queue", "reason", "waits for", "what would help"], standing)
    if run.evictions:
        rows = [
            [victim, winner or "-", action or "-", count]
            for (victim, winner, action), count in run.evictions.most_common(SLOWEST)
        ]
        yield f"<h2>Evictions{of}</h2>" + _table(["victim", "made room for", "action", "pods"], rows)
    if loops := run.loops:
        rows = [[one, other, count, back] for one, other, count, back in loops[:SLOWEST]]
        yield f"<h2>Eviction loops{of}</h2>" + _table(["job", "and job", "the one evicted", "and back"], rows)
    yield f"<h2>The slowest jobs{of}</h2>" + _slowest(run)
    if run.configurations:
        text = f"<pre>{escape(run.configurations[-1])}</pre>"
        shown = f"<details><summary>the whole text</summary>{text}</details>" if named else text
        yield f"<h2>Configuration{of}</h2>{shown}"


def _slowest(run: RecordedRun) -> str:
    """Return the jobs that waited longest, with their story in seconds after the beginning."""
    horizon = run.measures.horizon_s
    jobs = sorted(run.jobs, key=lambda job: (-(horizon - job.submitted if job.wait_s is None else job.wait_s), job.job))
    names = ("submitted", "admitted", "started", "ended")
    head = [*WORDS, "pods", *(name.replace("_", " ") for name in names), "wait (s)", *SPLIT, "evictions"]
    lines = (_story(job, names, run) for job in jobs[:SLOWEST])
    words = (
        "In seconds after the beginning. A wait is for admission, until the PodGroup goes from Pending to Inqueue, and "
        "for nodes after that. Below each job what it and its pods waited for, most of the time first."
    )
    return f"<p class=of>{words}</p>" + _framed(
        head, "".join(lines), [number >= len(WORDS) for number in range(len(head))]
    )


def _story(job: JobRow, names: Sequence[str], run: RecordedRun) -> str:
    """Return a row of figures, and one of words."""
    times = (getattr(job, name) for name in names)
    waited = {f"admission: {why}": seconds for why, seconds in run.admitted_for.get(job.job, {}).items()}
    waited |= {why: seconds / max(job.pods, 1) for why, seconds in run.waited_for.get(job.job, {}).items()}
    most = sorted(waited.items(), key=lambda each: (-each[1], each[0]))[:REASONS]
    said = "; ".join(f"{seconds:,.4g} s: {why}" for why, seconds in most if seconds > 0)
    waits = (job.wait_s, job.admission_s, job.scheduling_s)
    figures = [job.job, job.queue or "-", job.state, job.pods, *times, *waits, job.evictions]
    story = f"<tr class=story><td colspan={len(figures)}>{escape(said)}</td></tr>" if said else ""
    return _row(figures) + story


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [*rows]
    right = [any(isinstance(row[place], int | float) for row in lines) for place in range(len(head))]
    return _framed(head, "".join(map(_row, lines)), right)


def _row(values: Sequence[Any]) -> str:
    return f"<tr>{''.join(map(_cell, values))}</tr>"


def _framed(head: Sequence[str], lines: str, right: Sequence[bool]) -> str:
    """Return a framed table. `right`: True for columns of numbers."""
    cells = "".join(
        f"<th{' class=n' if number else ''}>{escape(name)}</th>" for name, number in zip(head, right, strict=True)
    )
    return f"<div class=wide><table><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table></div>"


def _cell(value: object) -> str:
    if value is None:
        return "<td class=n>–</td>"
    if isinstance(value, int | float):
        text = f"{value:,.4g}" if isinstance(value, float) and value < LARGE else f"{value:,.0f}"
        return f"<td class=n>{text}</td>"
    return f"<td class=job>{escape(str(value))}</td>"
