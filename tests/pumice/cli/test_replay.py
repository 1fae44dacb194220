"""`pumice replay`, `pumice explain` and `pumice decide --db` on the journal of a real run."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.core.state.snapshot import Snapshot
from pumice.core.state.view import View
from pumice.storage import codec
from pumice.storage.rows import deflate, inflate
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.pumice.cli.terminal import pumice

ROOT = Path(__file__).parents[3]
STOCK_BUT = """\
actions: "{actions}"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}]
- plugins: [{{name: drf}}, {{name: predicates}}, {{name: proportion}}, {{name: {scorer}}}]
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal of two runs: four gangs, one of which never fits."""
    folder = tmp_path_factory.mktemp("replay")
    objects = [node(f"n{number}") for number in range(4)]
    objects.append(node("cordoned", unschedulable=True))
    for number in range(3):
        objects += gang(f"g{number}", pods=3, cpu="1", duration="200ms")
    objects += gang("huge", pods=2, cpu="100", duration="0")
    (folder / "all.yaml").write_text(yaml.safe_dump_all(objects), "utf-8")
    for _ in range(2):
        run = ("run", "-f", folder / "all.yaml", "--db", folder / "j.db", "--time", "virtual", "--until", "idle")
        assert pumice(*run).code == 0
    return folder / "j.db"


def test_it_comes_out_as_recorded(file: Path) -> None:
    said = pumice("replay", file, "--verify", "-o", "json")
    assert said.code == 0, said.out
    assert (said.json["identical"], said.json["first_difference"]) == (True, None)
    assert said.json["cycles"] >= 3
    assert said.json["events"] > 50
    assert said.json["events_per_s"] > 0
    assert "Every cycle came out as recorded" in pumice("replay", file, "-o", "table").out


def test_sessions_built_anew_decide_as_recorded(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = list[bool]()
    snapshot = View.snapshot

    def noted(self: View, *args: Any, **options: Any) -> Snapshot:
        kept.append(options.get("kept", False))
        return snapshot(self, *args, **options)

    monkeypatch.setattr(View, "snapshot", noted)
    assert pumice("replay", file, "--verify", "-o", "json").json["identical"]
    assert all(kept)
    kept.clear()
    said = pumice("replay", file, "--check-cycles", "-o", "json")
    assert (said.code, said.json["identical"]) == (0, True)
    assert kept
    assert not any(kept)
    refused = pumice("replay", file, "--check-cycles", "--config", "other.conf")
    assert (refused.code, "--check-cycles" in refused.err) == (2, True)


def test_some_of_the_cycles(file: Path) -> None:
    said = pumice("replay", file, "--from", 2, "--to", 3, "-o", "json").json
    assert (said["cycles"], said["first_cycle"], said["last_cycle"]) == (2, 2, 3)
    assert pumice("replay", file, "--from", 3, "--to", 2).code == 2
    beyond = pumice("replay", file, "--from", 5000)
    assert (beyond.code, "--from 5000: the journal ends before that cycle" in beyond.err) == (2, True)
    assert pumice("replay", file, "--verify", "--config", "x.conf").code == 2
    assert pumice("replay", file.with_name("none.db")).code == 2


def test_a_record_that_was_edited_is_found(file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "edited.db"
    shutil.copy(file, copy)
    with closing(sqlite3.connect(copy)) as connection:
        (sequence,) = connection.execute("SELECT min(sequence) FROM journal WHERE kind = 'decision'").fetchone()
        connection.execute("UPDATE journal SET kind = 'outcome' WHERE sequence = ?", (sequence,))
        connection.commit()
    said = pumice("replay", copy, "--verify", "-o", "json")
    assert said.code == 2
    assert said.json["first_bad"]["sequence"] == sequence
    assert said.json["equal_through"] == 0, "it is of the first cycle"
    table = pumice("replay", copy, "-o", "table").out
    assert f"The journal is damaged: record {sequence} is bad" in table
    assert "No whole cycle lies before it; the rest proves nothing." in table
    assert "Every cycle" not in table
    for command in (("explain", "--db", copy, "pod", "g1-1"), ("explain", "--db", copy, "pod", "huge-0")):
        assert f"record {sequence} is bad" in pumice(*command).err


def test_a_decision_that_was_edited_in_place_is_named(file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "edited.db"
    shutil.copy(file, copy)
    with closing(sqlite3.connect(copy)) as connection:
        query = "SELECT sequence, lead FROM journal WHERE kind = 'decision' ORDER BY sequence LIMIT 1 OFFSET 4"
        sequence, lead = connection.execute(query).fetchone()
        query = "SELECT packing, content FROM journal WHERE sequence = ?"
        packing, content = connection.execute(query, (sequence - lead,)).fetchone()
        dictionaries = dict(connection.execute("SELECT number, content FROM dictionary"))
        payload, _ = inflate(packing, content, dictionaries)
        query = "SELECT start, size FROM journal WHERE sequence = ?"
        start, size = connection.execute(query, (sequence,)).fetchone()
        record = payload[start : start + size]
        place = record.index(b"\xa4node\xa2n") + 7
        moved = record[:place] + (b"0" if record[place : place + 1] != b"0" else b"1") + record[place + 1 :]
        edited = deflate(payload[:start] + moved + payload[start + size :], dictionaries.get(packing, b""))
        connection.execute("UPDATE journal SET content = ? WHERE sequence = ?", (edited, sequence - lead))
        connection.commit()
    said = pumice("replay", copy, "--verify", "-o", "json")
    was, now = codec.unpack(record), codec.unpack(moved)
    assert said.code == 2
    assert said.json["first_bad"]["sequence"] == sequence
    difference = said.json["first_difference"]
    assert difference["task"] == f"{was['namespace']}/{was['name']}"
    assert (difference["recorded"]["node"], difference["decided"]["node"]) == (now["node"], was["node"])
    assert "The first difference is in cycle" in pumice("replay", copy, "-o", "table").out


def test_cycles_before_damage_are_said_to_be_equal(file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "edited.db"
    shutil.copy(file, copy)
    with closing(sqlite3.connect(copy)) as connection:
        (sequence,) = connection.execute("SELECT max(sequence) FROM journal WHERE kind = 'cycle'").fetchone()
        connection.execute("UPDATE journal SET at = at + 1 WHERE sequence = ?", (sequence,))
        connection.commit()
    said = pumice("replay", copy, "--verify", "-o", "table")
    found = re.search(r"Every cycle up to record (\d+) came out as recorded; the rest proves nothing", said.out)
    assert found is not None
    assert (said.code, 0 < int(found[1]) < sequence) == (2, True)


# --- independence


def replay_elsewhere(file: Path, python: str, **environment: str) -> dict[str, Any]:
    """The replay of the journal in a process of its own."""
    command = [python, "-m", "pumice", "replay", str(file), "--verify", "-o", "json"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout, done.stderr
    return {key: value for key, value in json.loads(done.stdout).items() if key not in ("seconds", "events_per_s")}


@pytest.mark.parametrize("seed", ["1", *(pytest.param(seed, marks=pytest.mark.slow) for seed in ("0", "4242"))])
def test_whatever_the_hash_seed(file: Path, seed: str) -> None:
    said = replay_elsewhere(file, sys.executable, PYTHONHASHSEED=seed)
    assert said["identical"], said


def other_python(version: str) -> str:
    """An interpreter of that version which has what Pumice needs, as PUMICE_TEST_PYTHONS or the path has it."""
    for python in (
        sys.executable,
        *os.environ.get("PUMICE_TEST_PYTHONS", "").split(os.pathsep),
        shutil.which(f"python{version}"),
    ):
        probe = f"import sys; assert sys.version_info[:2] == ({version.replace('.', ', ')}); import pumice.cli"
        if python and subprocess.run([python, "-c", probe], cwd=ROOT, capture_output=True, check=False).returncode == 0:
            return python
    pytest.skip(f"no Python {version} with Pumice's dependencies (name one in PUMICE_TEST_PYTHONS)")


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_whatever_the_version_of_python(file: Path, version: str) -> None:
    assert replay_elsewhere(file, other_python(version))["identical"]


@pytest.mark.parametrize(("backend", "workers"), [("asyncio", 1), ("trio", 7)])
def test_whatever_recorded_it(tmp_path: Path, backend: str, workers: int) -> None:
    config = STOCK_BUT.format(actions="enqueue, allocate, backfill", scorer="nodeorder")
    config += f"configurations:\n- name: pumice\n  arguments: {{bindWorkers: {workers}, dryRunWorkers: {workers}}}\n"
    (tmp_path / "some.conf").write_text(config, "utf-8")
    db = tmp_path / "j.db"
    run = ("run", "--db", db, "--backend", backend, "--config", tmp_path / "some.conf", "--until", "idle")
    said = pumice(*run, "-o", "json")
    assert (said.code, said.json["pods"]["succeeded"]) == (0, 6), said.err
    assert pumice("replay", db, "-o", "json").json["identical"]


# --- another configuration


def test_under_another_configuration(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.conf"
    other.write_text(STOCK_BUT.format(actions="enqueue, allocate", scorer="binpack"), "utf-8")
    said = pumice("replay", file, "--config", other, "-o", "json")
    assert said.code == 1, said.err
    moved = {job: figures["moved"] for job, figures in said.json["changed"]["jobs"].items() if "moved" in figures}
    assert moved
    assert {node for figures in moved.values() for node in figures["after"].values()} < {"n0", "n1", "n2", "n3"}
    assert said.json["before"]["default"]["bound"] == said.json["after"]["default"]["bound"] == 9
    assert "moved" in pumice("replay", file, "--config", other, "-o", "table").out


def test_under_the_same_configuration_nothing_differs(file: Path) -> None:
    same = ROOT / "config" / "default.conf"
    said = pumice("replay", file, "--config", same, "-o", "json")
    assert (said.code, said.json["identical"]) == (0, True), said.out


# --- explain, and decide at a cycle


def test_why_it_is_pending(file: Path) -> None:
    said = pumice("explain", "--db", file, "pod", "default/huge-0", "-o", "json").json
    assert (said["kind"], said["name"], said["state"]) == ("pod", "default/huge-0", "Pending")
    assert sum(said["nodes"].values()) == 5
    assert sum(of.get("refused", 0) for of in said["plugins"].values()) == 5 - said["nodes"].get("fits", 0)
    assert said["reason"]
    assert said["message"]
    assert said["unblock"]


def test_why_it_was_placed_there(file: Path) -> None:
    said = pumice("explain", "--db", file, "pod", "g1-1", "-o", "json").json
    assert (said["state"], said["reason"]) == ("Bound", "Placed")
    assert sum(said["nodes"].values()) == 5
    assert said["nodes"]["fits"] == 4
    placed = said["message"].split(" was placed on ")[1][:2]
    scores = said["plugins"]["nodeorder"]["scores"]
    assert placed in scores
    assert scores[placed] == max(scores.values())


def test_a_whole_job_and_a_given_cycle(file: Path) -> None:
    said = pumice("explain", "--db", file, "podgroup", "default/huge", "--cycle", 2, "-o", "json").json
    assert said["cycle"] == 2
    assert said["tasks"] == {"default/huge-0": "Pending", "default/huge-1": "Pending"}
    assert "nodes" in pumice("explain", "--db", file, "podgroup", "huge", "-o", "table").out


@pytest.mark.parametrize("command", [("replay",), ("journal",), ("explain", "pod", "default/p", "--db")])
def test_an_empty_file_is_no_journal(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    said = pumice(*command, tmp_path / "empty.db")
    assert (said.code, "this file is empty, and no journal" in said.err) == (2, True), said


def test_what_was_probably_meant(file: Path) -> None:
    assert "near: default/huge-" in pumice("explain", "--db", file, "pod", "default/hug-0").err
    assert "near: default/g0" in pumice("explain", "--db", file, "job", "default/g0x").err
    assert "near: default/g0" in pumice("explain", "--db", file, "job", "another-namespace/g0").err


def test_what_cannot_be_explained(file: Path) -> None:
    assert pumice("explain", "--db", file, "pod", "default/nobody").code == 2
    assert pumice("explain", "--db", file, "moon", "default/huge-0").code == 2
    assert pumice("explain", "--db", file, "pod", "default/huge-0", "--cycle", 9999).code == 2


def test_a_recorded_cycle_decided_again(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM journal WHERE kind = 'cycle'").fetchone()
    bound: dict[str, str] = {}
    for cycle in range(1, count + 1):
        said = pumice("decide", "--db", file, "--cycle", cycle, "-o", "json")
        assert said.code == 0, said.err
        bound |= said.json["cycles"][0]["binds"]
        story = pumice("journal", file, "--cycle", cycle, "-o", "json").json
        assert said.json["cycles"][0]["binds"] == {
            f"{one['namespace']}/{one['name']}": one["node"] for one in story["decisions"]
        }
    assert len(bound) == 9
