"""Takes the screenshots of the documents: `python -m docs.making.take_pictures`, or `nox -s pictures`. Needs Chromium.

Each is a view of the page over a journal that the commands of a document write, at one moment of it.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import yaml
from playwright.sync_api import Page

from docs.making import try_commands, try_tutorial
from pumice.core.objects.metadata import Object
from tests.core.devices.cards import vgpu_node
from tests.core.plugins.test_deviceshare import asks
from tests.kit.browser_pages import opened
from tests.kit.jobs import gang

ROOT: Final = Path(__file__).parents[2]
PICTURES: Final = ROOT / "docs" / "pictures"
SETTLES_MS: Final = 1500.0
"""Time in which what has arrived is drawn."""
PATIENCE_MS: Final = 120_000.0
ANSWERED: Final = """\
() => [...document.querySelectorAll("output")].some(each => each.textContent.includes("cycle"))
  && !/(Reading|Waiting|Deciding)[^\\n]*…/.test(document.body.innerText)
"""
DAY: Final = (
    "pumice run -q -f cluster.yaml -f queues/ -f work.yaml --config scheduler.conf "
    "--time virtual --until 600s --db day.db"
)


CARDS: Final = "pumice run -q -f cards.yaml --config cards.conf --time virtual --until 60s --db cards.db"
SHARERS, CARD_MIB, CORES = 10, 81_920, 100
CARDS_OF_A_NODE: Final = [(SHARERS, CARD_MIB, "NVIDIA-A100-SXM4-80GB")] * 8
SIZES: Final = {"number": 8 * SHARERS, "memory": 8 * CARD_MIB, "cores": 8 * CORES}
JOBS: Final = (
    *((f"train-{number}", 16, CARD_MIB, CORES, 12) for number in range(5)),
    *((f"tune-{number}", 8, CARD_MIB // 2, 50, 6) for number in range(4)),
    *((f"eval-{number}", 6, 3 * CARD_MIB // 5, 60, 4) for number in range(3)),
    ("serve", 36, CARD_MIB // 4, 25, 3),
    ("notebooks", 22, CARD_MIB // 10, 10, 2),
    ("pretrain", 48, CARD_MIB, CORES, 12),
)
"""Name, pods, and what each asks for: MiB and hundredths of a card, and cpu."""
SHARED: Final = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - {name: gang}
  - {name: predicates}
  - name: deviceshare
    arguments: {deviceshare.VGPUEnable: true, deviceshare.SchedulePolicy: binpack, deviceshare.ScheduleWeight: 10}
"""


class Picture(NamedTuple):
    """A screenshot: the journal, the view's address, the stop of the slider (-1: the last), the
    window, and the resource whose tile is chosen.
    """

    file: str
    journal: str
    view: str
    stop: int = -1
    height: int = 800
    dark: bool = False
    tile: str = ""


TAKEN: Final = (
    Picture("page.png", "cards.db", "#cluster/r0-n0", tile="volcano.sh/vgpu-memory"),
    Picture("cluster.png", "day.db", "#cluster/gpu-00", tile="nvidia.com/gpu"),
    Picture("queues.png", "day.db", "#queues"),
    Picture("job.png", "day.db", "#job/production%2Fserve"),
    Picture("cycle.png", "day.db", "#cycle", dark=True),
    Picture("tutorial-page.png", "spread.db", "#cluster/n0", stop=8, height=640, tile="nvidia.com/gpu"),
)


def main() -> int:
    """Write the journals, and take all pictures of each."""
    with tempfile.TemporaryDirectory(prefix="pumice-pictures-") as made:
        folder = Path(made) / "examples"
        shutil.copytree(ROOT / "examples", folder)
        write_journals(folder)
        for journal in dict.fromkeys(each.journal for each in TAKEN):
            with viewed(folder / journal) as url:
                for picture in TAKEN:
                    if picture.journal == journal:
                        take(picture, url)
    return 0


def write_journals(folder: Path) -> None:
    """Write the journals that the pictures show: the morning of the examples, and that of the tutorial."""
    for name in ("gang", "policies"):
        for block in try_tutorial.fences((try_tutorial.FOLDER / f"{name}.md").read_text("utf-8")):
            if block.title:
                (folder / block.title).write_text(block.text, "utf-8")
    page = (try_tutorial.FOLDER / "policies.md").read_text("utf-8")
    (morning,) = re.findall(r"^pumice run .*--db spread\.db$", page, re.MULTILINE)
    (folder / "cards.yaml").write_text(yaml.safe_dump_all(shared_cards()), "utf-8")
    (folder / "cards.conf").write_text(SHARED, "utf-8")
    for command in (DAY, CARDS, morning):
        subprocess.run([sys.executable, "-m", *command.split()], cwd=folder, check=True, env=environment())


def shared_cards() -> list[Object]:
    """Return five racks of four nodes, whose eight cards pods share, and jobs that fill most of them; one job waits."""
    nodes = [card_node(rack, number) for rack in range(5) for number in range(4)]
    gangs = [
        each
        for name, pods, memory, cores, cpu in JOBS
        for each in asks(
            gang(name, pods=pods, cpu=str(cpu), memory=f"{8 * cpu}Gi", duration="0"),
            vgpu_number=1,
            vgpu_memory=memory,
            vgpu_cores=cores,
        )
    ]
    return [*nodes, *gangs]


def card_node(rack: int, number: int) -> Object:
    """Return a node whose amounts are those of its cards, as its device plugin tells them; the last is cordoned."""
    node = vgpu_node(f"r{rack}-n{number}", CARDS_OF_A_NODE)
    node["metadata"].setdefault("labels", {})["rack"] = f"rack-{rack}"
    amounts = {"cpu": "128", "memory": "1Ti", "pods": "110"}
    amounts |= {f"volcano.sh/vgpu-{name}": str(amount) for name, amount in SIZES.items()}
    node["status"] |= {"allocatable": amounts, "capacity": dict(amounts)}
    node["spec"]["unschedulable"] = (rack, number) == (4, 3)
    return node


def environment() -> dict[str, str]:
    """Return the environment in which `python -m pumice` is this tree's."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@contextmanager
def viewed(journal: Path) -> Generator[str]:
    """Serve the page over a journal until the block ends."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-m", "pumice", "view", str(journal), "--http", address]
    server = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        if not try_commands.answers(f"http://{address}/"):
            raise TimeoutError(f"the page over {journal.name} does not answer")
        yield f"http://{address}/"
    finally:
        try_commands.stop(server)


def take(picture: Picture, url: str) -> None:
    """Take one picture."""
    with opened(height=picture.height, dark=picture.dark) as (page, wrong):
        page.goto(f"{url}{picture.view}")
        settle(page)
        if picture.stop >= 0:
            move(page, picture.stop)
        if picture.tile:
            page.locator(f'.tile[data-resource="{picture.tile}"]').click()
        page.screenshot(path=PICTURES / picture.file)
    if wrong:
        raise RuntimeError(f"{picture.file}: {wrong}")
    print(picture.file)


def move(page: Page, stop: int) -> None:
    """Move the slider through time to a stop, as a person would: by its own element."""
    slider = page.locator("input[type=range]").first
    slider.evaluate(
        "(each, stop) => { each.value = stop; each.dispatchEvent(new Event('input', {bubbles: true}));"
        " each.dispatchEvent(new Event('change', {bubbles: true})); }",
        stop,
    )
    settle(page)


def settle(page: Page) -> None:
    """Wait until the page has its answers: the slider tells a cycle, and nothing says that it is being asked for."""
    page.wait_for_function(ANSWERED, timeout=PATIENCE_MS)
    page.wait_for_timeout(SETTLES_MS)
    page.wait_for_function(ANSWERED, timeout=PATIENCE_MS)


if __name__ == "__main__":
    sys.exit(main())
