# SPDX-License-Identifier: Apache-2.0
"""A journal together with its segments (`segments.py`): one log, read from its first record that is left."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from contextlib import asynccontextmanager, closing
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from msgspec.structs import replace

from pumice.core.messages.events import CycleRecord
from pumice.storage.chain import check
from pumice.storage.errors import DamagedError, OpenError
from pumice.storage.journal import CYCLE, Journal
from pumice.storage.records import read_as
from pumice.storage.sqlite.journal import SqliteJournal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection, Sequence
    from types import TracebackType
    from typing import Self

    from pumice.storage.journal import ChainReport, Checkpoint, Head, Record, Stored
    from pumice.storage.retention import Retention

_NAME: Final = re.compile(r"(\d{12})-(\d{12})\.db")
OPEN: Final = 4
"""Segments that are open at a time: a reader goes through them in order."""
HELD: Final = 256
"""Segments that a question holds, from the oldest on: the oldest are deleted first."""


class Segment(NamedTuple):
    """A file with the records from `first` to `last`."""

    first: int
    last: int
    path: Path


def folder_of(journal: Path) -> Path:
    """Return the folder of a journal's segments."""
    journal = journal.resolve()
    return journal.with_name(f"{journal.name}.segments")


def segments_of(journal: Path) -> list[Segment]:
    """Return all segments that lie beside a journal, by number, whether they join or not."""
    folder = folder_of(journal)
    found = [(_NAME.fullmatch(file.name), file) for file in (folder.iterdir() if folder.is_dir() else ())]
    return sorted(Segment(int(match[1]), int(match[2]), file) for match, file in found if match)


def joined(segments: list[Segment], cut: int) -> list[Segment]:
    """Return the segments that lead without a gap to the records after `cut`, oldest first."""
    found: list[Segment] = []
    wanted = cut
    for segment in reversed(segments):
        # The newest may reach beyond the cut: a journal's file is cut where one of its packs ends.
        if segment.last != wanted and (found or segment.last < wanted):
            break
        found.insert(0, segment)
        wanted = segment.first - 1
    return found


class HeldSegments:
    """Segments that a question can open to its end, though their writer deletes them or a user moves them away
    meanwhile.

    Their files are held open from the moment at which they were listed, so the content stays on the disk. SQLite opens
    by name only: where the name is gone, it gets a copy. `close` gives files and copies back.
    """

    def __init__(self) -> None:
        self._files: dict[Segment, int] = {}
        self._copies: TemporaryDirectory[str] | None = None

    def hold(self, segments: Sequence[Segment]) -> bool:
        """Hold these segments too; False where one is gone already, so that they must be listed again."""
        try:
            for segment in segments[: max(HELD - len(self._files), 0)]:
                if segment not in self._files:
                    self._files[segment] = os.open(segment.path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        except OSError:
            pass  # too many are open, or SQLite says better what is wrong with the file
        return True

    async def open(self, segment: Segment) -> SqliteJournal:
        """Open a segment to read. Raises OpenError."""
        try:
            return await SqliteJournal.open(segment.path, read_only=True)
        except OpenError:
            if segment not in self._files or segment.path.exists():
                raise
            return await SqliteJournal.open(self._copy(segment), read_only=True)

    def _copy(self, segment: Segment) -> Path:
        self._copies = self._copies or TemporaryDirectory(prefix="pumice-")
        copy = Path(self._copies.name) / segment.path.name
        if not copy.exists():
            with os.fdopen(os.dup(self._files[segment]), "rb") as held, copy.open("xb") as file:
                held.seek(0)
                copyfileobj(held, file)
        return copy

    def close(self) -> None:
        """Let go of all."""
        while self._files:
            os.close(self._files.popitem()[1])
        if self._copies is not None:
            self._copies.cleanup()


class FileJournal(Journal, Protocol):
    """A journal that is only read, from files."""

    async def pick(self, numbers: Sequence[int]) -> Sequence[Stored]:
        """Return the records of these numbers, which rise. Raises DamagedError for the first that is lost."""
        ...


class ChainedJournal:
    """A `storage.journal.Journal`: reads go through `segments` (joined, oldest first), then to the `newest` part, which
    the caller closes. What is written goes to the newest part.

    `path`: where the newest part lies, if another process may write it. That process moves records into a new segment
    at any time. So an answer of the newest part counts only if no segment goes beyond `end` afterwards: a segment has
    its name before the newest part loses its records. Else the new segment is asked. `held`: the segments, which that
    process deletes at any time.
    """

    def __init__(
        self,
        newest: FileJournal,
        segments: Sequence[Segment],
        path: Path | None = None,
        end: int = 0,
        held: HeldSegments | None = None,
    ) -> None:
        self._newest, self._segments, self._held = newest, list(segments), held or HeldSegments()
        self._path, self._end = path, max(end, segments[-1].last if segments else 0)
        self._open: dict[Segment, SqliteJournal] = {}

    async def _has_moved(self) -> bool:
        """Return whether records above `end` have got a segment since the last look, which is read from now on."""
        if self._path is None:
            return False
        # The name and not the cut: checkpoints are forgotten between the two.
        there = joined(segments_of(self._path), (await self._newest.head()).cut)
        new = [segment for segment in there if segment.last > self._end]
        self._held.hold(new)
        self._segments += new
        self._end = new[-1].last if new else self._end
        return bool(new)

    async def _part(self, after: int) -> tuple[FileJournal, int | None]:
        """Return the part with the record after that one, and its last record; None for the newest part."""
        segment = next((one for one in self._segments if after < one.last), None)
        if segment is None:
            return self._newest, None
        if segment not in self._open:
            while len(self._open) >= OPEN:
                await self._open.pop(next(iter(self._open))).close()
            self._open[segment] = await self._held.open(segment)
        return self._open[segment], segment.last

    async def read(self, after: int = 0, kinds: Collection[str] | None = None, limit: int = 10_000) -> Sequence[Stored]:
        """Return at most `limit` records (of these kinds) numbered above `after`, oldest first."""
        found: list[Stored] = []
        while len(found) < limit:
            part, last = await self._part(after)
            try:
                records = await part.read(after, kinds, limit - len(found))
                if last is None and await self._has_moved():
                    continue
            except DamagedError:
                if last is None and await self._has_moved():
                    continue
                # A read stops short before a damaged record: asked again, the part names it.
                if found:
                    return found
                raise
            found += records
            if last is None:
                return found
            after = records[-1].sequence if records else last
        return found

    async def pick(self, numbers: Sequence[int]) -> Sequence[Stored]:
        """Return the records of these numbers, which rise."""
        found: list[Stored] = []
        while len(found) < len(numbers):
            part, last = await self._part(numbers[len(found)] - 1)
            end = len(numbers) if last is None else bisect_right(numbers, last)
            try:
                found += await part.pick(numbers[len(found) : end])
            except DamagedError:
                if last is not None or not await self._has_moved():
                    raise
        return found

    async def last(self, kind: str) -> Stored | None:
        """Return the newest record of a kind."""
        found = await self._newest.last(kind)
        while found is None and await self._has_moved():
            found = await self._newest.last(kind)
        for segment in reversed(self._segments):
            if found is not None:
                break
            found = await (await self._part(segment.first - 1))[0].last(kind)
        return found

    async def weigh(self, after: int, through: int) -> int:
        """Return the bytes of those records that are in the newest part."""
        return await self._newest.weigh(after, through)

    async def head(self) -> Head:
        """Return both ends."""
        head = await self._newest.head()
        while await self._has_moved():
            head = await self._newest.head()
        if not self._segments:
            return head
        oldest = await (await self._part(self._segments[0].first - 1))[0].head()
        return replace(head, cut=oldest.cut, cut_hash=oldest.cut_hash)

    async def check(self) -> ChainReport:
        """Verify the chain through all parts."""
        return await check(self)

    async def checkpoints(self) -> Sequence[Checkpoint]:
        """Return those of the newest part, and the one that the oldest begins with, newest first."""
        found = list(await self._newest.checkpoints())
        while await self._has_moved():
            found = list(await self._newest.checkpoints())
        if self._segments:
            oldest = await (await self._part(self._segments[0].first - 1))[0].checkpoints()
            found += [one for one in oldest if all(one.sequence != other.sequence for other in found)]
        return found

    async def append(self, records: Sequence[Record]) -> int:
        """Write to the newest part."""
        return await self._newest.append(records)

    async def save_checkpoint(self, checkpoint: Checkpoint) -> int:
        """Keep a checkpoint in the newest part."""
        return await self._newest.save_checkpoint(checkpoint)

    async def cut(self, through: int) -> int:
        """Forget records of the newest part."""
        return await self._newest.cut(through)

    async def trim(self, retention: Retention, now: float) -> None:
        """Forget records of the newest part."""
        await self._newest.trim(retention, now)

    async def confirm(self) -> None:
        """Check the files of the newest part."""
        await self._newest.confirm()

    async def close(self) -> None:
        """Close the segments that are open."""
        while self._open:
            await self._open.popitem()[1].close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


@asynccontextmanager
async def open_history(
    path: str | Path,
    *,
    cycle: int | None = None,
    record: int | None = None,
    since: float | None = None,
) -> AsyncGenerator[FileJournal]:
    """Yield the journal at `path` with its segments, read-only. Raises OpenError.

    `cycle`, `record`: only the part with that one; it begins with a checkpoint. `since`: without the segments that end
    before that moment.
    """
    async with await SqliteJournal.open(path, read_only=True) as newest:
        with closing(HeldSegments()) as held:
            cut, segments = await _listed(newest, Path(path))
            while not held.hold(segments):
                before, (cut, segments) = segments, await _listed(newest, Path(path))
                if segments == before:
                    break  # a link to nothing: opening it says so
            end = max(cut, segments[-1].last if segments else 0)
            part = None
            if since is not None:
                segments = segments[await _first_since(since, segments, held) :]
            if record is not None:
                part = next((each for each in segments if record <= each.last), None)
            elif cycle is not None:
                part = await _part_with(cycle, segments, held)
            if part is not None:
                async with await held.open(part) as alone:
                    yield alone
            else:
                there = segments if cycle is record is None else ()
                async with ChainedJournal(newest, there, Path(path), end, held) as together:
                    yield together


async def _listed(newest: FileJournal, path: Path) -> tuple[int, list[Segment]]:
    """Return the last record that the newest part has lost, and the segments that lead to it."""
    cut = (await newest.head()).cut
    return cut, joined(segments_of(path), cut)


async def _first_since(moment: float, segments: Sequence[Segment], held: HeldSegments) -> int:
    """Return the place of the first segment that ends at that moment or later; of the one before where the state that
    it begins with is of a later moment, since nothing happened in between.
    """
    low, high = 0, len(segments)
    while low < high:
        middle = (low + high) // 2
        async with await held.open(segments[middle]) as segment:
            last = await segment.read(segments[middle].last - 1, limit=1)
        low, high = (middle + 1, high) if last and last[0].at < moment else (low, middle)
    if not low or low == len(segments):
        return max(low - 1, 0)  # what the newest part begins with is not known here
    async with await held.open(segments[low]) as segment:
        begins = await segment.checkpoints()
    return low - 1 if begins and begins[-1].at > moment else low


async def _part_with(cycle: int, segments: Sequence[Segment], held: HeldSegments) -> Segment | None:
    """Return the segment with the record of that cycle; None where it is in the newest part, or nowhere."""
    low, high = 0, len(segments)
    while low < high:
        middle = (low + high) // 2
        async with await held.open(segments[middle]) as segment:
            last = await segment.last(CYCLE)
        # A segment without a cycle tells nothing; then the one after it is looked at.
        if last is None or read_as(last, CycleRecord).cycle < cycle:
            low = middle + 1
        else:
            high = middle
    return segments[low] if low < len(segments) else None
