"""`pumice stress`: Ctrl-C ends it immediately, and what was found by then is told."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import trio

from pumice.cli import stress
from pumice.executors import executors
from pumice.proof.storm.invariants.upheld import Violation
from pumice.proof.storm.report import report
from pumice.proof.storm.script.events import Script
from pumice.proof.storm.script.workload import Size
from pumice.proof.storm.simulation import StormOutcome
from pumice.proof.storm.stress import StressPlan, Tally, run_storms
from tests.kit.source import ROOT
from tests.pumice.cli.terminal import pumice

SEEDS = 400
SMALL = ("--nodes", "4", "--pods", "24", "--seeds", str(SEEDS), "-o", "json")


def broken(interrupted: bool) -> Tally:
    """A storm that broke something."""
    tally = Tally(interrupted=interrupted)
    tally.add(Script(7, profile="calm"), StormOutcome([Violation("one-node", "it moved")]))
    return tally


def until_workers_run(process: subprocess.Popen[str], patience_s: float = 60.0) -> None:
    """Until then it is Python that starts, and on a busy machine that takes long."""
    until = time.monotonic() + patience_s
    while not workers_of(process.pid):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until, "no worker was started"
        time.sleep(0.02)


def workers_of(pid: int) -> list[int]:
    found: list[int] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):  # a thread for each worker
        with suppress(OSError):  # gone meanwhile
            pids = children.read_text().split()
            found += [int(each) for each in pids if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes()]
    return found


def blocked_signals(pid: int) -> set[int]:
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigBlk:")]
    mask = int(line.split()[1], 16)
    return {number for number in signal.valid_signals() if mask >> (number - 1) & 1}


def begun(workers: int, into: Path) -> subprocess.Popen[str]:
    """The command, busy with its storms."""
    command = [sys.executable, "-m", "pumice", "stress", *SMALL, "--workers", str(workers), "--into", str(into)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
    )
    until_workers_run(process)
    time.sleep(1.0)  # nothing tells from outside how far they are; wherever they are, it ends
    return process


@pytest.mark.parametrize(
    ("workers", "number", "group"),
    [
        (2, signal.SIGINT, True),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in product((1, 2), (signal.SIGINT, signal.SIGTERM), (True, False))
            if each != (2, signal.SIGINT, True)
        ),
    ],
)
def test_ctrl_c_and_sigterm_end_it_immediately(workers: int, number: int, group: bool, tmp_path: Path) -> None:
    """A terminal signals the workers as well; `kill` only the process it is told."""
    process = begun(workers, tmp_path)
    began = time.monotonic()
    (os.killpg if group else os.kill)(process.pid, number)
    out, err = process.communicate(timeout=60)  # until the workers, who have the same pipes, are gone too
    assert time.monotonic() - began < 20.0
    assert process.returncode == 130
    found = json.loads(out)
    assert found["seeds"] < SEEDS
    assert found["first_seed_left"] <= found["seeds"]
    assert f"the first that was not: --seed {found['first_seed_left']}" in err
    assert "Traceback" not in err


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_no_worker_sees_the_signals(workers: int, tmp_path: Path) -> None:
    """Whoever does may say so on the terminal, before it is killed."""
    process = begun(workers, tmp_path)
    blocked = [blocked_signals(pid) for pid in workers_of(process.pid)]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert blocked == [{signal.SIGINT, signal.SIGTERM}] * workers


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_that_dies_costs_its_seed_only(workers: int, tmp_path: Path) -> None:
    process = begun(workers, tmp_path)
    os.kill(workers_of(process.pid)[0], signal.SIGKILL)
    time.sleep(1.0)
    assert len(workers_of(process.pid)) == workers  # another one took its place
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    found = json.loads(out)
    assert (process.returncode, len(found["seeds_lost"])) == (130, 1)
    assert f"the process died (out of memory?) in seeds {found['seeds_lost'][0]}" in err
    assert "Traceback" not in err


def test_lost_seeds_are_named_and_are_the_outside_worlds_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tally = Tally(seeds=2, lost=[3, 17])
    monkeypatch.setattr(stress, "run_storms", lambda *_: tally)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    said = pumice("stress", "--into", tmp_path, "-o", "json")
    assert (said.code, said.json["seeds_lost"]) == (3, [3, 17])
    assert "in seeds 3, 17" in said.err


def test_a_folder_nobody_can_write_to_is_told_before_the_storms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stress, "run_storms", None)
    said = pumice("stress", "--into", "/proc", "-o", "json")
    assert (said.code, said.out) == (3, "")
    assert said.err.startswith("pumice: --into /proc: cannot be written to: ")


def test_what_cannot_be_written_down_is_told_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(script: Script, path: Path) -> None:
        path.write_text(f"half of {script.seed}")
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr("pumice.proof.storm.report.write_script", full)
    monkeypatch.setattr(stress, "run_storms", lambda *_: broken(interrupted=True))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    said = pumice("stress", "--into", tmp_path, "-o", "json")
    (one,) = said.json["violations"]
    assert (said.code, one["seed"], one["invariant"], one["event_list"]) == (1, 7, "one-node", [])
    assert (one["events_file"], one["command"]) == (None, None)
    assert one["file_error"].endswith("No space left on device")
    assert list(tmp_path.iterdir()) == []
    assert "not in a file: " in pumice("stress", "--into", tmp_path, "-o", "table").out


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_what_was_done_by_then_counts(workers: int) -> None:
    done: list[int] = []

    def interrupt(step: int) -> None:
        done.append(step)
        os.kill(os.getpid(), signal.SIGINT)

    tally = run_storms(StressPlan(seeds=SEEDS, size=Size(4, 24)), executors(workers, None), interrupt)
    assert (tally.interrupted, tally.seeds, done) == (True, 1, [1])
    assert tally.first_left in (0, 1)
    assert tally.events > 0
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_all_of_them_without_ctrl_c() -> None:
    tally = run_storms(StressPlan(seeds=3, size=Size(2, 6)), executors(2, None), lambda _: None)
    assert (tally.interrupted, tally.seeds, tally.first_left, tally.lost) == (False, 3, None, [])


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
    def cut(script: Script, _: StormOutcome, runs: int) -> Script:
        if runs:
            raise error
        return script

    monkeypatch.setattr("pumice.proof.storm.report.shrink", cut)
    tally = broken(interrupted=False)
    found = report(tally, 1.0, tmp_path)
    assert [each.invariant for each in found.violations] == ["one-node"]
    assert tally.interrupted


def test_sigterm_ends_a_storm_in_this_process_as_ctrl_c_does() -> None:
    """Cutting down and `--events` run storms here, on trio, which has a handler of its own for Ctrl-C."""

    async def terminated() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await trio.sleep(1)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), stress.ended_like_ctrl_c(signal.SIGTERM):
        trio.run(terminated)
    assert signal.getsignal(signal.SIGTERM) is before
