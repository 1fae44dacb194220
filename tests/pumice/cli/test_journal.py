"""`pumice journal` on a real file."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import anyio
import pytest

from pumice.core.messages.events import ShadowCompared, ShadowDifference
from pumice.storage import codec
from pumice.storage.journal import SHADOW, Checkpoint, Record
from pumice.storage.sqlite import SqliteJournal
from tests.pumice.cli.terminal import pumice
from tests.pumice.questions.history.records import RECORDS


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A journal with a few records."""
    path = tmp_path / "j.db"

    async def write() -> None:
        async with await SqliteJournal.open(path) as journal:
            await journal.append(RECORDS)

    anyio.run(write)
    return path


def test_a_whole_chain(file: Path) -> None:
    said = pumice("journal", file, "--check", "-o", "json")
    assert (said.code, said.json) == (
        0,
        {"schema": "journal/1", "whole": True, "records": len(RECORDS), "first_bad": None},
    )


def test_an_edited_record_is_named(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE journal SET at = at + 1 WHERE sequence = 5")
    connection.close()
    said = pumice("journal", file, "--check", "-o", "json")
    assert said.code == 1
    assert (said.json["whole"], said.json["first_bad"]["sequence"]) == (False, 5)
    assert "Record 5 is bad" in pumice("journal", file, "--check", "-o", "table").out


def test_the_story_of_a_job(file: Path) -> None:
    said = pumice("journal", file, "--about", "a/train", "-o", "json")
    assert [entry["sequence"] for entry in said.json["story"]] == [2, 3, 4, 7, 8, 9, 12]
    assert "decided to bind a/train-worker-0 to n0" in pumice("journal", file, "--about", "a/train", "-o", "table").out


def test_one_cycle(file: Path) -> None:
    said = pumice("journal", file, "--cycle", 1, "-o", "json")
    assert (said.json["cycle"], said.json["decisions"][0]["node"], len(said.json["outcomes"])) == (1, "n0", 1)


def test_what_a_shadow_found_is_told_of_the_pod_and_of_the_cycle(file: Path) -> None:
    difference = ShadowDifference("bind", "a/train-worker-0", "n0", "n1", "", "")
    compared = ShadowCompared(1, 1.0, "digest", "other.conf", other=True, decisions=1, differences=(difference,))

    async def write() -> None:
        async with await SqliteJournal.open(file) as journal:
            await journal.append([Record(SHADOW, codec.encode(compared), at=3.0)])

    anyio.run(write)
    words = "bind of a/train-worker-0: there n0, here n1"
    assert words in pumice("journal", file, "--about", "a/train-worker-0", "-o", "table").out
    assert words in pumice("journal", file, "--about", "a/train", "-o", "table").out
    assert words in pumice("journal", file, "--cycle", 1, "-o", "table").out
    assert words in pumice("journal", file, "--cycle", 1, "-o", "json").json["shadow"][0]["text"]
    assert "shadow" not in pumice("journal", file, "--cycle", 2, "-o", "json").json


def test_the_overview(file: Path) -> None:
    assert pumice("journal", file, "-o", "json").json["cycles"] == 2
    assert pumice("journal", file, "-o", "yaml").out.startswith("schema: journal/1\nrecords: 13\n")
    assert "2 cycles, 2 decisions" in pumice("journal", file, "-o", "table").out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--cycle", 9), "the journal has no cycle 9"),
        (("--about", "a/nobody"), "says nothing about 'a/nobody'"),
        (("--about", "a/x", "--check"), "exclude each other"),
    ],
)
def test_asking_for_what_is_not_there_is_a_usage_error(file: Path, arguments: tuple[object, ...], words: str) -> None:
    said = pumice("journal", file, *arguments)
    assert (said.code, said.out) == (2, "")
    assert words in said.err


def test_a_file_that_is_no_journal_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("not a database" * 100)
    for path in (tmp_path / "x.db", tmp_path / "nowhere.db", tmp_path):
        said = pumice("journal", path, "--check")
        assert (said.code, said.out) == (2, "")
        assert str(path) in said.err


def test_a_backup(file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    said = pumice("journal", file, "--backup", copy, "-o", "json")
    assert (said.code, said.json["backup"], said.json["whole"]) == (0, str(copy), True)
    assert pumice("journal", copy, "--check", "-o", "json").json["records"] == len(RECORDS)
    again = pumice("journal", file, "--backup", copy)
    assert (again.code, "there is a file already" in again.err) == (2, True), again
    assert "Copied to" in pumice("journal", file, "--backup", tmp_path / "other.db", "-o", "table").out


@pytest.mark.parametrize("command", [("journal",), ("journal", "--check"), ("replay",)])
def test_a_journal_of_a_newer_version_is_refused_by_name(file: Path, command: tuple[str, ...]) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    said = pumice(command[0], file, *command[1:])
    assert (said.code, "schema version 99 is newer" in said.err) == (2, True), said


def test_a_checkpoint_is_told(file: Path) -> None:
    async def keep() -> None:
        async with await SqliteJournal.open(file) as journal:
            await journal.save_checkpoint(Checkpoint(3, 4.0, b"state"))

    anyio.run(keep)
    assert "checkpoint" in pumice("journal", file, "-o", "table").out
