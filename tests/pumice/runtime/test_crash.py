"""kill -9 of a real `pumice run`, again and again on one journal; PUMICE_TEST_KILLS: how often.

Half of the kills come at random moments while gangs are bound. The other half come at chosen points of the journal's
work (before, inside and after the commit of each kind of record, and around checkpoints) while pods are evicted to make
room for others.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.pumice.runtime import fatal
from tests.pumice.runtime.journal_facts import Facts, facts, replayed

KILLS = int(os.environ.get("PUMICE_TEST_KILLS", "2"))
PATIENCE_S = 300.0
A_JOURNAL = 8
"""So many kills on one journal before the run is let end."""
JOURNALS = range(-(-KILLS // (2 * A_JOURNAL)))
GANGS = 150
LOW, HIGH = 24, 20
CONFIG = """\
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
configurations:
- name: pumice
  arguments: {checkpointEvery: 150, schedulePeriod: 5ms}
"""
pytestmark = pytest.mark.timeout(900)  # on a busy machine every start takes its time
LOSSES = "the journal ends before what was read of it"


def command(folder: Path, manifest: str) -> list[str]:
    """The arguments of a run of a manifest in the folder on its journal."""
    run = ["run", "-f", str(folder / manifest), "--db", str(folder / "j.db"), "--config", str(folder / "some.conf")]
    return [*run, "--until", "idle", "-o", "json"]


def written(folder: Path, name: str, objects: Sequence[Any]) -> None:
    (folder / "some.conf").write_text(CONFIG, "utf-8")
    (folder / name).write_text(yaml.safe_dump_all(objects), "utf-8")


def killed(folder: Path, manifest: str, after_s: float) -> None:
    """Start it and kill it so long after its journal was opened."""
    lock = folder / "j.db-lock"
    mark = lock.stat().st_mtime_ns if lock.exists() else 0
    process = fatal.forked(command(folder, manifest), folder / "said")
    deadline = time.monotonic() + PATIENCE_S
    while process.is_alive() and time.monotonic() < deadline:
        if lock.exists() and lock.stat().st_mtime_ns != mark:
            break
        time.sleep(0.005)
    time.sleep(after_s)
    process.kill()
    process.join()


def ran(folder: Path, manifest: str, point: fatal.Point | None = None) -> bool:
    """Let it run to its end; False when it was killed at the point."""
    process = fatal.forked(command(folder, manifest), folder / "said", point)
    process.join(PATIENCE_S)
    assert process.exitcode in (0, -signal.SIGKILL), (process.exitcode, (folder / "said").read_text("utf-8"))
    assert process.exitcode == 0 or point is not None
    return process.exitcode == 0


def still_there(before: Facts, folder: Path) -> Facts:
    """The facts now, which are those of before and perhaps more."""
    now = anyio.run(facts, folder / "j.db")
    assert now.whole
    assert {sequence: now.hashes.get(sequence) for sequence in before.hashes} == before.hashes, LOSSES
    assert {uid: now.bound.get(uid) for uid in before.bound} == before.bound
    assert before.gone <= now.gone
    return now


def assert_well_ended(end: Facts, folder: Path) -> None:
    """Nobody was bound or evicted twice, nothing is in flight, and a replay decides the same."""
    assert max(end.times.values()) == 1
    assert max(end.deletions.values(), default=1) == 1
    assert end.unresolved == 0
    identical, difference = anyio.run(replayed, folder / "j.db")
    assert identical, difference


@pytest.mark.slow
@pytest.mark.parametrize("number", JOURNALS)
def test_nothing_is_lost_and_nothing_bound_twice(tmp_path: Path, number: int) -> None:
    chance = random.Random(number)
    objects = [node(f"n{each}", cpu="64", memory="256Gi") for each in range(6)]
    for each in range(GANGS):
        objects += gang(f"g{each}", pods=3, cpu="500m", memory="64Mi", duration="0")
    written(tmp_path, "all.yaml", objects)
    before = Facts()
    for _ in range(min(A_JOURNAL, KILLS)):
        killed(tmp_path, "all.yaml", chance.random() * 0.5)
        before = still_there(before, tmp_path)
    assert ran(tmp_path, "all.yaml")
    end = still_there(before, tmp_path)
    assert len(end.bound) == 3 * GANGS
    assert_well_ended(end, tmp_path)


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal of a run whose nodes are full of pods that must go for others; `high.yaml` has those."""
    folder = tmp_path_factory.mktemp("crowded")
    low = [node(f"n{each}", cpu="16", memory="64Gi") for each in range(6)]
    for name, value in (("low", 10), ("high", 1000)):
        low.append({"kind": "PriorityClass", "metadata": {"name": name}, "value": value})
        low[-1]["apiVersion"] = "scheduling.k8s.io/v1"
    for each in range(LOW):
        small: Any = {"cpu": "1", "memory": "64Mi", "duration": "0", "grace_s": 1}
        low += gang(f"l{each}", pods=4, min_member=1, priority_class="low", **small)
    high: list[Any] = []
    for each in range(HIGH):
        high += gang(f"h{each}", pods=3, cpu="1", memory="64Mi", duration="0", priority_class="high")
    written(folder, "low.yaml", low)
    written(folder, "high.yaml", high)
    assert ran(folder, "low.yaml")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("number", JOURNALS)
def test_what_is_in_flight_is_carried_out_once(tmp_path: Path, crowded: Path, number: int) -> None:
    chance = random.Random(number)
    kills = runs = 0
    while kills < min(A_JOURNAL, KILLS):
        runs += 1
        assert runs < 10 * A_JOURNAL, "the points are never reached"
        folder = tmp_path / str(runs)
        shutil.copytree(crowded, folder)
        kills += killed_until_ended(folder, chance, min(A_JOURNAL, KILLS) - kills)


def killed_until_ended(folder: Path, chance: random.Random, most: int) -> int:
    """Kill runs at some of the points, until one ends before it gets there; how often one was killed."""
    before, kills, living = anyio.run(facts, folder / "j.db"), 0, True
    while living and kills < most:
        what = chance.choice(list(fatal.WHAT))
        point = fatal.Point(chance.choice(fatal.WHEN), what, chance.randint(1, fatal.WHAT[what]))
        living = not ran(folder, "high.yaml", point)
        kills += living
        before = still_there(before, folder)
    if living:
        assert ran(folder, "high.yaml")
    end = still_there(before, folder)
    assert len(end.bound) == 4 * LOW + 3 * HIGH
    assert len(end.gone) == 3 * HIGH, "as many make room as without any kill"
    assert_well_ended(end, folder)
    return kills
