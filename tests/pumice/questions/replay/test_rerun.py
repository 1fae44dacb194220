"""A record under another configuration: the record is one side, and both part where the decisions do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from pumice.core.messages.events import CycleRecord
from pumice.questions.replay import parting
from pumice.questions.replay.compare import CycleDifference
from pumice.storage.sqlite import SqliteJournal
from tests.kit.jobs import gang, vcjob
from tests.kit.nodes import node
from tests.kit.pods import pod
from tests.pumice.cli.terminal import Said, pumice

CONFIG = """\
actions: "{actions}"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}]
- plugins: [{{name: drf}}, {{name: predicates}}, {{name: proportion}}, {{name: {scorer}}}]
configurations: [{{name: pumice, arguments: {{schedulePeriod: 100ms, checkpointEvery: 60}}}}]
"""
NOTHING: dict[str, Any] = {"jobs": {}, "queues": {}, "cluster": {}}


def config(path: Path, actions: str = "enqueue, allocate, preempt, backfill", scorer: str = "nodeorder") -> Path:
    path.write_text(CONFIG.format(actions=actions, scorer=scorer), "utf-8")
    return path


def objects(unit_ms: int) -> list[Any]:
    """Waves of gangs, a few too many for the nodes; some pods make room for others; some belong to nobody.

    None ends at the very moment of a cycle: which of the two comes first then is left to chance.
    """
    some: list[Any] = [node(f"n{number}", cpu="5", gpus=2) for number in range(4)]
    for name, value in (("low", 1), ("high", 1000)):
        some.append({"kind": "PriorityClass", "metadata": {"name": name}, "value": value})
        some[-1]["apiVersion"] = "scheduling.k8s.io/v1"
    for number in range(8):
        lasts = f"{unit_ms * (1 + number)}ms"
        some += gang(f"g{number}", pods=1 + number % 4, cpu="1", gpus=number % 2, duration=lasts, priority_class="low")
    some += gang("g9", pods=2, min_member=1, cpu="2", duration="237ms", priority_class="high")
    plain = pod("plain", cpu="1")
    plain["metadata"]["annotations"] = {"pumice.dev/duration": "319ms"}
    return [*some, vcjob("job"), plain]


def record(folder: Path, clock: str, *more: str, lives: int = 2) -> Path:
    """What is there at first, and in the second life of the run more that comes later."""
    every = objects(70 if clock == "real" else 733)
    for number, part in list(enumerate((every[:-9], every)))[-lives:]:
        (folder / f"{number}.yaml").write_text(yaml.safe_dump_all(part), "utf-8")
        until = "cycles=4" if number == 0 else "idle"
        run = ("run", "-f", folder / f"{number}.yaml", "--config", config(folder / "some.conf"), "--time", clock)
        said = pumice(*run, "--db", folder / "j.db", "--until", until, "-o", "json", *more)
        assert said.code == 0, said.err
    return folder / "j.db"


@pytest.fixture(scope="module")
def virtual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("virtual"), "virtual")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One life on virtual time."""
    return record(tmp_path_factory.mktemp("whole"), "virtual", lives=1)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("real"), "real")


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its first records are gone."""
    return record(tmp_path_factory.mktemp("cut"), "real", "--keep-events", "50")


def otherwise(file: Path, conf: Path, *more: object) -> Said:
    said = pumice("replay", file, "--config", conf, *more, "-o", "json")
    assert said.out, said.err
    return said


def chain(file: Path) -> tuple[int, bytes]:
    async def end() -> tuple[int, bytes]:
        async with await SqliteJournal.open(file, read_only=True) as journal:
            head = await journal.head()
            return head.sequence, head.hash

    return anyio.run(end)


def verified(file: Path) -> bool:
    return bool(pumice("replay", file, "--verify", "-o", "json").json["identical"])


@pytest.mark.parametrize("name", ["virtual", *(pytest.param(one, marks=pytest.mark.slow) for one in ("real", "cut"))])
def test_the_same_configuration_gives_no_difference(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """And what is kept of that run is the record, to the last hash."""
    file: Path = request.getfixturevalue(name)
    said = otherwise(file, config(tmp_path / "same.conf"), "--save", tmp_path / "kept.db")
    assert said.code == 0, said.out
    assert (said.json["identical"], said.json["parted_at"], said.json["first_difference"]) == (True, None, None)
    assert said.json["before"] == said.json["after"]
    assert said.json["changed"] == NOTHING
    assert chain(tmp_path / "kept.db") == chain(file)
    assert verified(tmp_path / "kept.db")


def test_whenever_they_part_virtual_time_goes_on_as_the_record_did(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made to part where nothing differs: what is in flight, what runs and what is to come is handed over whole."""
    same = config(tmp_path / "same.conf")
    cycles = otherwise(whole, same).json["cycles"]
    assert cycles > 15
    for number in range(1, cycles + 1, 6):

        def other_times(_: Any, record: CycleRecord, number: int = number) -> CycleDifference | None:
            return CycleDifference(number, "", None, None) if record.cycle == number else None

        monkeypatch.setattr(parting._Follower, "_other_times", other_times)  # pyright: ignore[reportPrivateUsage]
        said = otherwise(whole, same, "--save", tmp_path / f"{number}.db")
        assert said.json["parted_at"] is not None
        assert (number, said.json["changed"]) == (number, NOTHING)
        assert verified(tmp_path / f"{number}.db")


@pytest.mark.parametrize("name", ["virtual", "real", "cut"])
def test_another_configuration_parts_and_both_end_together(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    file: Path = request.getfixturevalue(name)
    other = config(tmp_path / "other.conf", scorer="binpack")
    said = otherwise(file, other, "--save", tmp_path / "kept.db")
    assert (said.code, said.json["identical"]) == (1, False)
    assert said.json["parted_at"] is not None
    assert said.json["before"] == otherwise(file, config(tmp_path / "same.conf")).json["before"]  # the record itself
    capacities = [said.json["cluster"][side]["cpu"]["capacity_s"] for side in ("before", "after")]
    assert capacities[0] == capacities[1] > 0
    assert verified(tmp_path / "kept.db")
    again = otherwise(tmp_path / "kept.db", other)
    assert (again.code, again.json["before"]["default"]["bound"]) == (0, said.json["after"]["default"]["bound"])


def test_what_nobody_lets_in_is_not_bound(virtual: Path, tmp_path: Path) -> None:
    said = otherwise(virtual, config(tmp_path / "other.conf", actions="backfill"))
    assert said.code == 1
    assert said.json["after"]["default"]["bound"] == 0 < said.json["before"]["default"]["bound"]
    assert said.json["after"]["default"]["pods"] > 0
    table = pumice("replay", virtual, "--config", tmp_path / "other.conf", "-o", "table").out
    assert "The decisions part in cycle" in table
    assert "nvidia.com/gpu allocated_s" in table
    (memory,) = [line.split() for line in table.splitlines() if "memory allocated_s" in line]
    assert [each[-1] for each in memory[3:]] == ["i", "s", "0", "s"], memory


def test_pods_run_as_long_as_they_did(tmp_path: Path) -> None:
    """Those that do not say how long: the record tells it, although nobody has written it down."""
    some = [node("n0", cpu="2"), *gang("g", pods=4, min_member=1, cpu="1")]
    for each in some[2:]:
        each["metadata"]["annotations"].pop("pumice.dev/duration", None)
    for each in some[1:]:
        each["metadata"].setdefault("annotations", {})["pumice.dev/arrival"] = "1s"  # between two cycles of the record
    (tmp_path / "some.yaml").write_text(yaml.safe_dump_all(some), "utf-8")
    run = ("run", "-f", tmp_path / "some.yaml", "--time", "virtual", "--default-duration", "60s", "--until", "idle")
    seldom, often = config(tmp_path / "a.conf"), config(tmp_path / "b.conf")
    seldom.write_text(seldom.read_text("utf-8").replace("100ms", "2900ms"), "utf-8")
    assert pumice(*run, "--config", seldom, "--db", tmp_path / "j.db").code == 0
    said = otherwise(tmp_path / "j.db", often)
    assert said.json["parted_at"] is not None
    (job,) = said.json["changed"]["jobs"].values()
    assert job["finished_s"] == {"before": pytest.approx(122, abs=1), "after": pytest.approx(121, abs=0.3)}
    assert job["finished_s"]["after"] < job["finished_s"]["before"]


def test_other_times_of_cycles_are_other_cycles_from_the_first_on(virtual: Path, tmp_path: Path) -> None:
    other = config(tmp_path / "other.conf")
    other.write_text(other.read_text("utf-8").replace("100ms", "700ms"), "utf-8")
    said = otherwise(virtual, other)
    difference = said.json["first_difference"]
    assert (difference["cycle"], difference["decided"]) == (1, {"schedule_period_s": 0.7})
    assert said.json["cycles"] < otherwise(virtual, config(tmp_path / "same.conf")).json["cycles"]


def test_what_cannot_be_kept_is_said_before(virtual: Path, tmp_path: Path) -> None:
    same = config(tmp_path / "same.conf")
    there = pumice("replay", virtual, "--config", same, "--save", virtual)
    assert (there.code, "name one that is to be made" in there.err) == (2, True)
    alone = pumice("replay", virtual, "--save", tmp_path / "x.db")
    assert (alone.code, "name that with --config" in alone.err) == (2, True)
