# SPDX-License-Identifier: Apache-2.0
"""The SQL of the journal, as text and values; `pumice.storage.sqlite.database` runs it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pumice.storage.errors import DamagedError
from pumice.storage.rows import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pumice.storage.journal import Stored
    from pumice.storage.rows import JournalRow, PackReader

Statement = tuple[str, "Sequence[Any]"]

PRAGMAS: Final = """
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 2000;
PRAGMA journal_size_limit = 16777216;
"""
"""What is in the write-ahead file goes into the main one every 8 MB or so; one append may be larger, and what the file
took for it is given back.
"""
INTO_FILE: Final = "PRAGMA wal_checkpoint(FULL)"
"""All that is in the write-ahead file goes into the main one; an empty write-ahead file would be as good as none."""
SHRINKING: Final = "PRAGMA auto_vacuum = INCREMENTAL"
"""Pages can be given back to the disk. To be said before anything is in the file, or before REBUILD."""
SHRINKS: Final = "SELECT auto_vacuum = 2, page_count FROM pragma_auto_vacuum, pragma_page_count"
REBUILD: Final = "VACUUM"
FREE_PAGES: Final = "PRAGMA freelist_count"
GIVE_BACK: Final = "PRAGMA incremental_vacuum(256)"
"""A megabyte at a time: a transaction like any other, which moves pages from the end of the file to free places."""
AS_FAR_AS_POSSIBLE: Final = "PRAGMA wal_checkpoint(PASSIVE)"
"""Does not wait for readers; the main file becomes shorter when all is in it."""
PROBE: Final = "BEGIN IMMEDIATE; PRAGMA user_version = 0; ROLLBACK;"
"""Fails where nothing can be written. Opening and beginning do not: SQLite falls back to read-only without a word."""

WHOSE: Final = (
    "SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version), "
    "(SELECT count(*) FROM sqlite_master)"
)
# SQLite accepts any value in any column; the casts make it a value of ours, and the chain finds it wrong.
HEAD: Final = (
    "SELECT ifnull(CAST(anchor.sequence AS INTEGER), 0), ifnull(CAST(anchor.hash AS BLOB), x''), "
    "(SELECT CAST(seq AS INTEGER) FROM sqlite_sequence WHERE name = 'journal'), "
    "(SELECT CAST(max(sequence) AS INTEGER) FROM journal), "
    "(SELECT ifnull(CAST(hash AS BLOB), x'') FROM journal ORDER BY sequence DESC LIMIT 1) FROM anchor"
)
IDENTITY: Final = "SELECT ifnull(CAST(identity AS BLOB), x'') FROM anchor"
ROWS: Final = (
    "SELECT ifnull(CAST(sequence AS INTEGER), -1), ifnull(CAST(kind AS TEXT), ''), ifnull(CAST(cause AS INTEGER), 0), "
    "ifnull(CAST(at AS REAL), 0.0), ifnull(CAST(lead AS INTEGER), -1), ifnull(CAST(start AS INTEGER), -1), "
    "ifnull(CAST(size AS INTEGER), -1), ifnull(CAST(hash AS BLOB), x'') FROM journal"
)
PACKS: Final = (
    "SELECT ifnull(CAST(sequence AS INTEGER), -1), ifnull(CAST(packing AS INTEGER), -1), CAST(content AS BLOB) "
    "FROM journal"
)
PACKS_BETWEEN: Final = f"{PACKS} WHERE sequence BETWEEN ? AND ? AND content IS NOT NULL"
DICTIONARIES: Final = (
    "SELECT ifnull(CAST(number AS INTEGER), -1), ifnull(CAST(content AS BLOB), x'') FROM dictionary WHERE number > ?"
)
SPAN: Final = (
    "SELECT count(*), CAST(min(sequence) AS INTEGER), CAST(max(sequence) AS INTEGER), CAST(sum(sequence) AS INTEGER) "
    "FROM journal WHERE sequence > ? AND sequence <= ?"
)
WEIGHT: Final = "SELECT ifnull(sum(length(content)), 0) FROM journal WHERE sequence > ? AND sequence <= ?"
"""Reads no content: the length stands before it."""
LAST_OF_KIND: Final = (
    "SELECT ifnull(CAST(sequence AS INTEGER), -1) FROM journal WHERE kind = ? ORDER BY sequence DESC LIMIT 1"
)
CHECKPOINTS: Final = (
    "SELECT ifnull(CAST(sequence AS INTEGER), -1), ifnull(CAST(at AS REAL), 0.0), ifnull(CAST(content AS BLOB), x'') "
    "FROM checkpoint ORDER BY sequence DESC"
)
OLDEST_CHECKPOINT: Final = "SELECT ifnull(CAST(min(sequence) AS INTEGER), 0) FROM checkpoint"
SAVE_CHECKPOINT: Final = "INSERT OR REPLACE INTO checkpoint VALUES (?, ?, ?)"
DROP_CHECKPOINTS: Final = (
    "DELETE FROM checkpoint WHERE sequence NOT IN (SELECT sequence FROM checkpoint ORDER BY sequence DESC LIMIT ?)"
)
SIZES_OF_CHECKPOINTS: Final = (
    "SELECT ifnull(CAST(sequence AS INTEGER), -1), ifnull(length(content), 0) FROM checkpoint ORDER BY sequence"
)
FORGET_CHECKPOINTS: Final = "DELETE FROM checkpoint WHERE sequence < ?"
DROP_CHECKPOINT: Final = "DELETE FROM checkpoint WHERE sequence = ?"
SAVE_DICTIONARY: Final = "INSERT INTO dictionary VALUES (?, ?)"
LEAD: Final = "SELECT ifnull(CAST(lead AS INTEGER), 0) FROM journal WHERE sequence = ?"
HASH: Final = "SELECT ifnull(CAST(hash AS BLOB), x'') FROM journal WHERE sequence = ?"
OPENED: Final = "UPDATE anchor SET opened = -abs(opened) - 1"
"""A number that rises with every opening to write, less than 0 until the journal is closed again."""
SAY_WHOSE: Final = "UPDATE anchor SET opened = opened - 1"
"""What is written ahead begins with it, and so with the journal's identity; a row that stays equal is not written."""
CLOSED: Final = "UPDATE anchor SET opened = abs(opened)"
IS_OPEN: Final = "SELECT ifnull(CAST(opened AS INTEGER), 0) < 0 FROM anchor"
ANCHOR: Final = "UPDATE anchor SET sequence = ?, hash = ?"
FORGET: Final = "DELETE FROM journal WHERE sequence <= ?"


def text(stored: bytes) -> str:
    """Return the text of a column. A changed text may not be UTF-8; the chain reports that."""
    return stored.decode("utf-8", "replace")


@cache
def insert(rows: int) -> str:
    """Return an INSERT of this many rows."""
    # what stands in the text are names of our own columns
    row = f"({','.join('?' * len(COLUMNS))})"
    return f"INSERT INTO journal ({','.join(COLUMNS)}) VALUES {','.join([row] * rows)}"  # nosec B608


def inserting(flat: Sequence[Any]) -> Statement:
    """Return the statement for one pack's columns."""
    return insert(len(flat) // len(COLUMNS)), flat


def select_rows(after: int, kinds: Collection[str] | None, limit: int) -> Statement:
    """Return rows (as `pumice.storage.rows.JournalRow`) above `after`, of these kinds, oldest first."""
    names = sorted(kinds or ())
    of_kind = "" if kinds is None else f"AND kind IN ({_marks(names)})"
    return f"{ROWS} WHERE sequence > ? {of_kind} ORDER BY sequence LIMIT ?", (after, *names, limit)


def pick_rows(numbers: Sequence[int]) -> Statement:
    """Return the rows of these numbers, oldest first."""
    return f"{ROWS} WHERE sequence IN ({_marks(numbers)}) ORDER BY sequence", numbers


def pick_packs(leads: Sequence[int]) -> Statement:
    """Return the packs in the rows of these numbers."""
    return f"{PACKS} WHERE sequence IN ({_marks(leads)}) AND content IS NOT NULL", leads


def _marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))


def rising(rows: list[JournalRow], after: int, *, all_kinds: bool) -> list[JournalRow]:
    """Return the rows above `after` as far as their numbers rise, one by one where there are rows of all kinds.

    Raises DamagedError when the first one does not come after `after`.

    SQLite answers in the order of its pages. Where one of them is another page's copy, numbers come again, and who
    reads on after the last one would read the same for ever.
    """
    if rows and rows[0].sequence <= after:
        raise DamagedError(after + 1, f"lost: record {rows[0].sequence} comes after record {after}")
    if rows and [row[0] for row in rows] == list(range(rows[0][0], rows[0][0] + len(rows))):
        return rows  # as always, except in a damaged file and where kinds were left out
    last = after
    for index, row in enumerate(rows):
        if row.sequence <= last or (index and all_kinds and row.sequence != last + 1):
            return rows[:index]
        last = row.sequence
    return rows


def is_without_gaps(count: int, first: int, last: int, total: int) -> bool:
    """Return whether numbers with this count, sum, least and greatest leave no gap."""
    return count == last - first + 1 and 2 * total == count * (first + last)


def readable(rows: Sequence[JournalRow], packs: PackReader) -> list[Stored]:
    """Return the records of the rows up to the first damaged one. Raises DamagedError when that is the first."""
    records: list[Stored] = []
    try:
        packs.read(rows, records)
    except DamagedError:
        if not records:
            raise
    return records
