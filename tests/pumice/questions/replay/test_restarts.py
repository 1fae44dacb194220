"""A record of several processes, some of which were killed: it is as good as that of one, and so are its restarts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from pumice.core.messages.events import CycleRecord
from pumice.core.objects.metadata import parse_time
from pumice.questions.replay import parting
from pumice.questions.replay.compare import CycleDifference
from pumice.questions.replay.replayer import ProcessReader
from pumice.runtime.journals import keep
from pumice.storage.journal import CYCLE, OUTCOME, Record, Stored
from pumice.storage.memory import MemoryJournal
from pumice.storage.sqlite import SqliteJournal
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.pumice.cli.terminal import pumice
from tests.pumice.questions.replay.test_rerun import NOTHING, chain, config, objects, otherwise, verified


def lived(folder: Path, clock: str, unit_ms: int, *until: str) -> Path:
    """One process after the other on one journal."""
    (folder / "all.yaml").write_text(yaml.safe_dump_all(objects(unit_ms)), "utf-8")
    run = ("run", "-f", folder / "all.yaml", "--config", config(folder / "some.conf"), "--db", folder / "j.db")
    for each in until:
        said = pumice(*run, "--time", clock, "--until", each, "-o", "json")
        assert said.code == 0, said.err
    return folder / "j.db"


async def records_of(file: Path) -> list[Stored]:
    async with await SqliteJournal.open(file, read_only=True) as journal:
        return list(await journal.read())


def killed(file: Path, kind: str, number: int, path: Path) -> None:
    """What a process leaves that is killed just before it writes the record of that kind and number."""

    async def begun() -> MemoryJournal:
        stored, memory = await records_of(file), MemoryJournal()
        place = [row for row, one in enumerate(stored) if one.kind == kind][number]
        await memory.append([Record(one.kind, one.payload, one.cause, one.at) for one in stored[:place]])
        return memory

    keep(anyio.run(begun), path)


@pytest.fixture(scope="module")
def restarted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four processes on virtual time; pods run and are told to go while there is none."""
    return lived(tmp_path_factory.mktemp("restarted"), "virtual", 733, "cycles=3", "cycles=7", "cycles=12", "idle")


@pytest.mark.anyio
async def test_when_one_ended_and_the_next_one_went_on(restarted: Path) -> None:
    lives, found = ProcessReader(), list[tuple[float, float]]()
    for stored in await records_of(restarted):
        restart = lives.follow(stored)
        if restart is not None:
            found.append((round(restart.down_at - 1.7e9, 3), round(restart.up_at - 1.7e9, 3)))
    assert len(found) == 3
    assert [round(up_at - down_at, 3) for down_at, up_at in found] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("number", [4, 9, 13, 14])
def test_its_restarts_are_repeated_after_a_parting(
    number: int, restarted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made to part where nothing differs: pods that ran or were leaving at a restart end when they did."""

    def other_times(_: Any, record: CycleRecord) -> CycleDifference | None:
        return CycleDifference(number, "", None, None) if record.cycle == number else None

    monkeypatch.setattr(parting._Follower, "_other_times", other_times)  # pyright: ignore[reportPrivateUsage]
    said = otherwise(restarted, config(tmp_path / "same.conf"), "--save", tmp_path / "kept.db")
    assert said.json["parted_at"] is not None
    assert said.json["changed"] == NOTHING
    assert verified(tmp_path / "kept.db")


@pytest.mark.slow
@pytest.mark.parametrize(("clock", "unit_ms"), [("virtual", 733), ("real", 70)])
@pytest.mark.parametrize(("kind", "number"), [(CYCLE, 4), (OUTCOME, 5)])
def test_of_a_process_that_was_killed_nothing_differs(
    clock: str, unit_ms: int, kind: str, number: int, tmp_path: Path
) -> None:
    """Between two cycles, and with binds under way of which nobody had heard yet."""
    whole = lived(tmp_path, "virtual", unit_ms, "cycles=9")
    (tmp_path / "again").mkdir()
    killed(whole, kind, number, tmp_path / "again" / "j.db")
    file = lived(tmp_path / "again", clock, unit_ms, "idle")
    said = otherwise(file, config(tmp_path / "same.conf"), "--save", tmp_path / "kept.db")
    assert said.code == 0, said.out
    assert (said.json["identical"], said.json["parted_at"], said.json["changed"]) == (True, None, NOTHING)
    assert chain(tmp_path / "kept.db") == chain(file)
    assert verified(file)


def test_no_cycle_is_missed_while_nobody_ran(tmp_path: Path) -> None:
    """The other configuration would have looked again after ten minutes; no process was there to do it."""
    run = ("run", "--config", config(tmp_path / "some.conf"), "--db", tmp_path / "j.db", "--time", "virtual")
    waits = [node("n0", cpu="1"), *gang("g", pods=2, cpu="1")]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(waits), "utf-8")
    first, later = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"
    for start, until in ((first, "cycles=2"), (later, "cycles=4")):
        said = pumice(*run, "-f", tmp_path / "all.yaml", "--start", start, "--until", until)
        assert said.code == 0, said.err
    other = config(tmp_path / "other.conf")
    plugin = "{name: sla, arguments: {sla-waiting-time: 10m}}"
    other.write_text(other.read_text("utf-8").replace("{name: drf}", f"{{name: drf}}, {plugin}"), "utf-8")
    said = otherwise(tmp_path / "j.db", other)
    assert said.json["parted_at"] is None or said.json["parted_at"] >= parse_time(later), said.json
