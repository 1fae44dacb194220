"""Virtual time is one function of input, configuration and seed: the same journal, to the last hash."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
import yaml

from pumice.actors.scheduling import core_decider
from pumice.core.messages.decisions import Decision
from pumice.storage import codec
from pumice.storage.journal import CYCLE, DECISION
from pumice.storage.sqlite import SqliteJournal
from tests.kit.jobs import gang, vcjob
from tests.kit.nodes import node
from tests.kit.source import ROOT
from tests.pumice.cli.terminal import pumice

if TYPE_CHECKING:
    from pumice.config.schema import SchedulerConfig

CONFIG = """\
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
configurations: [{name: pumice, arguments: {bindWorkers: 3, checkpointEvery: 100}}]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More than there is room for at the same time, ends at many times, jobs whose pods controllers make."""
    folder = tmp_path_factory.mktemp("virtual")
    objects = [node(f"n{number}", cpu="6") for number in range(5)]
    for number in range(20):
        objects += gang(f"g{number}", pods=1 + number % 4, cpu="1", duration=f"{300 + 170 * number}ms")
    objects += [vcjob(f"j{number}") for number in range(3)]
    (folder / "all.yaml").write_text(yaml.safe_dump_all(objects), "utf-8")
    (folder / "some.conf").write_text(CONFIG, "utf-8")
    return folder


def command(folder: Path, db: str, *more: str) -> list[str]:
    run = ["run", "-f", str(folder / "all.yaml"), "--config", str(folder / "some.conf"), "--db", str(folder / db)]
    return [*run, "--time", "virtual", "--until", "idle", "-o", "json", *more]


def digest(path: Path) -> tuple[int, str]:
    """How many records the journal has, and the hash of the last."""

    async def read() -> tuple[int, str]:
        async with await SqliteJournal.open(path, read_only=True) as journal:
            head = await journal.head()
            return head.sequence, head.hash.hex()

    return anyio.run(read)


def ran(folder: Path, db: str, *more: str) -> tuple[int, str]:
    said = pumice(*command(folder, db, *more))
    assert said.code == 0, said.err
    return digest(folder / db)


def elsewhere(folder: Path, db: str, hash_seed: str) -> tuple[int, str]:
    """In a process of its own."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    subprocess.run(
        [sys.executable, "-m", "pumice", *command(folder, db)], cwd=ROOT, env=environment, check=True, timeout=60,
        capture_output=True,
    )  # fmt: skip
    return digest(folder / db)


def decided(path: Path) -> tuple[int, list[tuple[float, str]]]:
    """How many cycles there were, and what was decided when: a decision without the number of its cycle."""

    async def read() -> tuple[int, list[tuple[float, str]]]:
        async with await SqliteJournal.open(path, read_only=True) as journal:
            stored = await journal.read(limit=10**6)
        told = [(each.at, repr(codec.decode(each.payload, Decision))) for each in stored if each.kind == DECISION]
        return sum(each.kind == CYCLE for each in stored), told

    return anyio.run(read)


def test_without_cycles_that_hear_only_themselves_all_is_decided_at_the_same_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(config: SchedulerConfig) -> bool:
        return False

    (folder / "placing.conf").write_text(CONFIG.replace("preempt, ", ""), "utf-8")
    placing = "--config", str(folder / "placing.conf")
    ran(folder, "some.db", *placing)
    monkeypatch.setattr(core_decider, "may_skip_no_op", never)
    ran(folder, "every.db", *placing)
    (some, told), (every, told_then) = decided(folder / "some.db"), decided(folder / "every.db")
    assert some < every - 2
    assert told == told_then


@pytest.mark.slow
def test_the_same_journal_again_and_in_other_processes_and_under_load(folder: Path) -> None:
    expected = ran(folder, "0.db")
    assert expected[0] > 500
    stop = threading.Event()

    def burn() -> None:
        while not stop.is_set():
            sum(range(1000))

    busy = threading.Thread(target=burn)
    busy.start()
    try:
        assert ran(folder, "1.db") == expected
    finally:
        stop.set()
        busy.join()
    assert elsewhere(folder, "2.db", hash_seed="33") == expected


@pytest.mark.slow
def test_the_same_journal_ten_times(folder: Path) -> None:
    assert len({ran(folder, f"{number}-of-ten.db") for number in range(10)}) == 1


def test_another_seed_is_another_run(folder: Path) -> None:
    assert ran(folder, "seed-1.db", "--seed", "1") == ran(folder, "seed-1-again.db", "--seed", "1")
    assert digest(folder / "seed-1.db") != ran(folder, "seed-2.db", "--seed", "2")


def test_a_journal_that_is_continued_is_so_too(folder: Path) -> None:
    ends = set[tuple[int, str]]()
    for name in ("first.db", "second.db"):
        said = pumice(*command(folder, name, "--until", "cycles=4"))
        assert said.code == 0, said.err
        ends.add(ran(folder, name))
    assert len(ends) == 1


def test_time_begins_when_it_is_told_to(folder: Path) -> None:
    start = ("--start", "2031-05-06T07:08:09Z")
    said = pumice(*command(folder, "start.db", *start))
    assert said.code == 0, said.err
    story = pumice("journal", folder / "start.db", "--about", "default/g0", "-o", "json").json["story"]
    assert story[0]["at"] == pytest.approx(datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC).timestamp(), abs=5)
    again = pumice(*command(folder, "start.db", *start))
    assert again.code == 2
    assert "--start: the journal goes on until 2031-05-06T07:" in again.err


@pytest.mark.parametrize(
    ("created", "changed", "flags", "began"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", (), "2026-01-02T00:00:00Z"),
        ("2020-01-02T00:00:00Z", "2020-01-01T00:00:00Z", (), "2020-01-02T00:00:00Z"),
        ("2026-01-01T00:00:00Z", "2999-01-01T00:00:00Z", (), "2023-11-14T22:13:20Z"),
        ("2026-01-01T00:00:00Z", "", ("--start", "2024-01-01T00:00:00Z"), "2024-01-01T00:00:00Z"),
        ("", "", (), "2023-11-14T22:13:20Z"),
    ],
)
def test_time_begins_when_the_times_of_a_dump_are_over(
    tmp_path: Path, created: str, changed: str, flags: tuple[str, ...], began: str
) -> None:
    """What is still to arrive is not there yet, and says nothing about what time it is."""
    there, group, later = node("n0"), *gang("g", pods=1)
    there["metadata"]["creationTimestamp"] = created or None
    there["status"]["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": changed or None}]
    group["metadata"].pop("creationTimestamp", None)
    later["metadata"] |= {"creationTimestamp": "2030-01-01T00:00:00Z"}
    later["metadata"]["annotations"]["pumice.dev/arrival"] = "1s"
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all([there, group, later]), "utf-8")
    run = ["run", "-f", tmp_path / "all.yaml", "--db", tmp_path / "j.db", "--time", "virtual", "--until", "2s"]
    assert pumice(*run, *flags).code == 0
    story = pumice("journal", tmp_path / "j.db", "--about", "default/g", "-o", "json").json["story"]
    assert story[0]["at"] == datetime.fromisoformat(began).timestamp()


def test_a_journal_is_continued_after_the_times_of_what_is_added(tmp_path: Path) -> None:
    told = list[float]()
    for number, time in enumerate(("2026-01-01T00:00:00Z", "2025-01-01T00:00:00Z", "2027-01-01T00:00:00Z")):
        made = node(f"n{number}")
        made["metadata"]["creationTimestamp"] = time
        (tmp_path / "all.yaml").write_text(yaml.safe_dump_all([made, vcjob(f"g{number}")]), "utf-8")
        run = ["run", "-f", tmp_path / "all.yaml", "--db", tmp_path / "j.db", "--time", "virtual", "--until", "idle"]
        assert pumice(*run).code == 0
        story = pumice("journal", tmp_path / "j.db", "--about", f"default/g{number}", "-o", "json").json["story"]
        told.append(story[0]["at"])
    first, second, third = told
    assert first == datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    assert first < second < first + 60
    assert third == datetime(2027, 1, 1, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--time", "real", "--start", "2031-05-06"), "add --time virtual"),
        (("--start", "1600-01-01T00:00:00Z"), "expected a time from 1970 to 2199"),
        (("--start", "9999-12-31T23:59:59Z"), "expected a time from 1970 to 2199"),
        (("--start", "tomorrow"), "expected a time such as"),
        (("--start", "2031-13-06"), "not a valid time: 2031-13-06"),
    ],
)
def test_no_clock_begins_then(folder: Path, arguments: tuple[str, ...], words: str) -> None:
    said = pumice(*command(folder, "never.db"), *arguments)
    assert (said.code, said.out) == (2, "")
    assert words in said.err
    assert not (folder / "never.db").exists()
