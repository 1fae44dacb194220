# SPDX-License-Identifier: Apache-2.0
"""The frames of a write-ahead file: those that SQLite accepts, and those that it does not show.

Source: https://sqlite.org/fileformat.html#walformat.

SQLite tells the same in the index beside it (-shm), but that must not be opened here: SQLite's locks on it are of the
process, and closing any handle on the file drops them. Then the next process to come takes itself for the first one,
and cuts the index under those who have it in their memory.
"""

from __future__ import annotations

import sqlite3
import struct
from contextlib import closing, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from pumice.config.input_file import open_input

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

HEADER: Final = struct.Struct(">4sIII8sII")
"""Magic, format, page size, checkpoint number, salts, checksum."""
FRAME: Final = struct.Struct(">II8sII")
"""Page number, pages of the database after a commit (0: no commit), salts, checksum; the page follows."""
_SUMMED: Final = 8
"""Bytes of a frame's head that the checksum covers; those of the file's head are all before its own."""
_ORDERS: Final = {b"\x37\x7f\x06\x82": "<u4", b"\x37\x7f\x06\x83": ">u4"}
"""Of the words that are summed, by magic."""
_PAGES: Final = frozenset(1 << power for power in range(9, 17))
_AT_ONCE: Final = 256
"""Frames: a megabyte."""

_ALL: Final = 0xFFFFFFFF


class WalFrame(NamedTuple):
    """One page of the database as a transaction left it.

    `ends`: it is the last one of a transaction. `own`: it is none of those from before the file began anew.
    `accepted`: its checksum goes on from that of the one before, as that one's did. `number` is the page's, from 1.
    """

    ends: bool
    own: bool
    accepted: bool
    number: int
    page: bytes


def read_frames(file: BinaryIO) -> Iterator[WalFrame]:
    """Yield all frames of a write-ahead file, from its beginning; none where its head is malformed."""
    head = file.read(HEADER.size)
    if len(head) < HEADER.size:
        return
    magic, _, page, _, salts, *told = HEADER.unpack(head)
    if magic not in _ORDERS or page not in _PAGES:
        return
    order, size = _ORDERS[magic], FRAME.size + page
    weights = _weights(3)
    sums = [int(each) for each in np.frombuffer(head, order, len(weights)) @ weights]
    accepted = sums == told
    weights = _weights((_SUMMED + page) // 8)
    (x_a, x_b), (y_a, y_b) = weights[:2].tolist()
    # Weight 0 for the words between the summed head and the page: one product takes whole frames as they lie.
    weights = np.insert(weights, [2] * ((FRAME.size - _SUMMED) // 4), 0, axis=0)
    while chunk := file.read(size * _AT_ONCE):
        whole = len(chunk) // size
        words = np.frombuffer(chunk, order, whole * len(weights)).reshape(whole, len(weights))
        for number, (a, b) in enumerate((words.astype(np.uint32) @ weights).tolist()):
            before = sums[0] + sums[1]  # what was summed until here, as if the frame's first words had held it, too
            sums = [(a + before * x_a + sums[1] * y_a) & _ALL, (b + before * x_b + sums[1] * y_b) & _ALL]
            at = number * size
            place, ends, own, *told = FRAME.unpack_from(chunk, at)
            accepted = accepted and own == salts and sums == told
            yield WalFrame(ends > 0, own == salts, accepted, place, chunk[at + FRAME.size : at + size])


@lru_cache(maxsize=16)
def _weights(pairs: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint32]]:
    """Return the weights of so many pairs of words in both sums, a row a word: [2 pairs, 2], modulo 2^32.

    A pair (x, y) makes of the sums (a, b): a' = a + b + x; b' = b + a' + y. So x adds (1, 1) and y (0, 1), and every
    pair that comes later makes (a + b, a + 2 b) of what an earlier one has added.
    """
    rows: list[tuple[int, int]] = []
    x, y = (1, 1), (0, 1)
    for _ in range(pairs):
        rows += (y, x)
        x, y = ((sum(each) & _ALL, (each[0] + 2 * each[1]) & _ALL) for each in (x, y))
    weights = np.array(rows[::-1], np.uint32)
    weights.flags.writeable = False
    return weights


# --- The tail
# The write-ahead file is laid over the main file as far as its checksums agree, even if another program wrote it. So
# what follows a broken page is looked for, and what the main file holds alone must be what the whole begins with.
#
# While SQLite copies the write-ahead file into the main one, and after a kill in the midst of that, the main file
# alone is not a database: some of its pages are older than others. Then it need not make sense, and what it says proves
# nothing.

TRIES: Final = 3


class Alone(NamedTuple):
    """Content of the main file alone: the journal's identity (None: a file of an old version), and its end."""

    identity: bytes | None
    sequence: int
    hash: bytes


def lost_commits(path: Path) -> int:
    """Return the transactions in the write-ahead file after the first one that SQLite does not accept.

    One that was being written when the power went is not accepted either, and its writer got no answer: 0, unless there
    is another one after it, which is begun only when the one before is on the disk. A writer may be at it: what
    looks lost is looked at again.
    """
    log = path.with_name(f"{path.name}-wal")
    lost = _lost_commits(log)
    for _ in range(TRIES - 1):
        lost = lost and _lost_commits(log)
    return lost


def alone(path: Path) -> Alone | None:
    """Return the content of the main file without the write-ahead file; None before its first write, or when it cannot
    be read.
    """
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
            "SELECT ifnull(CAST(max(sequence) AS INTEGER), 0), CAST(hash AS BLOB) "
            "FROM (SELECT sequence, hash FROM journal ORDER BY sequence DESC LIMIT 1)"
        )
        found = identity.fetchone() if identity is not None else None
        return Alone(found[0] if found else None, sequence, hash_ or b"")


def is_being_copied(path: Path) -> bool:
    """Return whether some page of the main file equals the write-ahead file's: SQLite has begun to copy."""
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
