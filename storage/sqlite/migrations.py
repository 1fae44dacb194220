# SPDX-License-Identifier: Apache-2.0
"""The schema by version, each step written once and never changed; `PRAGMA user_version` is the version.

Opening a journal runs the steps it lacks, each in a transaction of its own together with the new version number, so a
process killed in between leaves one version or the next.
"""

from __future__ import annotations

from typing import Final

APPLICATION_ID: Final = 0x50756D69
"""`PRAGMA application_id`: "Pumi"."""

VERSION_1: Final = """
-- AUTOINCREMENT keeps the highest number ever given out, which shows when records are lost from the end.
CREATE TABLE journal (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    cause INTEGER NOT NULL,
    at REAL NOT NULL,
    lead INTEGER NOT NULL,
    start INTEGER NOT NULL,
    size INTEGER NOT NULL,
    packing INTEGER,
    content BLOB,
    hash BLOB NOT NULL
);
CREATE TABLE dictionary (number INTEGER PRIMARY KEY, content BLOB NOT NULL);
CREATE TABLE anchor (only INTEGER PRIMARY KEY CHECK (only = 1), sequence INTEGER NOT NULL, hash BLOB NOT NULL);
CREATE TABLE checkpoint (sequence INTEGER PRIMARY KEY, at REAL NOT NULL, content BLOB NOT NULL);
INSERT INTO anchor VALUES (1, 0, zeroblob(16));
"""

VERSION_2: Final = """
-- Which journal this is, and how often it was opened to be written: so what every writer writes ahead says whose it is
-- as long as all its records are there, and later their hashes do.
ALTER TABLE anchor ADD COLUMN identity BLOB;
ALTER TABLE anchor ADD COLUMN opened INTEGER NOT NULL DEFAULT 0;
UPDATE anchor SET identity = randomblob(16);
"""

MIGRATIONS: Final[tuple[str, ...]] = (VERSION_1, VERSION_2)
"""Step i leads from version i to version i + 1."""

IDENTIFIED: Final = 2
"""From this version on a journal has an identity."""

VOUCHED: Final = 2
"""From this version on every checkpoint has a record in the chain that vouches for it."""


def scripts(version: int, migrations: tuple[str, ...] = MIGRATIONS) -> list[str]:
    """Return the scripts, in order, that bring a journal of this version up to date."""
    return [_transaction(number, step) for number, step in enumerate(migrations, start=1) if number > version]


def _transaction(number: int, step: str) -> str:
    stamp = f"PRAGMA application_id = {APPLICATION_ID};\nPRAGMA user_version = {number};"
    return f"BEGIN IMMEDIATE;\n{step}\n{stamp}\nCOMMIT;"
