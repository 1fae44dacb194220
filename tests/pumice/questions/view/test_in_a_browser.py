"""Every view of the page in a real browser: no error, the right numbers, names as text."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from playwright.sync_api import Page, Route, expect

from pumice.actors.gateway.page import frames
from pumice.core.messages.boards import BoardLayout, BoardRead
from tests.kit.browser import ABSENT, CHROMIUM
from tests.kit.browser_pages import opened
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.kit.queues import queue
from tests.kit.serving import Served, served
from tests.pumice.questions.view.viewed import viewed_run

pytestmark = [pytest.mark.skipif(CHROMIUM is None, reason=ABSENT), pytest.mark.slow]
HOSTILE = "<script>document.title='had'</script>"
ODD = (HOSTILE, "\u202egnirts", "\U0001f30b rack")
SIZES = ((1280, 800, False), (1280, 800, True), (390, 844, False), (390, 844, True))


def objects() -> list[dict[str, Any]]:
    """Four nodes in racks, a gang that runs and one that is too large."""
    nodes = [node(f"n{number}", cpu="8", gpus=4 * (number == 1), labels={"rack": f"r{number}"}) for number in range(4)]
    running = gang("runs", pods=4, cpu="2", queue="q1", duration="0")
    waiting = gang("waits", pods=3, cpu="7", queue="q2", created="2027-01-01T00:00:00Z")
    return [*nodes, queue("q1", weight=3), queue("q2"), *running, *waiting]


@pytest.fixture(scope="module")
def viewed(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """The address of a journal that nobody runs."""
    with viewed_run(tmp_path_factory.mktemp("run"), objects()) as url:
        yield url


def figures(page: Page, resource: str) -> str:
    """What the tile of a resource says is used."""
    return page.locator(f'.tile[data-resource="{resource}"] b').inner_text()


def fits(page: Page) -> bool:
    """Whether nothing is wider than the window."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


@pytest.mark.parametrize(("width", "height", "dark"), SIZES)
def test_every_view_of_a_journal(viewed: str, width: int, height: int, dark: bool) -> None:
    with opened(width=width, height=height, dark=dark) as (page, wrong):
        page.goto(viewed)
        expect(page.locator(".tile")).to_have_count(4)
        assert (figures(page, "cpu"), figures(page, "nvidia.com/gpu")) == ("8 of 32", "0 of 4")
        assert page.locator("html").get_attribute("data-theme") == ("dark" if dark else "light")
        assert fits(page)
        page.goto(f"{viewed}/#queues")
        expect(page.locator("table a", has_text="default/waits")).to_be_visible()
        assert fits(page)
        page.goto(f"{viewed}/#job/default%2Fwaits")
        expect(page.locator("td", has_text="3/3 tasks in gang unschedulable").first).to_be_visible()
        expect(page.locator("svg[aria-label*='went through']")).to_be_visible()
        assert fits(page)
        page.goto(f"{viewed}/#cycle/newest/default%2Fwaits-0")
        expect(page.get_by_text("0 of 4 nodes fit")).to_be_visible()
        expect(page.locator("td", has_text="resources: Insufficient cpu").first).to_be_visible()
        assert fits(page)
        assert "null" not in page.locator("main").inner_text()
        page.goto(f"{viewed}/#health")
        expect(page.get_by_text("Bound 4")).to_be_visible()
        assert fits(page)
        assert wrong == []


def test_the_slider_goes_back_to_before_anything_ran(viewed: str) -> None:
    with opened() as (page, wrong):
        page.goto(f"{viewed}/#cluster/n0")
        expect(page.locator("aside")).to_contain_text("1 pod")
        cycles = page.request.get(f"{viewed}/apis/pumice.dev/v1/courses").json()["cycles"]
        place, number = next((at, cycle) for at, (cycle, _, decisions) in enumerate(cycles) if decisions)
        page.locator("input[type=range]").fill(str(place))
        expect(page.locator('.tile[data-resource="cpu"] b')).to_have_text("0 of 32")
        expect(page.locator("#slider output")).to_contain_text(f"cycle {number} ")
        page.keyboard.press("2")
        expect(page.locator("h1, h2").first).to_have_text("Queues")
        assert wrong == []


@pytest.mark.parametrize("odd", ODD)
def test_odd_names_are_text(viewed: str, odd: str) -> None:
    """Admission lets no such name in; whoever else wrote the journal may have."""

    def renamed(route: Route) -> None:
        text = route.fetch(url=re.sub("node=[^&]*", "node=n0", route.request.url)).text()
        for name in ("n0", "r0", "q1", "default/runs-0", "waits", "Insufficient cpu"):
            text = re.sub(rf"(?<![\w-]){name}(?![\w-])", json.dumps(odd)[1:-1].replace("\\", "\\\\"), text)
        route.fulfill(body=text, content_type="application/json")

    with opened() as (page, wrong):
        page.route("**/apis/**", renamed)
        for view in ("cluster", "queues", "job/default%2Fwaits", "cycle/newest/default%2Fwaits-0", "health"):
            page.goto(f"{viewed}/#{view}")
            expect(page.locator("main")).not_to_be_empty()
            if view != "cluster" and view != "health":
                expect(page.locator("main bdi", has_text=odd).first).to_be_attached()
        page.goto(f"{viewed}/#cluster/{quote(odd, safe='')}")
        expect(page.locator("aside h2 bdi")).to_have_text(odd)
        assert page.title() == "Cluster · Pumice"
        assert page.locator("script").count() == 1
        del wrong


def test_a_page_follows_a_run(tmp_path: Path) -> None:
    with served(tmp_path, "--default-duration", "0") as server, opened() as (page, wrong):
        page.goto(server.url)
        expect(page.locator('.tile[data-resource="cpu"] b')).to_have_text("0 of 24")
        submit(server, gang("late", pods=2, cpu="3"))
        expect(page.locator('.tile[data-resource="cpu"] b')).to_have_text("6 of 24")
        expect(page.locator("#state")).to_have_text(re.compile("live · cycle [0-9]+"))
        page.goto(f"{server.url}/#health")
        expect(page.get_by_text("session-runner", exact=True)).to_be_visible()
        beyond = "all => all.filter((each) => each.getBBox().x < 0).map((each) => each.textContent)"
        assert page.locator("svg text").evaluate_all(beyond) == [], "66.3 ms would be read as 6.3 ms"
        assert fits(page)
        assert wrong == []


def test_faults_of_a_storm_are_told_by_kind(tmp_path: Path) -> None:
    with (
        served(tmp_path, "--faults", "live", "--seed", "3", "--default-duration", "0") as server,
        opened() as (page, wrong),
    ):
        submit(server, [each for number in range(6) for each in gang(f"g{number}", pods=2, cpu="1")])
        page.goto(f"{server.url}/#health")
        expect(page.get_by_text(re.compile("^[0-9]+ faults so far"))).to_be_visible()
        kinds = page.locator("section", has_text="Faults of a storm").locator("tbody td:first-child")
        expect(kinds.first).to_have_text(re.compile("^(bind|evict|status|claim|watch|journal|crash|held)"))
        assert fits(page)
        assert wrong == []


def test_thousands_of_nodes_are_drawn_in_time(viewed: str) -> None:
    """First picture within 1.5 s; what a change of a tenth of the nodes costs the browser, reading, drawing, layout and
    paint together, within 100 ms: the best of three, as machines are busy.
    """
    board, *changes = many_nodes(5_000)
    told: Iterator[bytes] = iter(())

    def live(route: Route) -> None:
        """One event a connection; the browser comes again immediately."""
        route.fulfill(body=b"retry: 20\n" + next(told, b": nothing\n\n"), content_type="text/event-stream")

    found: list[tuple[float, float]] = []
    with opened() as (page, wrong):
        page.route("**/page/mode", lambda route: route.fulfill(json={"live": True, "token": False, "scheduler": True}))
        page.route("**/page/live", live)
        browser: Any = page.context.new_cdp_session(page)
        browser.send("Performance.enable")
        for _ in range(3):
            page.goto("about:blank")  # who is still there would take what is meant for the next
            told = iter([board])
            page.goto(viewed)
            expect(page.get_by_text("5,000 nodes")).to_be_visible()
            page.wait_for_function("pumice.spent.first_ms > 0")
            for number, change in enumerate(changes, 1):
                page.wait_for_timeout(300)
                before, told = worked_ms(browser), iter([change])
                expect(page.locator('.tile[data-resource="cpu"] b')).to_have_text(f"{16_000 * number:,} of 320,000")
                found.append((page.evaluate("pumice.spent.first_ms"), worked_ms(browser) - before))
        assert wrong == []
    assert min(first for first, _ in found) <= 1_500, found
    assert 1 < min(update for _, update in found) <= 100, found


def worked_ms(browser: Any) -> float:
    """What the page's own thread has worked so far, in milliseconds."""
    told = browser.send("Performance.getMetrics")["metrics"]
    return 1e3 * float({each["name"]: each["value"] for each in told}["TaskDuration"])


def many_nodes(number: int) -> list[bytes]:
    """A board as the server tells it, and two changes, each of a tenth of its nodes; 50,000 pods run."""
    layout = BoardLayout(
        ["cpu", "memory", "pods"],
        [f"n{row:05d}" for row in range(number)],
        [[f"zone-{rack % 3}", f"rack-{rack:03d}"] for rack in range(number // 25)],
        [row // 25 for row in range(number)],
        bytes(number),
        bytes([1] * number),
        np.full((3, number), 64.0).tobytes(),
    )
    amounts = np.zeros((4, 3, number))
    read = BoardRead(1, 1, layout, b"", {"Running": 50_000})
    told = [frames.event("board", frames.whole(layout, amounts, read))]
    for step in range(2):
        after = amounts.copy()
        after[0, :, step::10] = 32.0
        told.append(frames.event("change", frames.change(amounts, after, read)))
        amounts = after
    return told


def test_a_token_is_asked_for_in_a_form(tmp_path: Path) -> None:
    with served(tmp_path, "--token", "secret", roles=False) as server, opened() as (page, wrong):
        page.goto(server.url)
        page.fill("input[name=token]", "secret")
        page.get_by_role("button").click()
        expect(page.locator("#state")).to_have_text(re.compile("live"))
        assert page.evaluate("document.cookie") == ""
        assert "secret" not in page.url
        page.get_by_text("Log out").click()
        expect(page.locator("input[name=token]")).to_be_visible()
        del wrong  # the form comes with 401, which the console tells


def submit(server: Served, made: list[dict[str, Any]]) -> None:
    """As a client would."""
    paths = {"PodGroup": "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"}
    with server.client() as client:
        for obj in made:
            answer = client.post(paths.get(obj["kind"], "/api/v1/namespaces/default/pods"), json=obj)
            assert answer.status_code == 201, answer.text


def test_jobs_are_listed_and_parents_have_what_their_queues_hold(viewed: str) -> None:
    with opened() as (page, wrong):
        page.goto(f"{viewed}#job")
        expect(page.locator("td.name a")).to_have_count(2)
        page.goto(f"{viewed}#queues")
        expect(page.locator("figcaption").first).to_contain_text("root")
        expect(page.locator("svg text", has_text="cores").first).to_be_visible()
        assert wrong == []
