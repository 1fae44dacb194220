"""The memory of `stress --subject` over storms: it is flat, in the command and in the process that forks servers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

SEEDS = int(os.environ.get("PUMICE_TEST_SEEDS", "24"))
TINY = Path(__file__).with_name("tiny_scheduler.py")
MOST_KB = 4_000
"""Growth over two thirds of the seeds: the history of a single storm has more than that over sixteen."""
STORMS = """
import os, subprocess, sys
from multiprocessing import forkserver
from pumice.proof.storm.script.workload import Size
from pumice.proof.strangers.storming import Rig
from pumice.proof.strangers.stress import run_seeds
from pumice.proof.strangers.workload import storm_of

def told(_):
    pids = f"{os.getpid()},{forkserver._forkserver._forkserver_pid}"
    print(*subprocess.run(["ps", "-o", "rss=", "-p", pids], capture_output=True, text=True).stdout.split(), flush=True)

if __name__ == "__main__":
    rig = Rig([[sys.executable, sys.argv[1]]])
    run_seeds(lambda seed: storm_of(seed, Size(4, 20), "volcano", lockstep=True), range(int(sys.argv[2])), rig, 1, told)
"""


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_memory_is_flat_over_storms(tmp_path: Path) -> None:
    program = tmp_path / "storms.py"  # a file: the process that forks servers imports the main module
    program.write_text(STORMS, "utf-8")
    command = [sys.executable, str(program), str(TINY), str(SEEDS)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    kilobytes = [sum(map(int, line.split())) for line in said.splitlines()]
    assert len(kilobytes) == SEEDS
    third = SEEDS // 3
    assert median(kilobytes[-third:]) - median(kilobytes[third : 2 * third]) < MOST_KB, kilobytes
