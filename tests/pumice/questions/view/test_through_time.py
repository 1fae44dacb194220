"""A journal that nobody runs, looked at in one cycle after another: every part of the page follows the slider."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.kit.browser import ABSENT, CHROMIUM
from tests.kit.browser_pages import opened
from tests.kit.jobs import gang
from tests.kit.nodes import nodes
from tests.pumice.questions.view.viewed import viewed_run

pytestmark = [pytest.mark.skipif(CHROMIUM is None, reason=ABSENT), pytest.mark.slow]
EMPTY = ("resources", "nodes", "groups", "group", "cordoned", "ready", "allocatable")


def objects() -> list[dict[str, Any]]:
    """A gang that runs to the end, and one that comes later and ends."""
    stays, comes = gang("stays", pods=1, cpu="2", duration="0"), gang("comes", pods=1, cpu="2", duration="4s")
    for each in comes:
        each["metadata"].setdefault("annotations", {})["pumice.dev/arrival"] = "6s"
    return [*nodes(1, cpu="8"), *stays, *comes]


@pytest.fixture(scope="module")
def viewed(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with viewed_run(tmp_path_factory.mktemp("run"), objects()) as url:
        yield url


def put(page: Page, place: int) -> None:
    """The slider to a stop; -1: the last."""
    last = int(page.locator("input[type=range]").get_attribute("max") or 0)
    page.locator("input[type=range]").fill(str(place if place >= 0 else last))


def stop_with(page: Page, pods: int) -> int:
    """The first stop at which so many are on the node."""
    asked = f"{page.url.partition('#')[0]}apis/pumice.dev/v1"
    numbers = [number for number, _, _ in page.request.get(f"{asked}/courses").json()["cycles"]]
    there = (page.request.get(f"{asked}/boards/{number}?node=n0").json()["residents"] for number in numbers)
    return next(place for place, residents in enumerate(there) if len(residents) == pods)


def test_a_nodes_pods_are_those_of_the_cycle(viewed: str) -> None:
    """Also of cycles that are looked at one right after the other."""
    with opened() as (page, wrong):
        page.goto(f"{viewed}/#cluster/n0")
        panel = page.locator("aside h3")
        expect(panel).to_have_text("1 pod")
        none, both = stop_with(page, 0), stop_with(page, 2)
        for place, told in ((none, "0 pods"), (both, "2 pods"), (none, "0 pods"), (-1, "1 pod")):
            put(page, place)
            expect(panel).to_have_text(told)
        expect(page.locator("aside td").nth(1)).to_contain_text("created ")
        page.goto(f"{viewed}/#cluster/n9")
        expect(page.locator("aside")).to_contain_text("no such node")
        assert wrong == []


def test_a_pod_that_runs_is_drawn_up_to_the_moment_that_is_looked_at(viewed: str) -> None:
    with opened() as (page, wrong):
        page.goto(f"{viewed}/#job/default%2Fstays")
        runs = page.locator("svg rect[fill='var(--used)']")
        expect(runs).to_have_count(1)
        x, wide = (float(runs.get_attribute(name) or 0) for name in ("x", "width"))
        assert x + wide == pytest.approx(708, abs=1)
        expect(page.locator("svg text", has_text="+").last).to_have_text("+20 s")
        page.goto(f"{viewed}/#job/default%2Fcomes")
        ended = page.locator("svg circle[fill='var(--soft)']")
        expect(ended).to_have_count(1)
        put(page, stop_with(page, 2))
        expect(ended).to_have_count(0)
        expect(runs).to_have_count(1)
        put(page, 0)
        expect(page.get_by_text("is submitted later")).to_be_visible()
        assert wrong == []


def test_a_question_that_is_turned_away_is_asked_again(viewed: str) -> None:
    turned = set[str]()

    def busy(route: Route) -> None:
        if route.request.url in turned:
            route.continue_()
        else:
            turned.add(route.request.url)
            route.fulfill(status=429, json={"message": "too many questions: 3 are being answered"})

    with opened() as (page, _):
        page.route("**/boards/**", busy)
        page.goto(f"{viewed}/#cluster/n0")
        expect(page.locator("aside h3")).to_have_text("1 pod")
        page.locator("input[type=range]").focus()
        page.keyboard.press("Home")
        both = stop_with(page, 2)
        for _ in range(both):
            page.keyboard.press("ArrowRight")
        expect(page.locator("aside h3")).to_have_text("2 pods")
        expect(page.locator("#slider output")).to_contain_text(f"cycle {both + 1} ")


def test_the_skip_link_leads_to_the_picture_and_not_to_another_view(viewed: str) -> None:
    with opened() as (page, wrong):
        page.goto(f"{viewed}/#queues")
        expect(page.locator("h2").first).to_have_text("Queues")
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_be_focused()
        assert page.url.endswith("#queues")
        expect(page.locator("h2").first).to_have_text("Queues")
        assert wrong == []


def test_a_board_without_nodes_has_none_to_choose(viewed: str) -> None:
    board: dict[str, list[str]] = {name: [] for name in (*EMPTY, "used", "releasing", "assumed", "nominated")}
    told: dict[str, Any] = {
        **board,
        "cycle": 1,
        "now": 1.0,
        "pods": {},
        "jobs": {},
        "binding": 0,
        "evicting": 0,
        "cards": {},
    }
    with opened() as (page, wrong):
        page.route("**/boards/**", lambda route: route.fulfill(json=told))
        page.goto(f"{viewed}/#cluster")
        expect(page.get_by_text("0 nodes")).to_be_visible()
        for key in ("ArrowRight", "Enter"):
            page.locator("canvas").press(key)
        assert page.url.endswith("#cluster")
        assert wrong == []


def test_the_root_has_what_its_queues_have_and_a_phone_tells_of_weights(viewed: str) -> None:
    with opened(width=390, height=844) as (page, wrong):
        page.goto(f"{viewed}/#queues")
        root = page.locator("tr", has=page.locator("td.name", has_text="root"))
        expect(root.locator("td").nth(3)).to_have_text("2 cores")
        expect(page.locator("td.name", has_text="default").first.locator(".narrow")).to_be_visible()
        expect(page.locator("td.name", has_text="default").first).to_contain_text("weight 1")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        buttons = page.locator("#slider button").evaluate_all("all => all.map((each) => each.offsetTop)")
        assert len(set(buttons)) == 1, "all buttons of the slider stand beside each other"
        assert wrong == []


FONTS = {
    "DejaVu": ['14px/1.45 "DejaVu Sans", Verdana, sans-serif', "0"],
    "larger": ['16.1px/1.45 "DejaVu Sans", Verdana, sans-serif', "0"],
    "Liberation": ['14px/1.45 "Liberation Sans", Arial, sans-serif', "0"],
    "wide": ["14px/1.45 serif", ".12em"],
}
DRESS = "([font, space]) => Object.assign(document.documentElement.style, { font, letterSpacing: space })"


@pytest.mark.parametrize("style", FONTS.values(), ids=FONTS)
@pytest.mark.parametrize("width", [360, 390])
def test_a_phone_holds_every_view_whatever_its_fonts(viewed: str, style: list[str], width: int) -> None:
    with opened(width=width, height=844) as (page, wrong):
        page.goto(viewed)
        page.evaluate(DRESS, style)  # not as a style sheet, which the page's policy refuses
        for view in ("cluster/n0", "queues", "job", "cycle", "health"):
            page.evaluate("view => { location.hash = view; }", view)
            expect(page.locator("nav a[aria-current]")).to_have_attribute("href", f"#{view.partition('/')[0]}")
            page.wait_for_timeout(300)
            wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wider <= 0, f"{view} is {wider} pixels wider than the page"
        expect(page.locator("#slider button").first).to_be_visible()
        middles = "all => all.map((each) => Math.round(each.offsetTop + each.offsetHeight / 2))"
        found = page.locator("#slider button, #slider input").evaluate_all(middles)
        assert max(found) - min(found) <= 2, "buttons and slider stand on one line"
        assert wrong == []


def test_a_rack_on_a_line_of_its_own_bears_the_name_of_its_zone(viewed: str) -> None:
    """Three racks of two zones, of which two have room beside each other."""
    labels = """import("/page/nodemap.js").then(({ NodeMap }) => {
      const groups = [["a", "r0"], ["a", "r1"], ["a", "r2"], ["b", "r3"]];
      const map = { board: { nodes: [0, 1, 2, 3], groups } };
      const found = NodeMap.prototype.flow.call(map, 260, 60, [[0], [1], [2], [3]]);
      const zones = found.labels.filter((each) => each.strong || each.text.includes("continued"));
      return zones.map((each) => each.text);
    })"""
    with opened() as (page, _):
        page.goto(viewed)
        assert page.evaluate(labels) == ["a", "↳ a, continued", "b"]


def test_the_board_is_read_beside_the_course_and_the_slider_says_so(viewed: str) -> None:
    held = list[Route]()

    def hold(route: Route) -> None:
        held.append(route)

    with opened() as (page, wrong):
        page.route("**/courses", hold)
        with page.expect_response("**/boards/newest") as board:
            page.goto(f"{viewed}/#cluster/n0")
        assert board.value.status == 200
        expect(page.locator("#slider")).to_have_text("Reading the journal…")
        held[0].continue_()
        expect(page.locator("aside h3")).to_have_text("1 pod")
        assert wrong == []
