"""What `run --keep` and `--keep-events` leave of a journal: what recovery and a replay need, and what the rule says."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from pumice.core.objects.metadata import Object
from pumice.storage.retention import Retention
from pumice.storage.sqlite.chained import Segment
from pumice.storage.sqlite.segments import Archive
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.pumice.cli.terminal import pumice

CONFIG = """\
actions: "enqueue, allocate"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: nodeorder}]
configurations: [{name: pumice, arguments: {checkpointEvery: 40, schedulePeriod: 5ms}}]
"""


def facts(db: Path) -> tuple[int, int, int, int]:
    """The first and the last record, how many cycles there are, and the oldest checkpoint."""
    with closing(sqlite3.connect(db)) as connection:
        (first, last) = connection.execute("SELECT min(sequence), max(sequence) FROM journal").fetchone()
        (cycles,) = connection.execute("SELECT count(*) FROM journal WHERE kind = 'cycle'").fetchone()
        (checkpoint,) = connection.execute("SELECT min(sequence) FROM checkpoint").fetchone()
    return first, last, cycles, checkpoint or 0


def ran(folder: Path, *flags: object) -> tuple[int, int, int, int]:
    """Several runs on one journal, each with more to do; it is whole and replays after each."""
    (folder / "some.conf").write_text(CONFIG, "utf-8")
    objects = [node(f"n{number}", cpu="64") for number in range(3)]
    for turn in range(4):
        objects += gang(f"g{turn}", pods=8, cpu="1", duration="50ms")
        (folder / "all.yaml").write_text(yaml.safe_dump_all(objects), "utf-8")
        run = ["run", "-f", folder / "all.yaml", "--db", folder / "j.db", "--config", folder / "some.conf"]
        said = pumice(*run, *flags, "--until", "idle", "-o", "json")
        assert said.code == 0, said.err
        assert said.json["pods"]["succeeded"] == 8 * (turn + 1)
        assert pumice("journal", folder / "j.db", "--check", "-o", "json").json["whole"]
        assert pumice("replay", folder / "j.db", "-o", "json").json["identical"]
    return facts(folder / "j.db")


@pytest.mark.parametrize(
    ("time", "flags"),
    [
        ("real", ("--keep-events", 50)),
        ("virtual", ("--keep", 2)),
        pytest.param("real", ("--keep", 2), marks=pytest.mark.slow),
        pytest.param("virtual", ("--keep-events", 50), marks=pytest.mark.slow),
    ],
)
def test_no_more_is_cut_than_may_be(tmp_path: Path, time: str, flags: tuple[str, int]) -> None:
    first, last, cycles, checkpoint = ran(tmp_path, "--time", time, *flags)
    assert 1 < first <= checkpoint + 1
    if flags[0] == "--keep":
        assert cycles >= flags[1]
    else:
        assert last - first + 1 >= flags[1]


@pytest.mark.parametrize("flags", [("--keep", "7d"), ("--keep-events", 1_000_000), ()])
def test_what_is_kept_is_not_cut(tmp_path: Path, flags: tuple[str, object]) -> None:
    assert ran(tmp_path, "--time", "virtual", *flags)[0] == 1


@pytest.mark.parametrize("keep", ["7", "7d"])
def test_both_rules_keep_what_either_keeps(tmp_path: Path, keep: str) -> None:
    assert ran(tmp_path, "--time", "virtual", "--keep", keep, "--keep-events", 1_000_000)[0] == 1


@pytest.mark.parametrize("flags", [("--keep", "x"), ("--keep", "-1"), ("--keep-events", "0x"), ("--keep", "7w")])
def test_a_rule_nobody_understands_is_bad_input(tmp_path: Path, flags: tuple[str, str]) -> None:
    assert pumice("run", "--db", tmp_path / "j.db", *flags, "--until", "idle").code == 2


def test_a_virtual_run_deletes_segments_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A month would otherwise fill the disk before its end."""
    deleted, retire = list[int](), Archive.retire

    async def noted(archive: Archive, retention: Retention, now: float) -> list[Segment]:
        gone = await retire(archive, retention, now)
        deleted.append(len(gone))
        return gone

    monkeypatch.setattr(Archive, "retire", noted)
    (tmp_path / "some.conf").write_text(CONFIG, "utf-8")
    objects: list[Object] = [node(f"n{number}", cpu="64") for number in range(3)]
    for turn in range(12):
        objects += gang(f"g{turn}", pods=8, cpu="20", duration="50ms")
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(objects), "utf-8")
    run = ["run", "-f", tmp_path / "all.yaml", "--db", tmp_path / "j.db", "--config", tmp_path / "some.conf"]
    said = pumice(*run, "--time", "virtual", "--segments", 50, "--keep", 2, "--until", "idle", "-o", "json")
    assert said.code == 0, said.err
    assert sum(deleted[:-1]) > 0
    assert pumice("journal", tmp_path / "j.db", "--check", "-o", "json").json["whole"]
