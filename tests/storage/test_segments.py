"""Segments of a journal: read alone and together, made once, deleted by age and bytes, moved away at any time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.questions.history import parts
from pumice.questions.history.parts import parts_of
from pumice.storage import retention
from pumice.storage.errors import DamagedError, OpenError
from pumice.storage.journal import CHECKPOINT, Checkpoint, Record, Stored
from pumice.storage.retention import Retention, Rotation
from pumice.storage.sqlite import SqliteJournal, open_history
from pumice.storage.sqlite.chained import HeldSegments, Segment, segments_of
from pumice.storage.sqlite.segments import Archive
from tests.storage.examples import everything, records

pytestmark = pytest.mark.anyio
EVERY = 10
ROTATION = Rotation(records=15)


class KilledError(Exception):
    """Stands for a kill."""


async def written(path: Path, count: int, rotation: Rotation = ROTATION, *, size: int = 80) -> list[Stored]:
    """A journal of so many records more, with a checkpoint after every ten. Returns these records."""
    seen: list[Stored] = []
    async with await SqliteJournal.open(path, archived=True) as journal:
        archive = Archive(journal, path, rotation)
        for first in range(1, count + 1, EVERY):
            before = (await journal.head()).sequence
            last = await journal.append(records(min(EVERY, count + 1 - first), before + 1))
            await journal.save_checkpoint(Checkpoint(last, float(last), b"state of %d" % last))
            seen += await journal.read(before)
            await archive.rotate()
    return seen


async def together(path: Path) -> list[Stored]:
    async with open_history(path) as journal:
        assert (await journal.check()).whole
        return await everything(journal)


async def test_all_records_are_read_together(path: Path) -> None:
    seen = await written(path, 100)
    assert len(segments_of(path)) > 3
    assert await together(path) == seen
    seen += await written(path, 60)
    assert await together(path) == seen


async def test_each_segment_is_a_journal_with_the_state_before_it(path: Path) -> None:
    await written(path, 100)
    for segment in segments_of(path):
        async with await SqliteJournal.open(segment.path, read_only=True) as journal:
            head = await journal.head()
            assert (head.cut + 1, head.sequence) == (segment.first, segment.last)
            assert (await journal.check()).whole
            states = [(each.sequence, each.content) for each in await journal.checkpoints()]
            assert states == ([(head.cut, b"state of %d" % head.cut)] if head.cut else [])


async def test_segment_keeps_checkpoints_that_are_far_enough_apart(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "APART", 20)
    monkeypatch.setattr(retention, "BYTES_PER_RECORD", 1)
    await written(path, 300, Rotation(records=100))
    first, second, *_ = segments_of(path)
    for segment, apart in ((first, [20, 40, 60, 80]), (second, None)):
        async with await SqliteJournal.open(segment.path, read_only=True) as journal:
            assert (await journal.check()).whole
            states = [each.sequence for each in reversed(await journal.checkpoints())]
            assert segment.first - 1 in (0, *states)
            within = [each for each in states if each >= segment.first]
            assert all(later - earlier >= 20 for earlier, later in pairwise(states))
            assert len(within) >= 3
            assert apart is None or len(within) == len(apart)
    async with await SqliteJournal.open(path, read_only=True) as journal:
        assert (await journal.check()).whole


async def test_segment_proves_the_states_that_it_keeps(path: Path) -> None:
    """Also where a checkpoint is saved long after the record that it stands for."""
    async with await SqliteJournal.open(path, archived=True) as journal:
        archive = Archive(journal, path, ROTATION)
        for _number in range(20):
            before = (await journal.head()).sequence
            await journal.append(records(EVERY, before + 1))
            late = max(EVERY, before - 25)
            await journal.save_checkpoint(Checkpoint(late, float(late), b"state of %d" % late))
            await archive.rotate()
    assert len(segments_of(path)) > 2
    for segment in segments_of(path):
        async with await SqliteJournal.open(segment.path, read_only=True) as journal:
            head = await journal.head()
            assert (head.cut + 1, head.sequence) == (segment.first, segment.last)
            assert (await journal.check()).whole
            assert all(each.sequence <= segment.last for each in await journal.checkpoints())
    await together(path)


async def test_segment_ends_after_its_bytes_or_its_span(path: Path) -> None:
    async with await SqliteJournal.open(path, archived=True) as journal:
        await journal.append(records(10, 1))
        assert 0 < await journal.weigh(0, 10) < 2_000
        assert await journal.weigh(10, 20) == 0
    for rotation, count in ((Rotation(records=1_000), 0), (Rotation(records=1_000, bytes=100), 2)):
        await written(path, 60, rotation)
        assert (len(segments_of(path)) > count) == bool(count)
    before = len(segments_of(path))
    # A checkpoint is at the number of its last record here: spans count from one to another.
    await written(path, 60, Rotation(seconds=10.0))
    assert len(segments_of(path)) >= before + 4


async def test_journal_in_its_file_stays_short_and_restarts(path: Path) -> None:
    await written(path, 300)
    async with await SqliteJournal.open(path) as journal:
        head, checkpoints = await journal.head(), await journal.checkpoints()
        assert head.sequence - head.cut < 80
        assert all(each.sequence >= head.cut for each in checkpoints)


@settings(max_examples=12, deadline=None)
@given(
    limits=st.lists(st.integers(1, 40), min_size=1, max_size=4), kinds=st.sampled_from([None, ("api",), (CHECKPOINT,)])
)
def test_reads_do_not_show_where_a_segment_ends(
    limits: list[int], kinds: tuple[str, ...] | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("segments") / "pumice.db"

    async def compare() -> None:
        seen = [each for each in await written(path, 70) if kinds is None or each.kind in kinds]
        found: list[Stored] = []
        async with open_history(path) as journal:
            while batch := await journal.read(
                found[-1].sequence if found else 0, kinds, limits[len(found) % len(limits)]
            ):
                found += batch
        assert found == seen

    anyio.run(compare)


@pytest.mark.parametrize("forgets", [False, True])
async def test_a_kill_after_the_segment_was_made_is_made_good(
    path: Path, forgets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def killed(*arguments: object) -> None:
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(SqliteJournal, "cut" if forgets else "forget_checkpoints", killed)
        with pytest.raises(KilledError):
            await written(path, 100)
    assert len(segments_of(path)) == 1
    before = await together(path)
    seen = before + await written(path, 50)
    assert await together(path) == seen
    assert len({segment.first for segment in segments_of(path)}) == len(segments_of(path)) > 1


RotatedAt = Callable[[str], None]


@pytest.fixture
def rotates_before(path: Path, monkeypatch: pytest.MonkeyPatch) -> RotatedAt:
    """A writer that moves nearly all records into a segment, once, right before a reader's call of that method."""

    def before(method: str) -> None:
        asked = getattr(SqliteJournal, method)

        async def late(self: SqliteJournal, *arguments: object, **more: object) -> object:
            monkeypatch.setattr(SqliteJournal, method, asked)
            async with await SqliteJournal.open(path, archived=True) as journal:
                assert await Archive(journal, path, ROTATION).rotate()
            return await asked(self, *arguments, **more)

        monkeypatch.setattr(SqliteJournal, method, late)

    return before


@pytest.mark.parametrize(
    ("method", "archived", "chosen"),
    [("read", 30, {}), ("pick", 30, {}), ("head", 0, {}), ("checkpoints", 30, {"record": 65}), ("last", 0, {})],
)
async def test_reader_during_a_rotation_misses_no_record(
    path: Path, rotates_before: RotatedAt, method: str, archived: int, chosen: dict[str, int]
) -> None:
    await written(path, archived)
    seen = await written(path, 50, Rotation())
    async with open_history(path, **chosen) as journal:
        head = await journal.head()
        rotates_before(method)
        assert not chosen or (await journal.checkpoints())[-1].sequence <= 65
        assert (await journal.last("api")) is not None
        assert [each.sequence for each in await journal.pick([36, 52, 55])] == [36, 52, 55]
        assert await journal.read(seen[2].sequence, limit=5) == seen[3:8]
        assert (await journal.head()).cut == head.cut
        assert (await journal.check()).whole
        found = await everything(journal)
    assert found[-len(seen) :] == seen


@pytest.fixture
def deletes_before(path: Path, monkeypatch: pytest.MonkeyPatch) -> RotatedAt:
    """A writer that deletes all segments, once, right before a reader's call of that method."""

    def before(method: str) -> None:
        asked = getattr(HeldSegments, method)

        def late(self: HeldSegments, what: object) -> object:
            monkeypatch.setattr(HeldSegments, method, asked)
            for segment in segments_of(path):
                segment.path.unlink()
            return asked(self, what)

        monkeypatch.setattr(HeldSegments, method, late)

    return before


@pytest.mark.parametrize("chosen", [{}, {"record": 5}, {"since": 35.0}])
async def test_reader_has_segments_that_are_deleted_meanwhile(
    path: Path, deletes_before: RotatedAt, chosen: dict[str, Any]
) -> None:
    seen = await written(path, 100)
    async with open_history(path, **chosen) as journal:
        expected = await everything(journal)
    deletes_before("open")
    async with open_history(path, **chosen) as journal:
        numbers = [each.sequence for each in expected[::9]]
        assert [each.sequence for each in await journal.pick(numbers)] == numbers
        assert await everything(journal) == expected
        assert (await journal.head()).cut == expected[0].sequence - 1
        assert (await journal.check()).whole
    assert len(expected) > 15
    left = await together(path)
    assert left == seen[-len(left) :]


async def test_reader_lists_again_when_a_segment_is_deleted_first(path: Path, deletes_before: RotatedAt) -> None:
    seen = await written(path, 100)
    deletes_before("hold")
    found = await together(path)
    assert 0 < len(found) < len(seen)
    assert found == seen[-len(found) :]


async def test_list_of_files_leaves_out_what_is_deleted_meanwhile(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await written(path, 100)
    files = [part.file for part in await parts_of(path)]
    listed = segments_of(path)

    def as_before(journal: Path) -> list[Segment]:
        return listed

    monkeypatch.setattr(parts, "segments_of", as_before)
    listed[0].path.unlink()
    assert [part.file for part in await parts_of(path)] == files[1:]


async def test_segment_that_is_a_link_to_nothing_is_named(path: Path) -> None:
    await written(path, 100)
    first = segments_of(path)[0]
    first.path.unlink()
    first.path.symlink_to("nothing.db")
    with pytest.raises(OpenError, match="does not exist"):
        await together(path)


async def test_reader_before_records_are_forgotten_has_their_state(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await written(path, 30)
    last = (await written(path, 50, Rotation()))[-1].sequence

    async def killed(*arguments: object) -> None:
        raise KilledError

    async with open_history(path, record=last) as journal:
        oldest = (await journal.checkpoints())[-1]
        async with await SqliteJournal.open(path, archived=True) as writer:
            monkeypatch.setattr(SqliteJournal, "cut", killed)
            with pytest.raises(KilledError):
                await Archive(writer, path, ROTATION).rotate()
            assert (await writer.checkpoints())[-1] != oldest
        assert (await journal.checkpoints())[-1] == oldest
        assert (await journal.check()).whole


async def test_segments_that_were_moved_away_are_not_missed(path: Path) -> None:
    seen = await written(path, 100)
    first, second, *_ = segments_of(path)
    first.path.rename(path.with_name("moved.db"))
    assert await together(path) == seen[first.last :]
    second.path.rename(path.with_name("second.db"))
    assert await together(path) == seen[second.last :]


async def test_segment_that_lacks_leaves_what_is_before_it_apart(path: Path) -> None:
    seen = await written(path, 100)
    lost = segments_of(path)[1]
    lost.path.unlink()
    assert await together(path) == seen[lost.last :]


async def test_damage_in_a_segment_is_named(path: Path) -> None:
    await written(path, 100)
    segment = segments_of(path)[1]
    with closing(sqlite3.connect(segment.path)) as database:
        database.execute("UPDATE journal SET at = at + 1 WHERE sequence = ?", (segment.first + 3,))
        database.commit()
    async with open_history(path) as journal:
        report = await journal.check()
    assert report.first_bad is not None
    assert report.first_bad.sequence == segment.first + 3


async def test_segments_of_another_journal_are_refused(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    await written(other, 100, size=10)
    async with await SqliteJournal.open(path, archived=True) as journal:
        await journal.append([Record("api", b"another", 0, 1.0)] * 40)
        await journal.save_checkpoint(Checkpoint(30, 1.0, b"one"))
        await journal.save_checkpoint(Checkpoint(40, 2.0, b"two"))
        segments_of(other)[0].path.parent.rename(tmp_path / "pumice.db.segments")
        with pytest.raises(OpenError, match="not one of"):
            await Archive(journal, path, ROTATION).rotate()


@pytest.mark.parametrize(("retention", "left"), [(Retention(events=60), 45), (Retention(bytes=1), 0)])
async def test_old_segments_are_deleted(path: Path, retention: Retention, left: int) -> None:
    seen = await written(path, 100)
    async with await SqliteJournal.open(path, archived=True) as journal:
        gone = await Archive(journal, path, ROTATION).retire(retention, 1e9)
    assert gone
    found = await together(path)
    assert found == seen[len(seen) - len(found) :]
    assert len(found) >= left
    assert bool(segments_of(path)) is (retention.bytes is None)


async def test_age_rotates_where_records_are_few(path: Path) -> None:
    await written(path, 100, Rotation(seconds=40.0))
    spans = [segment.last - segment.first for segment in segments_of(path)]
    assert spans
    assert all(40 <= span <= 60 for span in spans)


async def test_lost_record_is_not_archived(path: Path) -> None:
    async with await SqliteJournal.open(path, archived=True) as journal:
        await journal.append(records(40))
        await journal.save_checkpoint(Checkpoint(30, 1.0, b"one"))
        await journal.save_checkpoint(Checkpoint(40, 2.0, b"two"))
        with closing(sqlite3.connect(path)) as database:
            database.execute("DELETE FROM journal WHERE sequence = 9")
            database.commit()
        with pytest.raises(DamagedError):
            await Archive(journal, path, ROTATION).rotate()
    assert segments_of(path) == []


async def test_records_are_picked_by_number_from_all_files(path: Path) -> None:
    seen = {each.sequence: each for each in await written(path, 100)}
    numbers = [*sorted(seen)[::7], max(seen)]
    async with open_history(path) as journal:
        assert await journal.pick(numbers) == [seen[number] for number in numbers]
        assert await journal.pick([]) == []
        with pytest.raises(DamagedError, match="record 9999"):
            await journal.pick([3, 9999])


async def test_picked_record_that_is_lost_is_named(path: Path) -> None:
    await written(path, 100)
    segment = segments_of(path)[1]
    with closing(sqlite3.connect(segment.path)) as database:
        database.execute("DELETE FROM journal WHERE sequence = ?", (segment.first + 3,))
        database.commit()
    async with open_history(path) as journal:
        with pytest.raises(DamagedError, match=f"record {segment.first + 3}"):
            await journal.pick([segment.first, segment.first + 3])
