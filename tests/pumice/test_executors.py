"""Processes that are given one thing at a time: what each comes to, and what becomes of one that dies."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.executors import Processes, StandingExecutors, WorkerDiedError, as_ended, died, executors, local
from tests.kit.jobs import job_task, vcjob
from tests.kit.nodes import node
from tests.kit.source import ROOT
from tests.pumice.cli.terminal import pumice


def doubled(number: int) -> int:
    if number < 0:
        raise ValueError(number)
    return 2 * number


def killed(number: int) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def told() -> str:
    return os.environ.get("PUMICE_TEST_BEGUN", "")


def begin() -> None:
    os.environ["PUMICE_TEST_BEGUN"] = "yes"


def slept(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def test_results_errors_and_what_cannot_be_sent() -> None:
    with executors(1, None, begin)() as executor:
        found = {key: future.exception() or future.result() for key, future in as_ended(doubled, TASKS, executor)}
        assert (found[1], found[2], type(found[3])) == (2, 4, ValueError)
        assert executor.submit(told).result() == "yes"
        assert isinstance(executor.submit(doubled, threading.Lock()).exception(), TypeError)  # type: ignore[arg-type]
        assert executor.submit(doubled, 4).result() == 8
    assert multiprocessing.active_children() == []


TASKS: dict[int, tuple[Any, ...]] = {1: (1,), 2: (2,), 3: (-1,)}


def test_one_that_dies_takes_only_that_with_it() -> None:
    with local(1) as executor:
        ended = dict(as_ended(killed, {number: (number,) for number in range(3)}, executor))
    assert [died(ended[number].exception()) for number in range(3)] == [False, True, False]
    assert isinstance(ended[1].exception(), WorkerDiedError)
    assert not died(ValueError())


def test_a_script_without_a_guard_is_not_run_again_by_workers(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(
        "from math import sqrt\nfrom pumice.executors import local\n"
        "with local(1) as executor:\n    print(executor.submit(sqrt, 4).result(60))\nprint(__file__)"
    )
    found = subprocess.run([sys.executable, script], check=False, capture_output=True, text=True, timeout=120)
    assert (found.stdout, found.stderr) == (f"2.0\n{script}\n", "")


def test_who_leaves_does_not_wait() -> None:
    began = time.monotonic()
    futures: list[Future[float]] = []
    with suppress(KeyboardInterrupt), local(1) as executor:
        futures += [executor.submit(slept, seconds) for seconds in (0.0, 600.0, 600.0)]
        futures[0].result()
        raise KeyboardInterrupt
    assert time.monotonic() - began < 60
    assert futures[2].cancelled()
    assert multiprocessing.active_children() == []


PARENT = """
import sys
from pumice.executors import Processes
from tests.pumice.test_executors import sleeping
if __name__ == "__main__":
    Processes(1).submit(sleeping, sys.argv[1]).result()
"""


def sleeping(pid_file: str) -> None:
    Path(pid_file).write_text(str(os.getpid()))
    time.sleep(120)


def test_a_worker_ends_with_a_parent_that_was_killed(tmp_path: Path) -> None:
    (tmp_path / "parent.py").write_text(PARENT)
    pid_file = tmp_path / "pid"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    parent = subprocess.Popen([sys.executable, tmp_path / "parent.py", pid_file], env=environment, cwd=ROOT)
    _until(lambda: pid_file.exists() and pid_file.read_text() != "")
    parent.kill()
    parent.wait()
    worker = int(pid_file.read_text())
    _until(lambda: not _is_alive(worker))


def _until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.05)


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_standing_ones_are_opened_once_and_end_with_a_borrower_that_fails() -> None:
    standing = StandingExecutors(partial(local, 1))
    pids = list[int]()
    for _ in range(2):
        with standing() as executor:
            pids.append(executor.submit(os.getpid).result())
    assert pids[0] == pids[1] != os.getpid()
    with pytest.raises(ZeroDivisionError), standing() as executor:
        executor.submit(divmod, 1, 0).result()
    with standing() as executor:
        pids.append(executor.submit(os.getpid).result())
    assert pids[2] != pids[1]
    standing.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pids[2], 0)


def test_a_shutdown_ends_what_was_handed_in() -> None:
    with Processes(1) as executor:
        future = executor.submit(doubled, 3)
    assert future.result() == 6


@pytest.mark.slow
def test_storms_cases_and_searches_work_on_dask_as_they_do_here(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: pip install 'pumice[dask]'")
    (tmp_path / "all.yaml").write_text(
        yaml.safe_dump_all([node("n0", cpu="4"), vcjob("g", job_task("t", replicas=2, cpu="3"))]), "utf-8"
    )
    commands = (
        ("stress", "--seeds", 2, "--nodes", 3, "--pods", 12, "--into", tmp_path),
        ("conformance", ROOT / "examples" / "cases"),
        ("whatif", "-f", tmp_path / "all.yaml", "--until-starts", "g", "--within", "10s"),
    )
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        for command in commands:
            here, there = (
                pumice(*command, "-o", "json", *more)
                for more in (("--workers", 1), ("--dask", cluster.scheduler_address))
            )
            told = [{**json.loads(said.out), "seconds": 0, "seeds_per_s": 0} for said in (here, there)]
            assert (here.code, told[0]) == (there.code, told[1]), there.err
