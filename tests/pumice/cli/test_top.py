"""`pumice top` over a journal: a frame of fixed width, and its ends on a real terminal."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
import yaml
from rich.console import Console
from rich.screen import Screen

from pumice.cli.tables.frame import Frame, ScreenPart, bar, sparkline
from tests.kit.jobs import gang
from tests.kit.nodes import nodes
from tests.kit.queues import queue
from tests.pumice.cli.terminal import pumice

WIDE = {"COLUMNS": "160"}


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten nodes, one of them full, and a gang that waits."""
    folder = tmp_path_factory.mktemp("run")
    objects = [*nodes(10, cpu="4"), queue("q1"), *gang("a", pods=1, cpu="4", queue="q1", duration="500s")]
    waiting = gang("g", pods=1, cpu="8", queue="q1")
    (folder / "c.yaml").write_text(yaml.safe_dump_all([*objects, *waiting]))
    run = ("run", "-f", folder / "c.yaml", "--db", folder / "j.db", "--time", "virtual", "--until", "20s")
    assert pumice(*run).code == 0
    return folder / "j.db"


def test_a_frame(db: Path) -> None:
    said = pumice("top", "--db", db, "--once", "-o", "table", env=WIDE)
    assert said.code == 0
    lines = [" ".join(line.replace("│", " ").split()) for line in said.out.splitlines()]
    assert "pods: 1 Pending, 1 Running; jobs: 1 Inqueue, 1 Running; 0 binding, 0 evicting" in lines
    assert any(line.startswith("decisions: 1 in the last ") and "█" in line for line in lines)
    assert any(line.startswith("q1 ") and " 4 " in line and line.endswith(" 1") for line in lines)
    assert any(line.startswith("1 default/g q1 0 of 1 LargerThanAnyNode") for line in lines)
    assert "nodes, the fullest first (8 of 10)" in lines
    used = {line.split()[0]: line for line in lines if line[:2] in ("al", "n0", "n1")}
    assert "█········· 4 of 40" in used["all"]
    assert "██████████ 4 of 4" in next(line for line in used.values() if line.startswith("n"))


def on_screen(frame: Frame, width: int, height: int) -> list[str]:
    console = Console(width=width, height=height, record=True, file=io.StringIO())
    console.print(Screen(frame))
    lines = console.export_text().splitlines()
    assert len(lines) == height
    return lines


def frame_of(db: Path, screen: ScreenPart) -> Frame:
    told = pumice("top", "--db", db).json
    return Frame(told["standings"], told["board"], {"cycles": told["cycles"]}, screen=screen)


@pytest.mark.parametrize("height", [18, 28, 34, 80])
def test_a_screen_shows_something_of_everything(db: Path, height: int) -> None:
    lines = on_screen(frame_of(db, ScreenPart()), 80, height)
    for part in ("pods: ", "decisions: ", "jobs that wait", "nodes, the fullest first (", "queues as cycle"):
        assert any(part in line for line in lines)
    there = sum(re.match(" *n[0-9]", line) is not None for line in lines)
    assert f"({there} of 10)" in "".join(lines)
    assert (there == 8) == (height > 18)


def test_a_screen_with_many_nodes_and_queues_says_what_is_cut(db: Path) -> None:
    frame = frame_of(db, ScreenPart())
    board, standings = frame.board, frame.standings
    many = {name: [row * 100 for row in board[name]] for name in ("used", "allocatable")}
    board |= {**many, "nodes": [f"a-node-with-a-longer-name-{at}" for at in range(1000)]}
    board |= {name: board[name] * 100 for name in ("ready", "cordoned")}
    standings["queues"] |= {f"more-{at}": standings["queues"]["q1"] for at in range(40)}
    lines = on_screen(frame, 80, 24)
    assert sum("q1" in line for line in lines) > 0
    assert any(re.search("… [0-9]+ more lines of queues", line) for line in lines)
    assert any(re.search(r"\([0-9] of 1000\)", line) for line in lines)
    assert any(line.strip().startswith("all ") for line in lines)


def test_a_screen_scrolls_through_all_of_it(db: Path) -> None:
    screen = ScreenPart()
    frame, seen = frame_of(db, screen), ""
    for page in range(12):
        screen.first = page * 10 + 1
        lines = on_screen(frame, 80, 24)
        assert "scroll, q ends" in lines[-1]
        seen += "\n".join(lines[:-1])
    assert all(f"n{number} " in seen for number in range(10))
    assert "root" in seen
    screen.move(10_000)
    on_screen(frame, 80, 24)
    last = screen.first
    screen.move(1)
    on_screen(frame, 80, 24)
    assert screen.first == last
    screen.move(-10_000)
    assert "pods: " in on_screen(frame, 80, 24)[0]


def test_a_pipe_gets_what_the_frame_is_made_of(db: Path) -> None:
    said = pumice("top", "--db", db)
    assert said.code == 0
    assert [job["job"] for job in said.json["standings"]["waiting"]] == ["default/g"]
    assert len(said.json["board"]["nodes"]) == 10
    assert said.json["cycles"][-1][0] == said.json["standings"]["cycle"]
    assert said.json["cycle_ms"] is None


def test_what_it_refuses(db: Path, tmp_path: Path) -> None:
    assert pumice("top", "--db", tmp_path / "nothing.db").code == 2
    assert pumice("top", "--db", db, "--server", "http://127.0.0.1:1").code == 2
    assert pumice("top", "--server", "http://127.0.0.1:1").code == 3
    assert pumice("top", "--db", db, "--every", "0").code == 2


@pytest.mark.slow
@pytest.mark.parametrize("key", [b"q", b"\x03"], ids=["q", "Ctrl-C"])
def test_a_key_ends_it(db: Path, key: bytes) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 150, 0, 0))
    command = [sys.executable, "-c", TAKING_THE_TERMINAL, "top", "--db", str(db), "--every", "0.2", "-o", "table"]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as process:
        os.close(theirs)
        shown = b""
        while shown.count(b"fullest first") < 2:  # it has looked again
            shown += os.read(ours, 65_536)
        os.write(ours, key)
        try:
            while os.read(ours, 65_536):
                pass
        except OSError:
            pass  # it has closed the terminal
        assert process.wait(30) == 0
    os.close(ours)
    assert b"Traceback" not in shown


TAKING_THE_TERMINAL = """
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from pumice.cli import main
main()
"""


def test_sparks() -> None:
    assert sparkline([0, 1, 2, 7]) == "▁▂▃█"
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([-1, 5, 50], most=10) == "▁▅█"
    assert sparkline([]) == ""
    assert [bar(part, 4) for part in (0, 0.01, 0.5, 2)] == ["····", "█···", "██··", "████"]
