"""The disk under a storm's journal: what is on its way when the power goes gets there whole, in part, or not at all.

What was synced stays. Of the append in flight any sectors may be on the disk, as after a power cut under SQLite's
write-ahead file: the next life believes it when its checksum agrees, and as a whole.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from pumice.actors.api_server.faults.chance import chance
from pumice.storage import codec
from pumice.storage.journal import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

SECTOR: Final = 512
"""Bytes that are written whole or not at all."""
SHARES: Final = (0.0, 0.5, 0.9, 1.0)
"""Shares of sectors that reach the disk, all equally likely: a lost write, two torn ones, a whole one."""
_SUM: Final = 16


class StormDisk:
    """One append at a time is on its way; which of its sectors get there depends on the seed and on nothing else."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._on_its_way = b""
        self._cuts = 0

    def write(self, records: Sequence[Record]) -> None:
        """Hand an append to the disk, which may hold it back until `sync`."""
        body = codec.pack([(each.kind, each.payload, each.cause, each.at) for each in records])
        self._on_its_way = _sum(body) + body

    def sync(self) -> None:
        """Note that the append is on the disk and cannot be lost."""
        self._on_its_way = b""

    def lose_power(self) -> list[Record]:
        """The records of what was on its way, if all of it got there; the next append is written over the rest."""
        written, self._on_its_way = self._torn(self._on_its_way), b""
        told, body = written[:_SUM], written[_SUM:]
        if not body or told != _sum(body):
            return []
        return [Record(kind, payload, cause, at) for kind, payload, cause, at in codec.unpack(body)]

    def _torn(self, data: bytes) -> bytes:
        """Return the bytes after a power cut: lost sectors read as zeros, and are missing at the end."""
        self._cuts += 1
        share = SHARES[int(chance(self._seed, f"power cut #{self._cuts}") * len(SHARES))]
        sectors = [data[at : at + SECTOR] for at in range(0, len(data), SECTOR)]
        kept = [
            sector if chance(self._seed, f"power cut #{self._cuts}, sector {number}") < share else bytes(len(sector))
            for number, sector in enumerate(sectors)
        ]
        while kept and not any(kept[-1]):
            kept.pop()
        return b"".join(kept)


def _sum(body: bytes) -> bytes:
    return blake2b(body, digest_size=_SUM).digest()
