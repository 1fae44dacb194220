"""A report tells what a journal holds, opens anywhere, and shows names as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from playwright.sync_api import expect

from pumice.core.messages.decisions import Evict
from pumice.core.messages.events import Evicted
from pumice.questions.adviser.reasons import WaitCode, WaitNumber, waits_for
from pumice.questions.adviser.wait_reasons import WaitReasons
from pumice.questions.measures.measures import ResourceSummary
from pumice.questions.report.charts import charts, drawn, most_telling, waiting_jobs
from pumice.questions.report.cycle_reasons import CycleReasons
from pumice.questions.report.page import page
from pumice.questions.report.recorded import PodSlice, RecordedRun, recorded
from pumice.storage import codec
from pumice.storage.journal import DECISION, OUTCOME, Record
from pumice.storage.memory import MemoryJournal
from tests.kit import gang, node, queue
from tests.kit.browser import ABSENT, CHROMIUM, show
from tests.kit.browser_pages import opened
from tests.kit.recorded import BEGAN, api, on
from tests.pumice.cli.terminal import pumice

drawing = pytest.importorskip("vl_convert", reason="vl-convert is not installed: pip install 'pumice[report]'")

MARKS = 'class="marks" width='


def waits(second: float, code: WaitCode, *pods: str, jobs: tuple[str, ...] = (), lacking: str = "") -> CycleReasons:
    """The reasons of these pods and PodGroups in a cycle."""
    numbers = [WaitNumber.of(lacking, 2000.0, 0.0, 1000.0, "all nodes")] if lacking else []
    reason = waits_for(code, "", numbers=numbers)
    return CycleReasons(BEGAN + second, WaitReasons(dict.fromkeys(jobs, reason), dict.fromkeys(pods, reason)))


def evicted(second: float, pod: dict[str, Any], winner: str) -> list[Record]:
    victim = pod["metadata"]["namespace"], pod["metadata"]["name"], pod["metadata"]["uid"]
    decision = Evict(*victim, "n0", "", "preempted", winner, "preempt")
    return [
        Record(DECISION, codec.encode(decision), at=BEGAN + second),
        Record(OUTCOME, codec.encode(Evicted("1/u", 1, *victim)), at=BEGAN + second),
        api(second, on(pod, "n0"), "DELETED"),
    ]


def records(node_name: str = "n0") -> list[Record]:
    """Two gangs of one that evict each other, and one that waits for ever."""
    one, first = gang("one", pods=1, phase="Inqueue")
    two, second = gang("two", pods=1, phase="Inqueue")
    huge, third = gang("huge", pods=1, phase="Inqueue")
    again = {**first, "metadata": {**first["metadata"], "uid": "again"}}
    names = [f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in (first, second)]
    return [
        api(0, node(node_name), "ADDED"),
        api(0, queue("default"), "ADDED"),
        *(api(0, each, "ADDED") for each in (one, first, two, second, huge, third)),
        api(2, on(first, node_name)),
        *evicted(10, first, names[1]),
        api(11, on(second, node_name)),
        api(12, again, "ADDED"),
        *evicted(20, second, names[0]),
        api(21, on(again, node_name)),
        api(40, on(again, node_name, "Succeeded")),
    ]


@pytest.fixture(scope="module")
def read() -> Callable[..., RecordedRun]:
    def reads(name: str = "run", **more: Any) -> RecordedRun:
        async def whole() -> RecordedRun:
            journal = MemoryJournal()
            await journal.append(records(**more))
            return await recorded(journal, name, [waits(1, WaitCode.NO_NODE_ALLOWED, "default/huge-0")])

        return anyio.run(whole)

    return reads


def test_who_evicted_whom_and_back_is_a_loop(read: Callable[..., RecordedRun]) -> None:
    run = read()
    assert run.evictions == {("default/one", "default/two", "preempt"): 1, ("default/two", "default/one", "preempt"): 1}
    assert run.loops == [("default/one", "default/two", 1, 1)]
    told = page([run], {})
    assert "Eviction loops" in told
    assert "<td class=job>default/one</td><td class=job>default/two</td><td class=n>1</td><td class=n>1</td>" in told


def test_pods_wait_for_a_reason_until_they_are_bound(read: Callable[..., RecordedRun]) -> None:
    run = read()
    assert run.waiting == {"NoNodeAllowed": 1}
    assert [run.reasons["NoNodeAllowed"][second] for second in (0, 5)] == [1.0, 1.0]
    assert run.reasons["not looked at yet"][0] == pytest.approx(2.0)
    assert run.reasons["not looked at yet"][5] == pytest.approx(1.0)
    assert run.waited_for["default/one"] == pytest.approx({"not looked at yet": 2.0 + 9.0})
    told = page([run], {})
    huge = next(row for row in told.split("<tr>") if row.startswith("<td class=job>default/huge</td>"))
    assert huge.endswith("<td colspan=12>40 s: NoNodeAllowed</td></tr>")


def test_pods_are_drawn_on_their_nodes(read: Callable[..., RecordedRun]) -> None:
    spans = [(one.node, one.begun, one.ended, one.evicted) for one in read().slices]
    assert spans == [("n0", 2, 10, True), ("n0", 11, 20, True), ("n0", 21, 40, False)]


def pods(node_name: str, *spans: tuple[float, float]) -> list[PodSlice]:
    return [PodSlice(node_name, f"p{number}", "q", begun, ended, False) for number, (begun, ended) in enumerate(spans)]


def test_of_too_many_pods_the_busiest_nodes_are_drawn_whole(read: Callable[..., RecordedRun]) -> None:
    """Also what runs to the end, which is known last; a node drawn in part would look idle."""
    late = pods("late", (0, 1), (1, 2), (2, 90))
    most, some = pods("most", *((at, at + 10) for at in range(0, 100, 10))), pods("some", (0, 3), (3, 6))
    assert drawn([*some, *most, *late], 15) == ([*most, *late, *some], 3, 3, 0)
    assert drawn([*some, *most, *late], 14) == ([*most, *late], 2, 3, 0)
    alone = drawn([*some, *most, *late], 5)
    assert (alone.nodes, alone.all_nodes, alone.left_out, len(alone.slices)) == (1, 3, 5, 5)
    assert max(one.ended for one in alone.slices) > 50, "all over the run"
    spec = charts([replace(read(), slices=[*late, *(one for each in range(90) for one in pods(f"n{each}", (0, 1)))])])
    assert spec["nodes"]["title"] == "Pods on nodes (the 80 busiest of 91)"
    assert len(spec["nodes"]["data"]["values"]) == 82
    assert "stroke" not in spec["nodes"]["encoding"]
    assert charts([read()])["nodes"]["encoding"]["stroke"]["legend"]["values"] == ["evicted"]


def test_every_plot_can_be_drawn(read: Callable[..., RecordedRun]) -> None:
    for runs, numbers in (([read("a")], [""]), ([read("a"), read("b")], ["-1", "-2"])):
        found = charts(runs)
        assert {
            "utilisation",
            *([f"{name}{of}" for name in ("queues", "waiting", "stages", "nodes") for of in numbers]),
            "waits",
            "slowdowns",
            "wait-sizes",
            "sizes",
            "fragmentation",
        } <= set(found)
        for spec in found.values():
            assert "<svg" in drawing.vegalite_to_svg(spec)


def test_an_axis_says_what_is_there_where_all_jobs_are_alike(read: Callable[..., RecordedRun]) -> None:
    """Of a domain of one point Vega's only tick is labelled 0."""
    run = read()
    (job, *_) = run.jobs
    for wait, slowdown in ((30.0, 1.0), (0.0, 1.0)):
        alike = replace(run, jobs=[replace(job, wait_s=wait, bounded_slowdown=slowdown)] * 3)
        found = charts([alike])
        for name in ("waits", "slowdowns", "wait-sizes", "sizes"):
            svg = drawing.vegalite_to_svg(found[name])
            ticks = re.findall(
                r"(?:X|Y)-axis titled '[^']*(?:wait|slowdown)[^']*' for a \w+ scale with values from (\S+) to (\S+)\"",
                svg,
            )
            lowest, highest = (float(each) for each in ticks[0])
            assert lowest == (0 if "wait" in name else 1)
            assert highest > lowest
            assert highest >= (wait if "wait" in name else slowdown)


def test_two_runs_stand_beside_each_other(read: Callable[..., RecordedRun]) -> None:
    before, after = read("before"), read("after")
    after = replace(after, measures=replace(after.measures, summary={**after.measures.summary, "evictions": 5}))
    told = page([before, after], {})
    assert "<th class=n>before</th><th class=n>after</th><th class=n>difference</th>" in told
    assert "<td class=job>evictions</td><td class=n>2</td><td class=n>5</td><td class=n>3</td>" in told


def admitted_late() -> list[Record]:
    """A gang of two that is kept out for 848 s, and waits for a node for 5 s then; another one is never let in."""
    group, *pods = gang("late", pods=2)
    never, _ = gang("never", pods=1)
    inqueue = {**group, "status": {"phase": "Inqueue"}}
    return [
        *(api(0, each, "ADDED") for each in (node("n0"), queue("default"), group, never)),
        api(848, inqueue),
        *(api(848, each, "ADDED") for each in pods),
        *(api(853, on(each, "n0")) for each in pods),
        *(api(900, on(each, "n0", "Succeeded")) for each in pods),
    ]


KEPT_OUT = [
    waits(1, WaitCode.QUEUE_CAPABILITY, jobs=("default/late",), lacking="cpu"),
    waits(2, WaitCode.OVERCOMMIT, jobs=("default/never",), lacking="cpu"),
    waits(300, WaitCode.OVERCOMMIT, jobs=("default/late",), lacking="cpu"),
    waits(849, WaitCode.NO_NODE_ALLOWED, "default/late-0", "default/late-1"),
]
"""Cycles of `admitted_late`."""


def of_records(given: list[Record], reasons: Sequence[CycleReasons] = ()) -> RecordedRun:
    async def whole() -> RecordedRun:
        journal = MemoryJournal()
        await journal.append(given)
        return await recorded(journal, "run", reasons)

    return anyio.run(whole)


def test_a_wait_is_split_in_admission_and_nodes() -> None:
    run = of_records(admitted_late(), KEPT_OUT)
    by_name = {job.job: job for job in run.jobs}
    late, never = by_name["default/late"], by_name["default/never"]
    assert (late.wait_s, late.admission_s, late.scheduling_s) == (853, 848, 5)
    assert (never.wait_s, never.admission_s, never.scheduling_s) == (None, None, None)
    summary = run.measures.summary
    assert (summary["mean_wait_s"], summary["mean_admission_s"], summary["mean_scheduling_s"]) == (876.5, 874, 2.5)
    told = page([run], {})
    assert (
        "<td colspan=12>548 s: admission: Overcommit (cpu); 300 s: admission: QueueCapability (cpu); "
        "5 s: NoNodeAllowed</td>"
    ) in told
    assert "<td colspan=12>900 s: admission: Overcommit (cpu)</td>" in told


def test_jobs_wait_for_admission_and_then_for_nodes_over_time() -> None:
    found = waiting_jobs(of_records(admitted_late()))
    assert [found["admission"][second] for second in (0, 847, 848, 899)] == [2, 2, 1, 1]
    assert [found["nodes"][second] for second in (847, 848, 852, 853)] == [0, 1, 1, 0]


def test_pods_that_are_there_before_admission_wait_for_it() -> None:
    """Pods of a Deployment or a gang of one's own exist while their PodGroup is kept out."""
    group, first = gang("early", pods=1)
    run = of_records(
        [
            *(api(0, each, "ADDED") for each in (node("n0"), group, first)),
            api(60, {**group, "status": {"phase": "Inqueue"}}),
            api(70, on(first, "n0")),
        ],
        [waits(61, WaitCode.IN_USE, "default/early-0", lacking="cpu")],
    )
    assert run.admitted_for == {"default/early": {"nothing was said": 60.0}}
    assert run.waited_for == {"default/early": {"InUse (cpu)": 10.0}}


CONFIGURED = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}]\n'


def test_two_configurations_are_compared(read: Callable[..., RecordedRun]) -> None:
    one = replace(read("one"), configurations=["old", CONFIGURED])
    other = replace(read("other"), configurations=[CONFIGURED.replace("enqueue, ", "<b>")])
    told = page([one, other], {})
    assert (
        "<del>-actions: &quot;enqueue, allocate&quot;</del><ins>+actions: &quot;&lt;b&gt;allocate&quot;</ins>" in told
    )
    assert " tiers:\n" in told
    same = page([one, replace(other, configurations=["# the same\n" + CONFIGURED])], {})
    assert "one and other ran under the same configuration" in same
    assert "The two configurations" not in page([one], {})


def test_a_resource_that_one_of_two_runs_has_is_drawn_of_that_one(read: Callable[..., RecordedRun]) -> None:
    one, other = read("one"), read("other")
    cpu = one.measures.summary["resources"]["cpu"]
    thing: ResourceSummary = {**cpu, "held_s": 5.0, "utilisation": 0.1}
    held = {**one.measures.summary["resources"], "example.com/thing": thing}
    series = [
        replace(each, resource="example.com/thing")
        for each in one.measures.series
        if each.resource == "cpu" and not each.queue
    ]
    measures = replace(
        one.measures,
        summary={**one.measures.summary, "resources": held},
        series=[*one.measures.series, *series],
    )
    found = charts([replace(one, measures=measures), other])
    for name in ("utilisation", "fragmentation"):
        rows = [row for row in found[name]["data"]["values"] if row["resource"] == "example.com/thing"]
        assert {row["run"] for row in rows} == {"one"}


def test_an_empty_journal_has_a_report(read: Callable[..., RecordedRun]) -> None:
    async def empty() -> RecordedRun:
        return await recorded(MemoryJournal(), "nothing")

    run = anyio.run(empty)
    assert "<h1>nothing</h1>" in page([run], charts([run]))


def test_names_are_text_and_nobody_else_is_asked(read: Callable[..., RecordedRun]) -> None:
    run = read("</title><script>alert(1)</script>", node_name="</script><script>alert(2)</script>")
    told = page([run], charts([run]))
    assert "<script>alert" not in told
    outside = re.findall(r"""(?:src|href)\s*=\s*["']?(https?:[^"'\s>]+)""", told.split("<script type=module>")[0])
    assert outside == []


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason=ABSENT)
def test_a_browser_draws_it_without_an_error(read: Callable[..., RecordedRun], tmp_path: Path) -> None:
    run = read("a <b>run</b> \u202eof\u202c \U0001f30b", node_name="<script>alert(2)</script>")
    plots = charts([run])
    (tmp_path / "report.html").write_text(page([run], plots), "utf-8")
    shown = show((tmp_path / "report.html").as_uri(), tmp_path)
    assert shown.console == []
    assert shown.html.count(MARKS) == len(plots)
    assert "&lt;script&gt;alert(2)" in shown.html


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason=ABSENT)
@pytest.mark.parametrize(("width", "beside"), [(390, 1), (1280, 2), (1920, 2)])
def test_two_runs_plots_stand_side_by_side_where_there_is_room(
    read: Callable[..., RecordedRun], tmp_path: Path, width: int, beside: int
) -> None:
    one, other = read("one"), read("other")
    (tmp_path / "report.html").write_text(page([one, other], charts([one, other])), "utf-8")
    with opened(width=width, height=900) as (shown, wrong):
        shown.goto((tmp_path / "report.html").as_uri())
        expect(shown.locator(".chart svg").last).to_be_attached()
        for name in ("queues", "waiting", "nodes"):
            first, second = (shown.locator(f"#{name}-{number}").bounding_box() for number in (1, 2))
            assert first is not None
            assert second is not None
            assert (first["y"] == second["y"]) == (beside == 2)
            assert first["width"] > 0.8 * width / beside
            drawn_width = shown.locator(f"#{name}-1 svg").evaluate("each => each.getBoundingClientRect().width")
            assert drawn_width == pytest.approx(first["width"], abs=12)
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        assert wrong == []


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason=ABSENT)
def test_plots_scroll_on_a_phone_and_the_page_does_not(read: Callable[..., RecordedRun], tmp_path: Path) -> None:
    run = read()
    (tmp_path / "report.html").write_text(page([run], charts([run])), "utf-8")
    with opened(width=390, height=844) as (shown, wrong):
        shown.goto((tmp_path / "report.html").as_uri())
        expect(shown.locator(".chart svg").last).to_be_attached()
        assert shown.evaluate("document.documentElement.scrollWidth") <= 390
        assert wrong == []


def test_of_more_jobs_than_are_drawn_the_slowest_are(read: Callable[..., RecordedRun]) -> None:
    """Who comes late waits as well as who comes early."""
    (job, *_) = read().jobs
    waits = [0.1] * 90 + [float(number) for number in range(10)]
    assert most_telling([(wait, job) for wait in waits], 200) == [(wait, job) for wait in waits]
    told = [wait for wait, _ in most_telling([(wait, job) for wait in waits], 20)]
    assert told[:9] == [9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
    assert len(told) <= 20
    assert told[-1] == 0.1


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason=ABSENT)
def test_nothing_is_cut_at_the_side(read: Callable[..., RecordedRun], tmp_path: Path) -> None:
    """Legends, the table of jobs with its stories, and two runs beside each other."""
    one, other = read("one"), read("other")
    (tmp_path / "report.html").write_text(page([one, other], charts([one, other])), "utf-8")
    with opened() as (shown, wrong):
        shown.goto((tmp_path / "report.html").as_uri())
        expect(shown.locator(".chart svg").last).to_be_attached()
        wider = "all => all.filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.innerText)"
        assert shown.locator(".chart, .wide").evaluate_all(wider) == []
        assert shown.locator("tr.story").first.inner_text().startswith("40 s: ")
        assert wrong == []


def test_the_command_writes_the_page_and_the_plots(tmp_path: Path) -> None:

    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all([node("n0"), *gang("g", pods=2, duration="5s")]), "utf-8")
    run = ("run", "-f", tmp_path / "all.yaml", "--time", "virtual", "--until", "idle", "--db", tmp_path / "j.db")
    assert pumice(*run).code == 0
    said = pumice("report", tmp_path / "j.db", "-o", tmp_path / "r.html", "--svg", tmp_path / "plots")
    assert said.code == 0, said.err
    assert (tmp_path / "r.html").read_text("utf-8").startswith("<!doctype html>")
    assert (tmp_path / "r.html").stat().st_size < 5_000_000
    assert {path.read_text("utf-8")[:4] for path in (tmp_path / "plots").iterdir()} == {"<svg"}
    assert pumice("report", *[tmp_path / "j.db"] * 3).code == 2
