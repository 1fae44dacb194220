# SPDX-License-Identifier: Apache-2.0
"""Index from names of objects to the records of a journal: a question about one job reads only records that name it.

It lies beside the segments (`names.db`), and is made of the journal alone, so it may be lost at any time. Its rows are
lists of record numbers, by a hash of the name and by *stretch*: 65,536 numbers in a row. A number says neither in which
file the record is nor in which pack, so the index covers the journal's own file too, and stays valid when records move
into a segment. A clash of hashes costs a look at a record of another object.

The hash of the last record of each stretch says of which journal the index is, and how much of it: stretches that the
journal does not have are dropped, and who asks or makes a segment adds what is missing, each stretch in a transaction.
"""

from __future__ import annotations

import logging
import sqlite3
import sys
from array import array
from bisect import bisect_right
from contextlib import closing, contextmanager, suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from pumice.questions.history.mentions import LISTED, NAMING, names_in
from pumice.storage.errors import DamagedError, NewerPayloadError
from pumice.storage.sqlite import open_history
from pumice.storage.sqlite.chained import folder_of

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from pumice.storage.sqlite.chained import FileJournal

FILE: Final = "names.db"
FORM: Final = 2 if sys.byteorder == "little" else 3
"""`PRAGMA user_version`. An index of another form, or of a machine with the other order of bytes, is made anew."""
SCHEMA: Final = (
    "CREATE TABLE stretch (number INTEGER PRIMARY KEY, first INTEGER, last INTEGER, hash BLOB)",
    "CREATE TABLE mention (stretch INTEGER, name INTEGER, records BLOB, PRIMARY KEY (stretch, name)) WITHOUT ROWID",
    f"PRAGMA user_version = {FORM}",
)
OF_NAME: Final = (
    "SELECT stretch, mention.records FROM stretch JOIN mention ON mention.stretch = stretch.number "
    "WHERE mention.name = ? AND "
)
FROM_ON: Final = OF_NAME + "stretch.number >= ?"
IN: Final = OF_NAME + "stretch.number = ?"
LENGTH: Final = 1 << 16
"""Numbers of a stretch: a record takes two bytes in a list. Rows lie by stretch, so that new ones come together, and a
look for a name takes one search in each."""
BATCH: Final = 5_000
WAIT_S: Final = 20.0
"""As long as another process may need to write what it has found."""

log = logging.getLogger(__name__)


async def index_names(journal: Path) -> None:
    """Bring the index of a journal up to date. Raises OpenError."""
    async with open_history(journal) as opened:
        await NameIndex(journal).catch_up(opened)


class Stretch(NamedTuple):
    """The records from `first` to `last` that are in the index. `hash`: of the last one."""

    number: int
    first: int
    last: int
    hash: bytes


class NameIndex:
    """The index of a journal with segments, as it is now; it knows the records above `begin` and up to `through`."""

    def __init__(self, journal: Path) -> None:
        self._file = folder_of(journal) / FILE
        self.begin = self.through = 0

    async def catch_up(self, journal: FileJournal) -> None:
        """Add the records that it lacks, and drop those that are gone; `journal` is open. Where it cannot, or the
        journal has no folder for segments, it knows no records, or not all.
        """
        if not self._file.parent.is_dir():
            return
        for again in (True, False):
            try:
                with closing(self._opened()) as database:
                    await self._join(database, journal)
                    await self._extend(database, journal)
                return
            except sqlite3.DatabaseError as problem:
                if isinstance(problem, sqlite3.OperationalError) or not again:
                    return  # the folder is full or read-only: questions use what is known
                self.discard(f"is damaged ({problem})")
            except (DamagedError, NewerPayloadError):
                return  # the reader of that record reports it

    def _opened(self) -> sqlite3.Connection:
        """Return the database, made anew where it is of another form."""
        with suppress(OSError):  # where it cannot be made, the connection says so
            self._file.touch(mode=0o600)  # as the journal itself: it has the names of all objects
        database = sqlite3.connect(self._file, timeout=WAIT_S, isolation_level=None)
        try:
            if _form(database) != FORM:
                with _writing(database):
                    self._make(database)
        except BaseException:
            database.close()
            raise
        return database

    def _make(self, database: sqlite3.Connection) -> None:
        if _form(database) == FORM:
            return  # another process made it meanwhile
        old = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        if old:
            log.warning("the index %s is of another form: it is made anew", self._file)
        for statement in (*(f'DROP TABLE "{table}"' for (table,) in old), *SCHEMA):
            database.execute(statement)

    def discard(self, why: str) -> None:
        """Remove the index; the next question makes it anew."""
        log.warning("the index %s %s: it is made anew", self._file, why)
        self.begin = self.through = 0
        for suffix in ("", "-journal"):
            self._file.with_name(FILE + suffix).unlink(missing_ok=True)

    async def _join(self, database: sqlite3.Connection, journal: FileJournal) -> None:
        """Drop the stretches that the journal does not have, and note which records are left."""
        head = await journal.head()
        known = [Stretch(*row) for row in database.execute("SELECT * FROM stretch ORDER BY number")]
        kept = [each for each in known if each.last > head.cut]
        while kept and not await _has(journal, head.sequence, kept[-1]):
            kept.pop()
        if kept and kept[0].first > head.cut + 1:
            kept = []  # segments have come back: what they hold comes before
        self.begin = head.cut
        self.through = kept[-1].last if kept else head.cut
        gone = [(each.number,) for each in known if each not in kept]
        if gone:
            with _writing(database):
                database.executemany("DELETE FROM mention WHERE stretch = ?", gone)
                database.executemany("DELETE FROM stretch WHERE number = ?", gone)

    async def _extend(self, database: sqlite3.Connection, journal: FileJournal) -> None:
        """Add the records up to the present end, stretch by stretch."""
        end = (await journal.head()).sequence
        while self.through < end:
            last = min(end, ((self.through + 1) // LENGTH + 1) * LENGTH - 1)
            lists = await _lists(journal, self.through, last)
            [newest] = await journal.pick([last])
            if not self._add(database, Stretch(last // LENGTH, self.through + 1, last, newest.hash), lists):
                await self._join(database, journal)  # another process did it meanwhile

    def _add(self, database: sqlite3.Connection, new: Stretch, lists: dict[str, array[int]]) -> bool:
        rows = sorted((new.number, _hash(name), records.tobytes()) for name, records in lists.items())
        with _writing(database):
            [(through,)] = database.execute("SELECT max(last) FROM stretch")
            if through is not None and through != self.through:
                return False
            database.executemany(
                "INSERT INTO mention VALUES (?, ?, ?) "
                "ON CONFLICT DO UPDATE SET records = CAST(records || excluded.records AS BLOB)",  # else it is a text
                rows,
            )
            database.execute(
                "INSERT INTO stretch VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET last = excluded.last, hash = excluded.hash",
                new,
            )
        self.through = new.last
        return True

    def numbers(self, names: Sequence[str], after: int) -> list[int]:
        """Return the numbers of records above `after` under these names, which may be of a kind (`LISTED`), rising.
        Raises sqlite3.DatabaseError.
        """
        if self.through <= max(after, self.begin):
            return []  # there may be no index: a journal without segments has no folder for it
        found: set[int] = set()
        with closing(sqlite3.connect(self._file, timeout=WAIT_S)) as database:
            for name in names:
                rows = database.execute(FROM_ON, (_hash(name), after // LENGTH))
                for stretch, records in rows:
                    found.update(stretch * LENGTH + place for place in _places(records))
        return sorted(number for number in found if max(after, self.begin) < number <= self.through)

    def newest_before(self, name: str, numbers: Sequence[int]) -> dict[int, int]:
        """Return for each of these numbers, which rise, the newest record up to it under that name; 0: there is none.
        Raises sqlite3.DatabaseError.

        Of a name under which a tenth of all records are, only the stretches of these numbers are read.
        """
        if not self.through:
            return dict.fromkeys(numbers, 0)
        known: dict[int, array[int]] = {}
        with closing(sqlite3.connect(self._file, timeout=WAIT_S)) as database:
            return {number: self._newest(database, name, number, known) for number in numbers}

    def _newest(self, database: sqlite3.Connection, name: str, number: int, known: dict[int, array[int]]) -> int:
        for stretch in range(number // LENGTH, self.begin // LENGTH - 1, -1):
            if stretch not in known:
                rows = database.execute(IN, (_hash(name), stretch))
                known[stretch] = next((_places(records) for _, records in rows), array("H"))
            places = known[stretch]
            found = bisect_right(places, number - stretch * LENGTH)
            if found:
                newest = stretch * LENGTH + places[found - 1]
                return newest if newest > self.begin else 0
        return 0


def _form(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def _writing(database: sqlite3.Connection) -> Generator[None]:
    """Do what is inside in one transaction."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


async def _has(journal: FileJournal, end: int, stretch: Stretch) -> bool:
    """Return whether the journal has the last record of the stretch: then it has all before."""
    if stretch.last > end:
        return False
    [record] = await journal.pick([stretch.last])
    return record.hash == stretch.hash


async def _lists(journal: FileJournal, after: int, last: int) -> dict[str, array[int]]:
    """Return by name the places in their stretch of the records above `after` and up to `last`. Raises
    DamagedError.
    """
    found: dict[str, array[int]] = {}
    kinds = (*NAMING, *LISTED)
    while after < last and (batch := await journal.read(after, kinds, min(BATCH, last - after))):
        for stored in batch:
            if stored.sequence > last:
                return found
            place = stored.sequence % LENGTH
            for name in names_in(stored):
                if name in found:
                    found[name].append(place)
                else:
                    found[name] = array("H", (place,))
        after = batch[-1].sequence
    return found


def _places(records: object) -> array[int]:
    """Return the places of a row. Raises sqlite3.DatabaseError for another content."""
    if not isinstance(records, bytes) or len(records) % 2:
        raise sqlite3.DatabaseError("a row is not a list of records")
    return array("H", records)


def _hash(name: str) -> int:
    """Return 63 bits that stand for the name: SQLite's integers are signed."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest()) >> 1
