"""A stop between any two steps on the disk, and the power going: what was acknowledged is there, and the journal opens.

The real code is watched while it creates, opens, appends, copies the write-ahead file, cuts, gives pages back, closes
and copies a journal (`tests.kit.disk`). Then what may be left at every step is laid out in a folder and opened.
`nox -s kills` tries all of it, other runs a part.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

import anyio
import pytest

from pumice.storage import rows
from pumice.storage.errors import ForeignFileError, MissingFileError
from pumice.storage.journal import Checkpoint, Journal, Record
from pumice.storage.retention import Rotation
from pumice.storage.sqlite import SqliteJournal, back_up, chained, database, open_history, queries, segments
from pumice.storage.sqlite.chained import segments_of
from pumice.storage.sqlite.segments import Archive
from tests.kit.disk import Disk, Files, Link, Said, Step, Sync, SyncFolder, lay_out, library, recording
from tests.storage.test_kill import assert_batches_are_whole

ALL: Final = bool(os.environ.get("PUMICE_TEST_POINTS"))
QUICK_TRIES: Final = 40
"""So many states of a scene are tried where not all are, all the way through it."""
SUBSETS: Final = 32
"""Of the steps on their way when the power goes, as many; all of them where there are fewer."""
QUICK: Final = "PRAGMA synchronous = OFF;"
SMALL: Final = "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 12; PRAGMA journal_size_limit = 32768;"
"""SQLite copies the write-ahead file every few appends, and cuts it after a larger one."""
PACK: Final = 96
"""Records that are stored together: fewer, so that an append of two packs is read in no time."""

Scene = Callable[[Path, Callable[[object], None]], Awaitable[None]]
State = tuple[str, int, Files]
"""At which step, what was acknowledged by then, and the files that are there."""

pytestmark = pytest.mark.skipif(
    library() is None and not os.environ.get("CI"), reason="this Python's SQLite cannot be watched"
)


def batch(size: int) -> list[Record]:
    """An append of which part can be told from the whole, and that does not deflate to nothing."""
    chance = random.Random(size)
    return [Record("api", b"of %d " % size + chance.randbytes(60), place) for place in range(size)]


async def appended(path: Path, say: Callable[[object], None], sizes: tuple[int, ...], cut: bool = False) -> None:
    async with await SqliteJournal.open(path) as journal:
        say(0)
        for size in sizes:
            say(await journal.append(batch(size)))
            if cut and size == max(sizes):
                last = (await journal.head()).sequence
                say(await journal.save_checkpoint(Checkpoint(last - 5, 1.0, random.Random(1).randbytes(9000))))
                say(await journal.save_checkpoint(Checkpoint(last - 1, 2.0, random.Random(2).randbytes(9000))))
                await journal.cut(last - 5)


async def a_life(path: Path, say: Callable[[object], None]) -> None:
    """Created, used, cut, closed; opened and closed again."""
    await appended(path, say, (1, 30, 7, 200, 1, 60), cut=True)
    await appended(path, say, (1, 90))


async def a_copy(path: Path, say: Callable[[object], None]) -> None:
    """Copied while it is open."""
    async with await SqliteJournal.open(path) as journal:
        say(await journal.append(batch(40)))
        await back_up(path, path.with_name("copy.db"))
        say(await journal.append(batch(3)))


async def a_rotation(path: Path, say: Callable[[object], None]) -> None:
    """Its older records go into segments, twice."""
    for size in (60, 90):
        async with await SqliteJournal.open(path, archived=True) as journal:
            for stands in (3, 2):
                last = await journal.append(batch(size + stands))
                say(await journal.save_checkpoint(Checkpoint(last, float(last), random.Random(last).randbytes(900))))
            await Archive(journal, path, Rotation(records=1)).rotate()


async def an_old_one(path: Path, say: Callable[[object], None]) -> None:
    """From before journals could give pages back: written anew when it is opened."""
    await appended(path, say, (5, 200, 9), cut=True)


def recorded(scene: Scene, folder: Path, before: Files = {}) -> list[Step]:  # noqa: B006 - it is only read
    """The steps of a scene that finds these files."""
    lay_out(before, folder)

    def say(what: object) -> None:
        steps.append(Said(what))

    with pytest.MonkeyPatch.context() as patched, recording(folder) as steps:
        patched.setattr(queries, "PRAGMAS", SMALL)
        small_packs(patched)
        anyio.run(scene, folder / "pumice.db", say)
    seen = Disk(before)
    for step in steps:
        seen.live(step)
    there = {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith("-shm")}
    assert seen.files() == there, "a step was not seen"
    return steps


def small_packs(patched: pytest.MonkeyPatch) -> None:
    for module in (rows, database):
        patched.setattr(module, "PACK_RECORDS", PACK)


def left(steps: list[Step], before: Files, crash: str) -> list[State]:
    """What may be left, each combination of files once, with all that was acknowledged when they could be left last."""
    newest: dict[int, State] = {}
    contents: dict[bytes, bytes] = {}  # thousands of states share most of their files
    disk, acknowledged, chance = Disk(before), -1, random.Random(7)
    for number, step in enumerate([*steps, SyncFolder()]):
        states: Iterator[dict[str, bytes]] = iter(())
        if crash == "killed" and not isinstance(step, Said):
            states = disk.killed(step)
        elif crash == "power" and isinstance(step, Sync | SyncFolder | Said | Link):
            states = disk.cut(chance, most=SUBSETS)
        for files in states:
            shared = {name: contents.setdefault(content, content) for name, content in sorted(files.items())}
            newest[hash(tuple(shared.items()))] = f"{crash} before step {number}, {step!r:.60}", acknowledged, shared
        if isinstance(step, Said):
            assert isinstance(step.what, int)
            acknowledged = max(acknowledged, step.what)
        disk.live(step)
    return list(newest.values())


async def examine(path: Path, acknowledged: int) -> None:
    """It can be read, continued and closed, and holds what was acknowledged (-1: not even that it was made)."""
    try:
        async with await SqliteJournal.open(path, read_only=True) as journal:
            seen = await demand(journal, acknowledged)
    except (ForeignFileError, MissingFileError):
        assert acknowledged < 0, "it cannot be read"
        seen = 0
    async with await SqliteJournal.open(path) as journal:
        last = (await journal.head()).sequence
        assert last == seen, "who reads and who writes see different journals"
        assert await journal.append([Record("api", b"of 1", 0)]) == last + 1
    async with await SqliteJournal.open(path, read_only=True) as journal:
        assert await demand(journal, acknowledged) == last + 1


async def demand(journal: Journal, acknowledged: int) -> int:
    report, head = await journal.check(), await journal.head()
    assert report.whole, report
    assert head.written == head.sequence >= acknowledged
    assert_batches_are_whole([each for each in await journal.read(head.cut) if each.kind == "api" or each.cause])
    return head.sequence


async def examine_segments(path: Path, acknowledged: int) -> None:
    """All records since the first are read together, and what was begun is made good by the next rotation."""
    if acknowledged < 0:
        return
    for _ in range(2):
        async with open_history(path) as journal:
            assert await demand(journal, acknowledged) >= acknowledged
            assert (await journal.head()).cut == 0
        async with await SqliteJournal.open(path, archived=True) as written:
            await Archive(written, path, Rotation(records=1)).rotate()
    for segment in segments_of(path):
        async with await SqliteJournal.open(segment.path, read_only=True) as alone:
            assert (await alone.check()).whole


def try_all(states: list[State], folder: Path, copies: bool = False, segmented: bool = False) -> None:
    async def each() -> None:
        for what, acknowledged, files in states:
            lay_out(files, folder)
            try:
                await examine(folder / "pumice.db", acknowledged)
                if segmented:
                    lay_out(files, folder)
                    await examine_segments(folder / "pumice.db", acknowledged)
                if copies and (folder / "copy.db").exists():
                    await examine(folder / "copy.db", 40)
            except Exception as problem:
                raise AssertionError(f"{what} ({acknowledged} acknowledged): {problem!r}") from problem

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(queries, "PRAGMAS", QUICK)
        small_packs(patched)
        anyio.run(each)


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """In memory where that can be had: thousands of journals are opened there. Segments lie there, too."""

    def beside(path: Path) -> Path:
        return path.parent

    for module in (chained, segments):
        monkeypatch.setattr(module, "folder_of", beside)
    memory = Path("/dev/shm")
    made = Path(mkdtemp(dir=memory if memory.is_dir() else None))
    yield made
    shutil.rmtree(made)


def killed_half_way(folder: Path) -> Files:
    """What a writer left whose write-ahead file holds appends, while SQLite copied it into the main file."""
    disk, copying = Disk(), 0
    for step in recorded(a_life, folder):
        copying = copying + 1 if getattr(step, "file", "") == "pumice.db" else 0
        if copying == 4:
            return disk.files()
        disk.live(step)
    raise AssertionError("nothing was copied")


def old(folder: Path) -> Files:
    """A journal of the first schema, closed."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(queries, "SHRINKING", "PRAGMA auto_vacuum")
        recorded(lambda path, say: appended(path, say, (3, 40)), folder)
    return {"pumice.db": (folder / "pumice.db").read_bytes()}


SCENES: Final[dict[str, tuple[Scene, Callable[[Path], Files]]]] = {
    "a life": (a_life, lambda folder: {}),
    "after a kill": (lambda path, say: appended(path, say, (2, 50)), killed_half_way),
    "segments": (a_rotation, lambda folder: {}),
    "a copy": (a_copy, lambda folder: {}),
    "an old one": (an_old_one, old),
}
PARTS: Final = {"segments": 4}
"""Its states take the longest: several workers try a part each."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("crash", ["killed", "power"])
@pytest.mark.parametrize(("name", "part"), [(name, part) for name in SCENES for part in range(PARTS.get(name, 1))])
def test_a_stop_between_two_steps_loses_nothing(name: str, part: int, crash: str, folder: Path) -> None:
    scene, prepare = SCENES[name]
    before = prepare(folder)
    parts = PARTS.get(name, 1)
    states = left(recorded(scene, folder, before), before, crash)[part::parts]
    tries = QUICK_TRIES // parts
    assert len(states) > tries
    try_all(
        states[:: 1 if ALL else len(states) // tries],
        folder,
        copies=name == "a copy",
        segmented=name == "segments",
    )
