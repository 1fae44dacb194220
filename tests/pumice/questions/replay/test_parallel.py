"""Verification by several processes comes to what one process comes to."""

from __future__ import annotations

import itertools
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pumice.questions.replay import parallel
from pumice.questions.replay.compare import CycleDifference
from pumice.questions.replay.parallel import FOLD, CycleRange, lengths, merged, shares, verify_shares
from pumice.questions.replay.verify import ReplayReport, verify
from pumice.storage.journal import ChainReport, FirstBad
from pumice.storage.sqlite import SqliteJournal
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.pumice.cli.terminal import pumice


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal of several runs, one after the other."""
    folder = tmp_path_factory.mktemp("parallel")
    for turn in range(3):
        objects = [node(f"n{number}") for number in range(3)]
        objects += gang(f"g{turn}", pods=3, cpu="1", duration="100ms")
        (folder / "all.yaml").write_text(yaml.safe_dump_all(objects), "utf-8")
        said = pumice("run", "-f", folder / "all.yaml", "--db", folder / "j.db", "--until", "idle", "-o", "json")
        assert said.code == 0, said.err
    return folder / "j.db"


async def whole(file: Path) -> ReplayReport:
    async with await SqliteJournal.open(file, read_only=True) as journal:
        return await verify(journal)


async def cut(file: Path, workers: int) -> list[CycleRange]:
    async with await SqliteJournal.open(file, read_only=True) as journal:
        return await shares(journal, workers)


def test_by_shares_it_is_as_by_one(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "LEAST", 20)
    parts = anyio.run(cut, file, 3)
    assert len(parts) == 3
    assert all(one.last == after.first - 1 for one, after in itertools.pairwise(parts))
    told: list[int] = []
    report, alone = verify_shares(file, parts, None, told.append), anyio.run(whole, file)
    assert report.identical
    assert (report.cycles, report.first_cycle, report.last_cycle) == (alone.cycles, 1, alone.last_cycle)
    assert report.events == alone.events
    assert 0 < sum(told) <= alone.events


def test_the_first_share_that_differs_is_told(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "LEAST", 20)
    copy = tmp_path / "edited.db"
    shutil.copy(file, copy)
    with closing(sqlite3.connect(copy)) as connection:
        (sequence,) = connection.execute("SELECT max(sequence) FROM journal WHERE kind = 'decision'").fetchone()
        connection.execute("UPDATE journal SET at = at + 1 WHERE sequence = ?", (sequence,))
        connection.commit()
    report, alone = verify_shares(copy, anyio.run(cut, copy, 2), None, lambda events: None), anyio.run(whole, copy)
    assert report.chain is not None
    assert alone.chain is not None
    assert report.chain.first_bad == alone.chain.first_bad == FirstBad(sequence, "changed: it does not match its hash")
    assert not report.identical


def test_a_small_journal_is_for_one(file: Path) -> None:
    assert anyio.run(cut, file, 8) == [CycleRange(1, None)]


@given(st.integers(1, 64))
def test_all_processes_end_at_the_same_time(processes: int) -> None:
    parts, begun, ends = lengths(processes), 0.0, list[float]()
    for part in parts:
        ends.append(begun * FOLD + part)
        begun += part
    assert sum(parts) == pytest.approx(1)
    assert ends == pytest.approx([ends[0]] * processes)


def test_reports_are_merged_up_to_the_first_difference() -> None:
    chain = ChainReport(True, 10)
    differs = CycleDifference(7, "default/a", None, None)
    reports = [
        ReplayReport(5, 50, 1, 5, None, chain),
        ReplayReport(2, 80, 6, 7, differs, chain),
        ReplayReport(9, 95, 8, 16, None, chain, begun=60),
    ]
    found = merged(reports)
    assert (found.cycles, found.first_cycle, found.last_cycle, found.events) == (7, 1, 7, 80)
    assert found.first_difference is differs
    assert merged([reports[0], reports[2]]).events == 155
