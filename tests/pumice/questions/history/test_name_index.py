"""A question about one object opens the segments that name it, and tells the same as a look through all of them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from pumice.core.messages.events import Mutation
from pumice.questions.history.entries import NameFilter, entries
from pumice.questions.history.name_index import FILE, NameIndex, open_naming
from pumice.questions.history.story import story_of
from pumice.storage import codec
from pumice.storage.journal import Checkpoint, Journal, Record
from pumice.storage.retention import Rotation
from pumice.storage.sqlite import SqliteJournal, open_history
from pumice.storage.sqlite.chained import folder_of, segments_of
from pumice.storage.sqlite.segments import Archive

pytestmark = pytest.mark.anyio
JOBS = 12
LONG = "default/job-3"
"""A job whose last pod ends long after the others."""


def change(revision: int, kind: str, name: str, phase: str, owner: str = "") -> Record:
    metadata: dict[str, object] = {"name": name, "namespace": "default", "resourceVersion": str(revision)}
    if owner:
        metadata["ownerReferences"] = [{"kind": "Job", "name": owner, "uid": owner}]
    blob = codec.pack({"kind": kind, "metadata": metadata, "status": {"phase": phase}})
    return Record("api", codec.encode(Mutation(revision, "MODIFIED", kind, "default", name, blob)), 0, float(revision))


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


async def told(journal: Journal, name: str, named: NameFilter | None) -> list[tuple[int, str]]:
    return [(each.sequence, each.text) for each in await story_of(name, entries(journal, named=named), named)]


@pytest.mark.parametrize("name", [*(f"default/job-{number}" for number in range(JOBS)), "default/late", "default/no"])
async def test_story_is_that_of_the_whole_journal(path: Path, name: str) -> None:
    async with open_history(path) as journal:
        expected = await told(journal, name, None)
    named = NameFilter(name)
    async with open_naming(path, named) as journal:
        assert await told(journal, name, named) == expected
    assert bool(expected) is (name != "default/no")


async def test_segments_without_the_name_are_not_opened(path: Path) -> None:
    index, named = NameIndex(path), NameFilter(LONG)
    await index.catch_up()
    wanted = [segment for segment in segments_of(path) if index.wants(segment, named)]
    assert len(segments_of(path)) > 8
    assert len(wanted) == 2
    named.add("default/late")  # its last change does not name the job
    assert len([segment for segment in segments_of(path) if index.wants(segment, named)]) == 3


async def test_index_that_is_lost_or_broken_is_made_again_or_done_without(path: Path) -> None:
    index = folder_of(path) / FILE
    for content in (None, b"no database"):
        index.unlink(missing_ok=True)
        if content is not None:
            index.write_bytes(content)
        named = NameFilter(LONG)
        async with open_naming(path, named) as journal:
            assert len(await told(journal, LONG, named)) == 6


async def test_segments_that_are_gone_leave_the_index(path: Path) -> None:
    await NameIndex(path).catch_up()
    gone = segments_of(path)[0]
    gone.path.unlink()
    await NameIndex(path).catch_up()
    with sqlite3.connect(folder_of(path) / FILE) as database:
        assert database.execute("SELECT count(*) FROM mention WHERE first = ?", (gone.first,)).fetchone() == (0,)
        assert database.execute("SELECT count(*) FROM indexed").fetchone() == (len(segments_of(path)),)
