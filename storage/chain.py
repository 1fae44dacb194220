"""The hash chain: each record's hash covers the hash before it and everything the record says."""

from __future__ import annotations

import struct
from hashlib import blake2b
from typing import TYPE_CHECKING

from pumice.storage.journal import ChainReport, FirstBad

if TYPE_CHECKING:
    from pumice.storage.journal import Head, Stored

_FIXED = struct.Struct("<QqdH")


def link(previous: bytes, sequence: int, kind: str, cause: int, at: float, payload: bytes) -> bytes:
    """The hash of a record (16 bytes, BLAKE2b). Lengths are part of it, so no two records share an encoding."""
    name = kind.encode()
    said = previous + _FIXED.pack(sequence, cause, at, len(name)) + name + payload
    return blake2b(said, digest_size=16).digest()


class Verifier:
    """Follows a chain record by record from where retention cut it, and keeps the first break."""

    __slots__ = ("first_bad", "hash", "records", "sequence")

    def __init__(self, sequence: int, previous: bytes) -> None:
        self.sequence = sequence
        self.hash = previous
        self.records = 0
        self.first_bad: FirstBad | None = None

    @classmethod
    def of(cls, head: Head) -> Verifier:
        """A verifier of everything that is left."""
        return cls(head.cut, head.cut_hash)

    def follow(self, record: Stored) -> bool:
        """Whether the record is the next one of the chain."""
        expected = self.sequence + 1
        if record.sequence != expected:
            return self.breaks(expected, f"lost: record {record.sequence} comes after record {self.sequence}")
        if link(self.hash, expected, record.kind, record.cause, record.at, record.payload) != record.hash:
            return self.breaks(expected, "changed: it does not match its hash")
        self.sequence = expected
        self.hash = record.hash
        self.records += 1
        return True

    def breaks(self, sequence: int, why: str) -> bool:
        """Note a break; only the first counts."""
        self.first_bad = self.first_bad or FirstBad(sequence, why)
        return False

    def report(self) -> ChainReport:
        """What was found so far."""
        return ChainReport(self.first_bad is None, self.records, self.first_bad)
