"""What a journal's files hold apart from each other: SQLite shows only what it makes of them together.

The write-ahead file is laid over the main file as far as its checksums agree, whoever wrote it. So what follows a
broken page is looked for, and what the main file holds alone must be what the whole begins with.

While SQLite copies the write-ahead file into the main one, and after a kill in the midst of that, the main file alone
is no database: some of its pages are older than others. Then it need not make sense, and what it says proves nothing.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from pumice.config.input_file import open_input
from pumice.storage.sqlite.frames import read_frames

if TYPE_CHECKING:
    from pathlib import Path

TRIES: Final = 3


class Alone(NamedTuple):
    """What the main file says: the journal's identity (None: a file of an old version), and its end."""

    identity: bytes | None
    sequence: int
    hash: bytes


def lost_commits(path: Path) -> int:
    """Transactions in the write-ahead file after the first one that SQLite does not accept.

    One that was being written when the power went is not accepted either, and nobody was told of it: 0, unless there
    is another one after it, which nobody begins before the one before is on the disk. A writer may be at it: what
    looks lost is looked at again.
    """
    log = path.with_name(f"{path.name}-wal")
    lost = _lost_commits(log)
    for _ in range(TRIES - 1):
        lost = lost and _lost_commits(log)
    return lost


def alone(path: Path) -> Alone | None:
    """Return what the main file holds without the write-ahead file; None: nothing yet, or nothing that can be read."""
    with suppress(sqlite3.Error, OverflowError):
        return _alone(path)
    return None


def _alone(path: Path) -> Alone | None:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as only:
        tables = {name for (name,) in only.execute("SELECT name FROM sqlite_master")}
        if "anchor" not in tables or "journal" not in tables:
            return None
        columns = {row[1] for row in only.execute("PRAGMA table_info(anchor)")}
        identity = only.execute("SELECT CAST(identity AS BLOB) FROM anchor") if "identity" in columns else None
        [(sequence, hash_)] = only.execute(
            "SELECT ifnull(max(sequence), 0), CAST(hash AS BLOB) FROM (SELECT sequence, hash FROM journal "
            "ORDER BY sequence DESC LIMIT 1)"
        )
        found = identity.fetchone() if identity is not None else None
        return Alone(found[0] if found else None, sequence, hash_ or b"")


def is_being_copied(path: Path) -> bool:
    """Whether some page of the main file is the one that the write-ahead file holds: SQLite has begun to copy."""
    with suppress(OSError), path.open("rb") as main, path.with_name(f"{path.name}-wal").open("rb") as log:
        for frame in read_frames(log):
            if not frame.accepted:
                break
            main.seek((frame.number - 1) * len(frame.page))
            if main.read(len(frame.page)) == frame.page:
                return True
    return False


def _lost_commits(log: Path) -> int:
    try:
        with open_input(log, noted=False) as file:
            lost = sum(frame.ends and frame.own and not frame.accepted for frame in read_frames(file))
    except OSError:
        return 0
    return lost if lost > 1 else 0
