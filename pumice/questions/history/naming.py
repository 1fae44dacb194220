# SPDX-License-Identifier: Apache-2.0
"""The records of a journal that name some objects, by the index of names where there is one."""

from __future__ import annotations

import sqlite3
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from pumice.questions.history.entries import NameFilter
from pumice.questions.history.mentions import LISTED
from pumice.questions.history.name_index import NameIndex
from pumice.storage.journal import CYCLE
from pumice.storage.sqlite import open_history

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Collection
    from pathlib import Path

    from pumice.storage.journal import Journal, Stored
    from pumice.storage.sqlite.chained import FileJournal

BATCH: Final = 5_000
PICKED: Final = 64
"""Records at a time: what they tell may make a reader look for more names."""


class Naming:
    """A journal, read-only, for questions about the objects that `named` names; these may become more meanwhile."""

    def __init__(self, journal: FileJournal, index: NameIndex, named: NameFilter) -> None:
        self.journal, self._index, self._named = journal, index, named

    async def read(self, kinds: Collection[str]) -> AsyncIterator[Stored]:
        """Yield the records of these kinds that may name one of the objects, in order, and, if cycles are among the
        kinds, before each the newest cycle. Raises DamagedError.
        """
        after = 0
        try:
            async for stored in self._indexed(kinds):
                after = stored.sequence
                yield stored
            after = max(after, self._index.through)
        except sqlite3.DatabaseError as problem:
            self._index.discard(f"is damaged ({problem})")
        async for stored in looked_through(self.journal, self._named, kinds, after):
            yield stored

    async def _indexed(self, kinds: Collection[str]) -> AsyncIterator[Stored]:
        """Yield those that the index knows."""
        names, left, after = set[str](), list[int](), 0
        fetched: dict[int, Stored] = {}
        before: dict[int, int] = {}  # number -> the newest cycle's
        told = 0  # the last cycle that was yielded
        while True:
            if len(names) < len(self._named.names):
                new = self._named.names - names
                left = sorted({*left, *self._index.numbers([*new], after)})
                names |= new
            if not left:
                return
            after = left[0]
            if after not in before:
                numbers = left[:PICKED]
                before = dict.fromkeys(numbers, 0)
                if CYCLE in kinds:
                    before = self._index.newest_before(LISTED[CYCLE], numbers)
                fetched = await self._fetch({*numbers, *before.values()} - {0}, fetched)
            del left[0]
            stored = fetched[after]
            if stored.kind not in kinds:
                continue
            if before[after] > told:
                told = before[after]
                yield fetched[told]
            yield stored

    async def _fetch(self, numbers: set[int], fetched: dict[int, Stored]) -> dict[int, Stored]:
        """Return these records, some of which may have been fetched before."""
        known = {number: fetched[number] for number in numbers if number in fetched}
        found = await self.journal.pick(sorted(numbers - known.keys()))
        return known | {stored.sequence: stored for stored in found}

    async def listed(self, kind: str, after: int = 0) -> list[Stored]:
        """Return the records above `after` of a kind of `LISTED`. Raises DamagedError."""
        found: list[Stored] = []
        try:
            found += await self.journal.pick(self._index.numbers([LISTED[kind]], after))
            after = max(after, self._index.through)
        except sqlite3.DatabaseError as problem:
            self._index.discard(f"is damaged ({problem})")
        while batch := await self.journal.read(after, (kind,), BATCH):
            found += batch
            after = batch[-1].sequence
        return found

    def before_first(self, name: str, after: int) -> int:
        """Return a number from `after` on; the records between do not have the name, which may be `REFUSED`."""
        try:
            return next((number - 1 for number in self._index.numbers([name], after)), max(after, self._index.through))
        except sqlite3.DatabaseError as problem:
            self._index.discard(f"is damaged ({problem})")
            return after


async def looked_through(
    journal: Journal, named: NameFilter, kinds: Collection[str] | None = None, after: int = 0
) -> AsyncIterator[Stored]:
    """Yield the records above `after` of these kinds that may name one of the objects, and cycles, without an index."""
    while batch := await journal.read(after, kinds, BATCH):
        for stored in batch:
            if stored.kind == CYCLE or named.passes(stored):
                yield stored
        after = batch[-1].sequence


@asynccontextmanager
async def open_naming(journal: Path, named: NameFilter | None = None) -> AsyncGenerator[Naming]:
    """Yield the journal for questions about the objects. Raises OpenError."""
    async with open_history(journal) as opened:
        index = NameIndex(journal)
        await index.catch_up(opened)
        yield Naming(opened, index, named or NameFilter())
