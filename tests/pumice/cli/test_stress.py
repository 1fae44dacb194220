"""`pumice stress`: Ctrl-C ends it at once, and what was found by then is told."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pumice.cli import stress
from pumice.storm.script import Script
from pumice.storm.simulation import Outcome
from pumice.storm.stress import Plan, Tally, report, run_storms
from pumice.storm.violation import Violation
from pumice.storm.workload import Size
from tests.kit.source import ROOT
from tests.pumice.cli.terminal import pumice

SEEDS = 400
SMALL = ("--nodes", "4", "--pods", "24", "--seeds", str(SEEDS), "-o", "json")


def broken(interrupted: bool) -> Tally:
    """A storm that broke something."""
    tally = Tally(interrupted=interrupted)
    tally.add(Script(7, profile="calm"), Outcome([Violation("one-node", "it moved")]))
    return tally


def until_workers_run(process: subprocess.Popen[str], patience_s: float = 60.0) -> None:
    """Until then it is Python that starts, and on a busy machine that takes long."""
    until = time.monotonic() + patience_s
    while not has_workers(process.pid):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until, "no worker was started"
        time.sleep(0.02)


def has_workers(pid: int) -> bool:
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with suppress(OSError):  # gone meanwhile
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                return True
    return False


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("group", [True, False])
def test_ctrl_c_ends_it_at_once(workers: int, group: bool, tmp_path: Path) -> None:
    """A terminal signals the workers as well; `kill` only the process it is told."""
    command = [sys.executable, "-m", "pumice", "stress", *SMALL, "--workers", str(workers), "--into", str(tmp_path)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
    )
    until_workers_run(process)
    time.sleep(1.0)  # nothing tells from outside how far they are; wherever they are, it ends
    began = time.monotonic()
    (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)  # until the workers, who have the same pipes, are gone too
    assert time.monotonic() - began < 5.0
    assert process.returncode == 130
    assert json.loads(out)["seeds"] < SEEDS
    assert "Traceback" not in err


@pytest.mark.parametrize("workers", [1, 2])
def test_what_was_done_by_then_counts(workers: int) -> None:
    done: list[int] = []

    def interrupt(step: int) -> None:
        done.append(step)
        os.kill(os.getpid(), signal.SIGINT)

    tally = run_storms(Plan(seeds=SEEDS, size=Size(4, 24)), workers, interrupt)
    assert (tally.interrupted, tally.seeds, done) == (True, 1, [1])
    assert tally.events > 0
    assert multiprocessing.active_children() == []


def test_all_of_them_without_ctrl_c() -> None:
    tally = run_storms(Plan(seeds=3, size=Size(2, 6)), 2, lambda _: None)
    assert (tally.interrupted, tally.seeds) == (False, 3)


def test_what_broke_before_ctrl_c_is_told_and_is_the_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def storms(*_: Any) -> Tally:
        return broken(interrupted=True)

    monkeypatch.setattr(stress, "run_storms", storms)
    said = pumice("stress", "--into", tmp_path, "-o", "table")
    assert said.code == 1
    assert "seed 7: one-node: it moved" in said.out
    assert "interrupted: 1 of 100 storms" in said.err


@pytest.mark.parametrize("error", [KeyboardInterrupt(), BaseExceptionGroup("tasks", [KeyboardInterrupt()])])
def test_ctrl_c_ends_the_cutting_down_and_not_the_report(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(script: Script, _: Outcome, runs: int) -> Script:
        if runs:
            raise error
        return script

    monkeypatch.setattr("pumice.storm.stress.shrink", cut)
    tally = broken(interrupted=False)
    found = report(tally, 1.0, tmp_path)
    assert [each["invariant"] for each in found["violations"]] == ["one-node"]
    assert tally.interrupted
