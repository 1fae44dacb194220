"""Cards as cells in a cell, and who borrows from whom, in a real browser over a known journal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.core.devices.cards import vgpu_node
from tests.core.plugins.test_deviceshare import asks
from tests.kit.browser import ABSENT, CHROMIUM
from tests.kit.browser_pages import opened
from tests.kit.jobs import gang
from tests.kit.nodes import nodes
from tests.kit.priority_classes import priority_class
from tests.kit.queues import queue
from tests.pumice.questions.view.viewed import viewed_run

pytestmark = [pytest.mark.skipif(CHROMIUM is None, reason=ABSENT), pytest.mark.slow]
SHARED = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: deviceshare, arguments: {deviceshare.VGPUEnable: true}}]
"""
LENT = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: capacity, enableHierarchy: true}]
"""


def colours(page: Page) -> list[int]:
    """How many points of the canvas have which colour, the most frequent ones first."""
    counted: dict[str, int] = page.evaluate("""() => {
      const canvas = document.querySelector("canvas");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const found = {};
      for (let at = 0; at < data.length; at += 4) {
        const key = data.slice(at, at + 3).join();
        if (data[at + 3] === 255) found[key] = (found[key] || 0) + 1;
      }
      return found;
    }""")
    style = "getComputedStyle(document.documentElement).getPropertyValue('--{}').trim()"
    named = [page.evaluate(style.format(name)) for name in ("used", "none")]
    return [counted.get(",".join(str(int(each[at : at + 2], 16)) for at in (1, 3, 5)), 0) for each in named]


def test_a_card_is_as_full_as_its_pods_make_it(tmp_path: Path) -> None:
    """Two of four cards are taken, one of them whole, the other for a half: three eighths of the node."""
    node = vgpu_node("n0", [(10, 8_000, "NVIDIA-A100")] * 4)
    whole = asks(gang("whole", pods=1, duration="0"), vgpu_number=1, vgpu_memory=8_000)
    half = asks(gang("half", pods=2, duration="0"), vgpu_number=1, vgpu_memory=2_000)
    with viewed_run(tmp_path, [node, *whole, *half], SHARED) as url, opened() as (page, wrong):
        page.goto(f"{url}/#cluster/n0")
        expect(page.locator("aside td", has_text="n0-0")).to_be_visible()
        page.locator('.tile[data-resource="volcano.sh/vgpu-memory"]').click()
        expect(page.locator('.tile[data-resource="volcano.sh/vgpu-memory"]')).to_contain_text("cards 37.5 % full")
        expect(page.locator(".legend")).to_contain_text("small cells: a node's cards")
        used, free = colours(page)
        assert used / (used + free) == pytest.approx(3 / 8, abs=0.03)
        page.locator("canvas").hover(position={"x": 20, "y": 20})
        expect(page.locator(".tip")).to_contain_text("7.81Gi of 7.81Gi")
        assert page.locator("aside table").first.locator("tbody tr").count() == 4
        assert wrong == []


def test_ribbons_go_from_the_nearest_lender_to_who_borrows(tmp_path: Path) -> None:
    with viewed_run(tmp_path, borrowing(), LENT) as url, opened(width=390, height=844) as (page, wrong):
        page.goto(f"{url}/#queues")
        ribbons = page.locator("svg[aria-label^='Lenders'] path title")
        expect(ribbons).to_have_count(2)
        assert ribbons.all_text_contents() == ["speech has 2 of infra", "speech has 2 of vision"]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.get_by_role("button", name="memory").click()
        expect(page.get_by_text("No queue has more memory than deserved.")).to_be_visible()
        assert wrong == []


def borrowing() -> list[dict[str, Any]]:
    """A queue with twice what it deserves, of its two sisters; a cousin has as much to spare."""
    four = {"cpu": "4", "memory": "64Gi"}
    tree = [queue("eng", parent="root", deserved={"cpu": "8", "memory": "64Gi"}), queue("sci", deserved=four)]
    tree += [queue("speech", parent="eng", deserved=four)]
    tree += [queue(name, parent="eng", deserved={"cpu": "2"}) for name in ("vision", "infra")]
    return [*nodes(2, cpu="8"), *tree, *gang("talks", pods=4, cpu="2", memory="1Gi", queue="speech", duration="0")]


PREEMPTS = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""


def test_room_that_a_pod_is_nominated_for_is_beside_what_is_used(tmp_path: Path) -> None:
    """n0 has two cores in use that stay and three that go; the pod they go for wants four."""
    classes = [priority_class("low", 1), priority_class("high", 9)]
    stays = gang("stays", pods=1, cpu="2", priority_class="high", duration="0")
    goes = gang("goes", pods=1, min_member=0, cpu="5", priority_class="low", duration="0", grace_s=1)
    comes = gang("comes", pods=1, cpu="6", priority_class="high", duration="0")
    for each in comes:
        each["metadata"].setdefault("annotations", {})["pumice.dev/arrival"] = "5s"
    objects = [*nodes(1, cpu="8"), *classes, *stays, *goes, *comes]
    with viewed_run(tmp_path, objects, PREEMPTS) as url, opened() as (page, wrong):
        page.goto(f"{url}/#cluster")
        tile = page.locator('.tile[data-resource="cpu"]')
        expect(tile).to_be_visible()
        cycles = page.request.get(f"{url}/apis/pumice.dev/v1/courses").json()["cycles"]
        late = [place for place, (_, now, decisions) in enumerate(cycles) if decisions and now > cycles[0][1] + 4]
        evicts, binds = late[:2]
        for place, used, also, stack in (
            (evicts + 1, "7 of 8", "5 releasing, 6 promised", [2, 1, 5]),
            (binds, "2 of 8", "6 promised", [2, 6, 0]),
        ):
            page.locator("input[type=range]").fill(str(place))
            expect(tile.locator("b")).to_have_text(used)
            expect(tile.locator("small").last).to_have_text(also)
            widths = tile.locator(".bar i").evaluate_all("all => all.map((each) => parseFloat(each.style.width))")
            assert widths == pytest.approx([100 * part / 8 for part in stack])
        assert wrong == []
