"""The frames of a write-ahead file, and which of them SQLite accepts: https://sqlite.org/fileformat.html#walformat.

SQLite tells the same in the index beside it (-shm), but that must not be opened here: SQLite's locks on it are of the
process, and closing any handle on the file drops them. Then the next process to come takes itself for the first one,
and cuts the index under those who have it in their memory.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
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
    """All of a write-ahead file, from its beginning; none where its head makes no sense."""
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
    """What each of so many pairs of words adds to both sums, a row a word: [2 pairs, 2], modulo 2^32.

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
