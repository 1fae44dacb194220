"""The index of names finds the records that a look through the whole journal finds; lost, it is made anew."""

from __future__ import annotations

import logging
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pumice.core.messages.decisions import Bind, Evict
from pumice.core.messages.events import BindRefused, Bound, CycleRecord, Mutation
from pumice.questions.history import name_index
from pumice.questions.history.entries import NameFilter, as_entries, entries, entry_of
from pumice.questions.history.mentions import LISTED, REFUSED, names_in
from pumice.questions.history.name_index import FILE, NameIndex, index_names
from pumice.questions.history.naming import open_naming
from pumice.questions.history.story import story_of
from pumice.storage import codec
from pumice.storage.journal import API, CONFIG, CYCLE, DECISION, OUTCOME, Checkpoint, Record, Stored
from pumice.storage.retention import Retention, Rotation
from pumice.storage.sqlite import SqliteJournal, open_history
from pumice.storage.sqlite.chained import folder_of, segments_of
from pumice.storage.sqlite.segments import Archive, SegmentedJournal
from tests.pumice.questions.history.records import RECORDS

pytestmark = pytest.mark.anyio
JOBS = 12
LONG = "default/job-3"
"""A job whose last pod ends long after the others."""
NO_SHRINKING = (Phase.explicit, Phase.generate)
FEW = 5
"""Examples of whole journals: each is a dozen appends on a disk."""
KINDS = (API, CYCLE, DECISION, OUTCOME)


def change(revision: int, kind: str, name: str, phase: str, owner: str = "", **more: Any) -> Record:
    metadata: dict[str, object] = {"name": name, "namespace": "default", "resourceVersion": str(revision), **more}
    if owner:
        metadata["ownerReferences"] = [{"kind": "Job", "name": owner, "uid": owner}]
    blob = codec.pack({"kind": kind, "metadata": metadata, "status": {"phase": phase}})
    return Record(API, codec.encode(Mutation(revision, "MODIFIED", kind, "default", name, blob)), 0, float(revision))


@pytest.fixture(autouse=True)
def short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stretches that end within these journals."""
    monkeypatch.setattr(name_index, "LENGTH", 16)


@pytest.fixture
async def path(tmp_path: Path, anyio_backend: str) -> Path:
    """A journal of jobs that come one after another, each in a segment of its own, but for one."""
    path, revision = tmp_path / "pumice.db", 0
    async with await SqliteJournal.open(path, archived=True) as journal:
        archive = Archive(journal, path, Rotation(records=1))
        for number in range(JOBS):
            names = [(f"job-{number}", "Job", "")]
            names += [(f"pod-{number}-{pod}", "Pod", f"job-{number}") for pod in range(3)]
            if number == JOBS - 4:
                names.append(("late", "Pod", "job-3"))
            last = 0
            for name, kind, owner in names:
                revision += 1
                last = await journal.append([change(revision, kind, name, f"at {revision}", owner)])
            if number == JOBS - 3:
                last = await journal.append([change(revision + 1, "Pod", "late", "Succeeded")])
                revision += 1
            await journal.save_checkpoint(Checkpoint(last, float(last), b"state"))
            await archive.rotate()
    return path


async def told(path: Path, name: str) -> list[tuple[int, str]]:
    """The story by the index."""
    named = NameFilter(name)
    async with open_naming(path, named) as naming:
        return [(each.sequence, each.text) for each in await story_of(name, as_entries(naming.read(KINDS)), named)]


async def told_by_all(path: Path, name: str) -> list[tuple[int, str]]:
    async with open_history(path) as journal:
        return [(each.sequence, each.text) for each in await story_of(name, entries(journal))]


def contents(path: Path) -> dict[tuple[int, int], bytes]:
    """All lists of the index."""
    with closing(sqlite3.connect(folder_of(path) / FILE)) as database:
        return {(stretch, name): lists for stretch, name, lists in database.execute("SELECT * FROM mention")}


def stretches(path: Path) -> list[Any]:
    with closing(sqlite3.connect(folder_of(path) / FILE)) as database:
        return database.execute("SELECT number, first, last FROM stretch ORDER BY number").fetchall()


@pytest.mark.parametrize("name", [*(f"default/job-{number}" for number in range(JOBS)), "default/late", "default/no"])
async def test_story_by_the_index_is_that_of_the_whole_journal(path: Path, name: str) -> None:
    expected = await told_by_all(path, name)
    assert await told(path, name) == expected
    assert bool(expected) is (name != "default/no")


async def test_index_can_be_read_by_its_owner_alone(path: Path) -> None:
    await index_names(path)
    assert stat.S_IMODE((folder_of(path) / FILE).stat().st_mode) == 0o600


async def test_question_about_a_job_picks_only_its_records(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await index_names(path)
    picked, read, pick, reads = list[int](), list[int](), SqliteJournal.pick, SqliteJournal.read

    async def noted_pick(self: SqliteJournal, numbers: Any) -> Any:
        picked.extend(numbers)
        return await pick(self, numbers)

    async def noted_read(self: SqliteJournal, *arguments: Any) -> Any:
        found = await reads(self, *arguments)
        read.extend(stored.sequence for stored in found)
        return found

    monkeypatch.setattr(SqliteJournal, "pick", noted_pick)
    monkeypatch.setattr(SqliteJournal, "read", noted_read)
    story = await told(path, LONG)
    assert len(story) == 6
    with_end_of_the_index = {number for number, _ in story} | {stretches(path)[-1][2]}
    assert (set(picked), read) == (with_end_of_the_index, [])


# --- Any journal


def decision(which: Bind | Evict) -> Record:
    return Record(DECISION, codec.encode(which))


NAMES = st.sampled_from(["a", "b", "c", "a-b", "d/e"])
OWNER = st.sampled_from(["", "a", "b", "c"])


def bound(name: str, job: str) -> Record:
    return decision(Bind("default", name, "u", "n", f"default/{job}"))


def evicted(name: str, job: str, other: str) -> Record:
    return decision(Evict("default", name, "u", "n", f"default/{job}", "preempt", f"default/{other}"))


def outcome(name: str, refused: bool) -> Record:
    ends = BindRefused("1/u", 1, "default", name, "u", "n", 409, "no", "") if refused else None
    return Record(OUTCOME, codec.encode(ends or Bound("1/u", 1, "default", name, "u", "n", 8)))


def cycle(number: int) -> Record:
    return Record(CYCLE, codec.encode(CycleRecord(number, 2.0, 0, 7, 9, "conf", "digest", 0)))


ANY = st.one_of(
    st.builds(change, st.just(1), st.sampled_from(["Pod", "Job", "Node"]), NAMES, st.sampled_from("xyz"), OWNER),
    st.builds(bound, NAMES, OWNER),
    st.builds(evicted, NAMES, OWNER, OWNER),
    st.builds(outcome, NAMES, st.booleans()),
    st.builds(cycle, st.integers(1, 9)),
)
ANY_RECORDS = st.lists(st.lists(ANY, min_size=1, max_size=12), min_size=1, max_size=5)


async def write(path: Path, appends: list[list[Record]], *, ask: bool) -> None:
    async with await SqliteJournal.open(path, archived=True) as journal:
        archive = Archive(journal, path, Rotation(records=12))
        folder_of(path).mkdir()
        for records in appends:
            last = await journal.append(records)
            await journal.save_checkpoint(Checkpoint(last, float(last), b"state"))
            await archive.rotate()
            if ask:
                await index_names(path)


@settings(max_examples=FEW, phases=NO_SHRINKING)
@given(appends=ANY_RECORDS, kinds=st.sampled_from([(API,), (API, OUTCOME), KINDS]))
def test_index_finds_the_records_that_a_look_through_all_finds(
    appends: list[list[Record]], kinds: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("named") / "pumice.db"

    async def compare() -> None:
        await write(path, appends, ask=False)
        async with open_history(path) as journal:
            records = await journal.read()
        assert len(records) >= sum(map(len, appends))
        for name in ("a", "e"):
            async with open_naming(path, NameFilter(name)) as naming:
                found = [each async for each in naming.read(kinds)]
            about = [each for each in records if each.kind in kinds and each.kind != CYCLE and name in names_of(each)]
            assert [each for each in found if each.kind != CYCLE] == about
            assert [each for each in found if each.kind == CYCLE] == (newest(records, about) if CYCLE in kinds else [])
        async with open_naming(path) as naming:
            assert await naming.listed(CYCLE) == [each for each in records if each.kind == CYCLE]
            assert await naming.listed(CONFIG) == []
            refused = [each.sequence for each in records if b"BindRefused" in each.payload]
            assert naming.before_first(REFUSED, 0) == (refused[0] - 1 if refused else records[-1].sequence)

    anyio.run(compare)


def names_of(stored: Stored) -> set[str]:
    """The names as stories know them."""
    entry = entry_of(stored)
    return {name.rpartition("/")[2] for name in entry.about | entry.parts_of}


def newest(records: Any, about: list[Stored]) -> list[Stored]:
    """The newest cycle before each of the records."""
    found: dict[int, Stored] = {}
    for each in about:
        before = [one for one in records if one.kind == CYCLE and one.sequence < each.sequence]
        found.update((one.sequence, one) for one in before[-1:])
    return list(found.values())


@settings(max_examples=FEW, phases=NO_SHRINKING)
@given(appends=ANY_RECORDS)
def test_index_made_bit_by_bit_is_the_one_made_anew(
    appends: list[list[Record]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("named") / "pumice.db"

    async def compare() -> None:
        await write(path, appends, ask=True)
        before = contents(path), stretches(path)
        (folder_of(path) / FILE).unlink()
        await index_names(path)
        assert (contents(path), stretches(path)) == before
        assert before[0]

    anyio.run(compare)


REFERENCES: st.SearchStrategy[Any] = st.none() | st.lists(
    st.fixed_dictionaries({}, optional={"name": st.sampled_from(["a", "b", 7, None])})
)
NOTES: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {},
    optional={"scheduling.k8s.io/group-name": st.sampled_from(["g", "n/g", ""]), "volcano.sh/job-name": st.just("j")},
)
OBJECTS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"kind": st.sampled_from(["Pod", "Event", "Job"])},
    optional={
        "metadata": st.none()
        | st.fixed_dictionaries({}, optional={"ownerReferences": REFERENCES, "annotations": st.none() | NOTES}),
        "involvedObject": st.fixed_dictionaries({}, optional={"name": st.just("subject")}),
    },
)


@given(obj=OBJECTS, name=NAMES)
def test_names_of_an_object_are_those_of_its_story(obj: dict[str, Any], name: str) -> None:
    changed = Mutation(1, "ADDED", obj["kind"], "default", name, codec.pack(obj))
    stored = Stored(1, API, codec.encode(changed), 0, 0.0, b"")
    assert names_in(stored) == names_of(stored) - {""}


@pytest.mark.parametrize("record", RECORDS)
def test_names_of_a_record_are_those_of_its_story(record: Record) -> None:
    stored = Stored(1, record.kind, record.payload, 0, 0.0, b"")
    assert names_in(stored) - {*LISTED.values(), REFUSED} == names_of(stored) - {""}


# --- Loss


async def expect_rebuilt(path: Path, caplog: pytest.LogCaptureFixture, why: str, expected: Any) -> None:
    """Expect that the index is made anew at the next question, which says why."""
    assert await told(path, LONG) == await told_by_all(path, LONG)
    assert [record.message for record in caplog.records if why in record.message and "made anew" in record.message]
    await index_names(path)
    assert contents(path) == expected


@pytest.mark.parametrize("damage", ["cut", "overwritten", "no database", "empty page"])
async def test_torn_index_is_made_anew_and_said(path: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    await index_names(path)
    index, expected = folder_of(path) / FILE, contents(path)
    content = index.read_bytes()
    torn = {
        "cut": content[: len(content) // 2],
        "overwritten": content[:4096] + b"\xff" * (len(content) - 4096),
        "no database": b"no database",
        "empty page": content[:4096] + bytes(4096) + content[8192:],
    }
    index.write_bytes(torn[damage])
    with caplog.at_level(logging.WARNING):
        await expect_rebuilt(path, caplog, "is damaged", expected)


async def test_index_of_an_older_form_is_made_anew_and_said(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    await index_names(path)
    index, expected = folder_of(path) / FILE, contents(path)
    index.unlink()
    with closing(sqlite3.connect(index)) as database:
        database.executescript(
            "CREATE TABLE indexed (first INTEGER PRIMARY KEY, last INTEGER NOT NULL);"
            "CREATE TABLE mention (name INTEGER, first INTEGER, PRIMARY KEY (name, first)) WITHOUT ROWID;"
            "INSERT INTO mention VALUES (1, 1);"
        )
    with caplog.at_level(logging.WARNING):
        await expect_rebuilt(path, caplog, "of another form", expected)


async def test_index_that_cannot_be_written_is_done_without(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(index: NameIndex) -> Any:
        raise sqlite3.OperationalError("attempt to write a readonly database")

    monkeypatch.setattr(NameIndex, "_opened", refused)
    assert await told(path, LONG) == await told_by_all(path, LONG)
    assert not (folder_of(path) / FILE).exists()


async def test_index_of_another_journal_finds_nothing_of_it(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    await write(other, [[change(number, "Job", "job-3", "x")] * 9 for number in range(9)], ask=True)
    shutil.copy(folder_of(other) / FILE, folder_of(path) / FILE)
    assert await told(path, LONG) == await told_by_all(path, LONG)


async def test_records_written_since_are_found(path: Path) -> None:
    await index_names(path)
    async with await SqliteJournal.open(path, archived=True) as journal:
        await journal.append([change(900, "Pod", "late", "Failed"), change(901, "Job", "job-3", "Failed")])
    story = await told(path, LONG)
    assert "Pod default/late changed: Failed" in story[-1][1]
    assert story == await told_by_all(path, LONG)


async def test_records_that_were_lost_leave_the_index(path: Path) -> None:
    """A power cut may take the end of the journal; its numbers are given out again."""
    kept = {file: file.read_bytes() for file in (path, *(each.path for each in segments_of(path)))}
    for name in ("gone", "back"):
        async with await SqliteJournal.open(path, archived=True) as journal:
            await journal.append(
                [change(900 + number, "Pod", f"{name}-{number}", "x", "job-3") for number in range(40)]
            )
        await index_names(path)
        assert len([text for _, text in await told(path, LONG) if name in text]) == 40
        if name == "gone":
            for file, content in kept.items():
                file.write_bytes(content)
    assert await told(path, LONG) == await told_by_all(path, LONG)
    assert await told(path, "default/gone-1") == []


async def test_segments_that_are_gone_leave_the_index(path: Path) -> None:
    await index_names(path)
    first, second, third, *_ = segments_of(path)
    before = contents(path)
    for gone in (first, second, third):
        gone.path.rename(gone.path.with_suffix(".away"))
    assert await told(path, LONG) == await told_by_all(path, LONG)
    assert stretches(path)[0][0] == third.last // 16
    for gone in (first, second, third):
        gone.path.with_suffix(".away").rename(gone.path)
    assert await told(path, LONG) == await told_by_all(path, LONG)
    assert contents(path) == before


async def test_journal_with_segments_has_an_index_before_the_first_one(tmp_path: Path) -> None:
    path, noted = tmp_path / "pumice.db", list[Path]()

    async def note(journal: Path) -> None:
        noted.append(journal)
        await index_names(journal)

    journal = await SegmentedJournal.open_for(path, Retention(rotation=Rotation(records=1000)), note)
    async with journal:
        last = await journal.append([change(1, "Job", "job-3", "x")])
        await journal.save_checkpoint(Checkpoint(last, 1.0, b"state"))
        await journal.trim(Retention(rotation=Rotation(records=1000)), 1.0)
    assert (noted, segments_of(path)) == ([path], [])
    assert stretches(path) == [(0, 1, 2)]
    assert len(await told(path, LONG)) == 1


async def test_journal_without_segments_is_looked_through(tmp_path: Path) -> None:
    path = tmp_path / "pumice.db"
    async with await SqliteJournal.open(path) as journal:
        await journal.append([change(1, "Job", "job-3", "x"), change(2, "Pod", "other", "x")])
    assert len(await told(path, LONG)) == 1
    assert not folder_of(path).exists()
