"""How far a journal had come, told beside it: what is acknowledged may stand in SQLite's write-ahead file alone.

SQLite drops what comes after a broken page of that file without a word. So the last record of every append is noted in
the lock file, which is there from the opening to a clean stop. It is written after the append and before anybody hears
of it, and not waited for on the disk: it survives a kill, and after a power cut it says too little, never too much.
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from pumice.config.input_file import open_input

if TYPE_CHECKING:
    from pathlib import Path

    from pumice.storage.journal import Head

_FORM: Final = struct.Struct("<16sQ16s8s")
OFFSET: Final = 64
"""In the file; before it stands the number of the process, for people."""


class Mark(NamedTuple):
    """The journal's identity, and its last record's number and hash."""

    identity: bytes
    sequence: int
    hash: bytes

    def packed(self) -> bytes:
        """The bytes that stand in the file."""
        return _FORM.pack(*self, _sum(*self))

    def missing(self, identity: bytes, head: Head) -> str:
        """What a journal that ends at `head` lacks of it, "" for nothing. A mark of another journal says nothing."""
        if self.identity != identity or self.sequence < head.sequence:
            return ""
        if self.sequence > head.sequence:
            return f"records {head.sequence + 1} to {self.sequence} are lost"
        return "" if self.hash == head.hash else f"record {self.sequence} is not the one that was written"


def read_mark(path: Path) -> Mark | None:
    """The mark in a lock file; None where there is none that can be read."""
    try:
        with open_input(path, noted=False) as file:
            file.seek(OFFSET)
            found = file.read(_FORM.size)
    except OSError:
        return None
    if len(found) < _FORM.size:
        return None
    identity, sequence, hash_, checked = _FORM.unpack(found)
    return Mark(identity, sequence, hash_) if checked == _sum(identity, sequence, hash_) else None


def _sum(identity: bytes, sequence: int, hash_: bytes) -> bytes:
    return blake2b(b"%b %d %b" % (identity, sequence, hash_), digest_size=8).digest()
