"""kill -9 of a real `pumice run`, at random moments, again and again on one journal; PUMICE_TEST_KILLS: how often."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from core.messages.events import Mutation
from storage import codec
from storage.errors import OpenError
from storage.journal import API
from storage.replay import verify
from storage.sqlite import SqliteJournal
from tests.kit.jobs import gang
from tests.kit.nodes import node

ROOT = Path(__file__).parents[3]
KILLS = int(os.environ.get("PUMICE_TEST_KILLS", "8"))
A_JOURNAL = 8
"""So many kills on one journal before the run is let end."""
GANGS = 150
CONFIG = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
configurations:
- name: pumice
  arguments: {checkpointEvery: 150, schedulePeriod: 5ms}
"""
LOSSES = "the journal ends before what was read of it"


def prepared(folder: Path) -> list[str]:
    """The command that is killed and started again."""
    objects = [node(f"n{number}", cpu="64", memory="256Gi") for number in range(6)]
    for number in range(GANGS):
        objects += gang(f"g{number}", pods=3, cpu="500m", memory="64Mi", duration="0")
    (folder / "all.yaml").write_text(yaml.safe_dump_all(objects), "utf-8")
    (folder / "some.conf").write_text(CONFIG, "utf-8")
    run = [sys.executable, "-m", "pumice", "run", "-f", str(folder / "all.yaml"), "--db", str(folder / "j.db")]
    return [*run, "--config", str(folder / "some.conf"), "--until", "idle", "-o", "json"]


def killed(command: list[str], after_s: float) -> None:
    """Start it and kill it so long after its journal was opened."""
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        lock = Path(command[command.index("--db") + 1] + "-lock")
        mark = lock.stat().st_mtime_ns if lock.exists() else 0
        deadline = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < deadline:
            if lock.exists() and lock.stat().st_mtime_ns != mark:
                break
            time.sleep(0.005)
        time.sleep(after_s)
        process.send_signal(signal.SIGKILL)


async def look(db: Path) -> dict[str, Any]:
    """What the journal holds now: where it ends, which pods were bound where, and how often."""
    try:
        journal = await SqliteJournal.open(db, read_only=True)
    except OpenError:
        return {"sequence": 0, "hash": b"", "bound": {}, "times": {}, "whole": True, "hashes": {}}
    async with journal:
        nodes: dict[str, str] = {}
        times: Counter[str] = Counter()
        hashes: dict[int, bytes] = {}
        after = 0
        while batch := await journal.read(after):
            for stored in batch:
                hashes[stored.sequence] = stored.hash
                if stored.kind == API and (change := codec.decode(stored.payload, Mutation)).kind == "Pod":
                    pod = codec.unpack(change.blob)
                    on = pod["spec"].get("nodeName", "")
                    uid = pod["metadata"]["uid"]
                    times[uid] += bool(on) and nodes.get(uid) != on
                    nodes[uid] = on
            after = batch[-1].sequence
        head, report = await journal.head(), await journal.check()
        bound = {uid: on for uid, on in nodes.items() if on}
        return {"sequence": head.sequence, "bound": bound, "times": times, "whole": report.whole, "hashes": hashes}


async def replayed(db: Path) -> tuple[bool, str]:
    async with await SqliteJournal.open(db, read_only=True) as journal:
        report = await verify(journal)
        return report.identical, str(report.first_difference)


@pytest.mark.parametrize("number", range(-(-KILLS // A_JOURNAL)))
def test_nothing_is_lost_and_nothing_bound_twice(tmp_path: Path, number: int) -> None:
    chance = random.Random(number)
    command = prepared(tmp_path)
    db = tmp_path / "j.db"
    before: dict[str, Any] = {"hashes": {}, "bound": {}}
    for _ in range(min(A_JOURNAL, KILLS - number * A_JOURNAL)):
        killed(command, chance.random() * 0.5)
        now = anyio.run(look, db)
        assert now["whole"]
        kept = {sequence: now["hashes"].get(sequence) for sequence in before["hashes"]}
        assert kept == before["hashes"], LOSSES
        assert {uid: now["bound"].get(uid) for uid in before["bound"]} == before["bound"]
        before = now
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    end = anyio.run(look, db)
    assert end["whole"]
    assert len(end["bound"]) == 3 * GANGS
    assert max(end["times"].values()) == 1
    assert {uid: end["bound"][uid] for uid in before["bound"]} == before["bound"]
    identical, difference = anyio.run(replayed, db)
    assert identical, difference
