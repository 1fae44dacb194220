# SPDX-License-Identifier: Apache-2.0
"""`commands`: what each command costs, as a process of its own, on the journal of a cluster half of whose pods wait.

The same clusters at a fiftieth, at a fifth and at the whole size: what grows faster than the cluster shows in `growth`.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess  # nosec B404
import sys
import tempfile
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from pumice.core.objects.metadata import Object
from pumice.lab import builders
from pumice.proof.bench.cluster import QUEUES, STOCK
from pumice.proof.bench.figures import Advance, Parameters, Samples

DEFAULTS: Final = Parameters(nodes=1_000, pods=10_000, gang=4, runs=1)
PARTS: Final = (50, 5, 1)
"""Sizes: the cluster's divided by these."""
CPU: Final = 8
"""Of a node; a pod asks for a fifth of it, so that half of ten pods a node fit."""
DURATION_S: Final = (200, 2000)
"""The pods of a job run between these, job by job."""
LIVED: Final = "600s"
FIRST_PAGE: Final = (
    "/",
    "/page/mode",
    "/page/damage",
    "/apis/pumice.dev/v1/boards/newest",
    "/apis/pumice.dev/v1/courses",
)
"""What a browser asks for before it shows a journal."""
GOOD: Final = (0, 1)
"""Exit codes: 1 says that something differs, waits or is damaged."""


@dataclass(frozen=True, slots=True)
class ClusterFiles:
    """A cluster in files: its manifests, two configurations, and the journal of its run."""

    folder: Path
    waiting: str
    """Job that waits at the end of the run."""

    @property
    def rows(self) -> dict[str, list[str]]:
        """Return the commands by the names of their figures. The first one writes the journal."""
        db, work, stock, other = (
            str(self.folder / name) for name in ("run.db", "work.json", "stock.conf", "other.conf")
        )
        page, saved, about = str(self.folder / "report.html"), str(self.folder / "other.db"), self.waiting
        manifests = ["-f", work, "--config", stock]
        return {
            "run": ["run", *manifests, "--db", db, "--time", "virtual", "--until", LIVED],
            "replay_verify": ["replay", db, "--verify"],
            "replay_config": ["replay", db, "--config", other, "--save", saved],
            "explain": ["explain", "--db", db, "job", about, "--budget", "0"],
            "explain_advice": ["explain", "--db", db, "job", about],
            "about": ["journal", db, "--about", about],
            "measures": ["measures", db],
            "report": ["report", db, "-o", page],
            "queue": ["queue", "--db", db],
            "decide": ["decide", *manifests],
            "top": ["top", "--db", db, "--once"],
        }


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Processor seconds of each command on N nodes: `NAME_N_s`, with the page's first look as `view_N_s`; and
    `NAME_growth`, times the seconds from the second size to the third.
    """
    _measure_size(parameters, parameters.nodes)  # Python compiles every module that a command imports, once
    for _ in range(parameters.runs):
        spent = {part: _measure_size(parameters, part) for part in PARTS}
        for part, each in spent.items():
            for name, seconds in each.items():
                samples.add(f"{name}_{max(parameters.nodes // part, 1)}_s", seconds, "s")
        for name, seconds in spent[PARTS[-1]].items():
            samples.add(f"{name}_growth", seconds / spent[PARTS[-2]][name], "times")
        advance(1)


def _measure_size(parameters: Parameters, part: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="pumice-bench-") as folder:
        files = build(Path(folder), max(parameters.nodes // part, 1), max(parameters.pods // part, 1), parameters.gang)
        spent = {name: seconds_of(command) for name, command in files.rows.items()}
        return {**spent, "view": seconds_of_first_page(files.folder / "run.db")}


def build(folder: Path, nodes: int, pods: int, gang: int) -> ClusterFiles:
    """Write the files of a cluster of this size."""
    jobs = [_job(number, gang) for number in range(max(pods // gang, 1))]
    queues = [builders.queue(name, weight=number + 1) for number, name in enumerate(QUEUES)]
    objects = [*builders.nodes(nodes, cpu=CPU), *queues, *jobs]
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    (folder / "work.json").write_bytes(msgspec.json.encode(listed))
    (folder / "stock.conf").write_text(STOCK)
    (folder / "other.conf").write_text(STOCK.replace("nodeorder", "binpack"))
    return ClusterFiles(folder, f"default/{jobs[-1]['metadata']['name']}")


def _job(number: int, gang: int) -> Object:
    least, most = DURATION_S
    lasts_s = least + number * 7919 % (most - least)
    queue = QUEUES[number % len(QUEUES)]
    return builders.gang(f"j{number:05d}", gang, cpu=f"{CPU * 200}m", duration=f"{lasts_s}s", queue=queue)


def seconds_of(command: list[str]) -> float:
    """Return the processor seconds of `pumice` with these arguments. Raises RuntimeError when it fails."""
    before = _children_s()
    whole = [sys.executable, "-m", "pumice", *command]
    done = subprocess.run(whole, capture_output=True, check=False, env=_environment())  # nosec B603
    if done.returncode not in GOOD:
        raise RuntimeError(f"pumice {' '.join(command)}: exit {done.returncode}: {done.stderr.decode()[-500:]}")
    return _children_s() - before


def seconds_of_first_page(db: Path) -> float:
    """Return the processor seconds of `pumice view` until a browser shows the journal, and of its end."""
    before = _children_s()
    command = [sys.executable, "-m", "pumice", "view", str(db), "-o", "table"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_environment()) as viewer:  # nosec B603
        try:
            assert viewer.stdout is not None
            said: str = viewer.stdout.readline()
            for path in FIRST_PAGE:
                _get(urlsplit(said.rpartition(" on ")[2].strip()).netloc, path)
        finally:
            viewer.send_signal(signal.SIGINT)
    return _children_s() - before


def _get(address: str, path: str) -> None:
    connection = HTTPConnection(address, timeout=600)
    try:
        connection.request("GET", path, headers={"accept": "text/html" if path == "/" else "application/json"})
        answer = connection.getresponse()
        said = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status}: {said[:500]!r}")
    finally:
        connection.close()


def _environment() -> dict[str, str]:
    """Return that of an installed Pumice, whose modules are compiled."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
