# SPDX-License-Identifier: Apache-2.0
"""The hash chain and its verification: each hash covers the hash before it and the whole content of its record."""

from __future__ import annotations

import struct
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from pumice.storage.errors import DamagedError, EditedCheckpointError
from pumice.storage.journal import ChainReport, FirstBad

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from pumice.storage.journal import Head, Journal, Stored

_FIXED = struct.Struct("<QqdH")


def link(previous: bytes, sequence: int, kind: str, cause: int, at: float, payload: bytes) -> bytes:
    """Return the hash of a record (16 bytes, BLAKE2b). Lengths are part of it, so no two records share an encoding."""
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
        """Return a verifier of all remaining records."""
        return cls(head.cut, head.cut_hash)

    def follow(self, record: Stored) -> bool:
        """Return whether the record is the next one of the chain."""
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
        """Return the findings so far."""
        return ChainReport(self.first_bad is None, self.records, self.first_bad)


# --- Verification

REMEDY: Final = "all records are whole: go on with a copy that does without it (pumice journal FILE --backup TO)"
NO_REMEDY: Final = "the records that it stood for were cut, so nothing can take its place: go on with an earlier copy"
CHUNK = 2048
"""Records at a time: a few milliseconds of work between two chances for other tasks to run."""


async def check(journal: Journal) -> ChainReport:
    """Verify every record there was when the check began. The first bad one is named by its sequence number."""
    # Asked once: of a busy journal the end would never be reached.
    head = await journal.head()
    verifier = Verifier.of(head)
    while verifier.first_bad is None and verifier.sequence < head.written:
        await _check_chunk(journal, head, verifier)
    if verifier.first_bad is None:
        await _check_checkpoints(journal, head.cut, verifier)
    return verifier.report()


async def _check_checkpoints(journal: Journal, cut: int, verifier: Verifier) -> None:
    try:
        await journal.checkpoints()
    except EditedCheckpointError as edited:
        verifier.breaks(edited.sequence, f"{edited.why}; {REMEDY if edited.is_needless(cut) else NO_REMEDY}")
    except DamagedError as damage:
        verifier.breaks(damage.sequence, damage.why)


async def _check_chunk(journal: Journal, head: Head, verifier: Verifier) -> None:
    try:
        records = await journal.read(verifier.sequence, limit=CHUNK)
    except DamagedError as damage:
        # What is missing altogether comes before what cannot be read. Number 0: the file itself is broken thereabouts.
        lost = damage.sequence > verifier.sequence + 1
        verifier.breaks(verifier.sequence + 1, "lost" if lost else damage.why)
        return
    if not records:
        verifier.breaks(verifier.sequence + 1, f"lost: records up to {head.written} were written")
    for record in records:
        if not verifier.follow(record):
            return


# --- Scans

SCAN_CHUNK: Final = 4096


async def verified(journal: Journal, head: Head, after: Stored | None = None) -> AsyncGenerator[Sequence[Stored]]:
    """Yield all records above `after` (all records: None) up to `head`, chunk by chunk, after verification.

    Raises DamagedError at the first record that was edited or is lost. Close it (`aclosing`) when leaving early.
    """
    verifier = Verifier.of(head) if after is None else Verifier(after.sequence, after.hash)
    while verifier.sequence < head.written:
        chunk = await journal.read(verifier.sequence, limit=min(SCAN_CHUNK, head.written - verifier.sequence))
        if not chunk:
            verifier.breaks(verifier.sequence + 1, f"lost: records up to {head.written} were written")
        good = _while_whole(verifier, chunk)
        if good:
            yield good
        if verifier.first_bad is not None:
            raise DamagedError(verifier.first_bad.sequence, verifier.first_bad.why)


async def leniently(journal: Journal, after: int = 0) -> AsyncGenerator[tuple[Sequence[Stored], ChainReport]]:
    """Yield all readable records above `after`, chunk by chunk, with the chain's finding so far.

    A record that was changed is handed out all the same; one that cannot be read ends it. Close it (`aclosing`).
    """
    head = await journal.head()
    verifier = Verifier.of(head)
    if after > head.cut:
        verifier = Verifier(after, (await journal.read(after - 1, limit=1))[0].hash)
    position = max(after, head.cut)
    while position < head.written:
        try:
            chunk = await journal.read(position, limit=min(SCAN_CHUNK, head.written - position))
        except DamagedError as damage:
            verifier.breaks(damage.sequence or position + 1, damage.why)
            chunk = ()
        if not chunk:
            verifier.breaks(position + 1, f"lost: records up to {head.written} were written")
            yield (), verifier.report()
            return
        for record in chunk:
            if verifier.first_bad is not None or not verifier.follow(record):
                break
        position = chunk[-1].sequence
        yield chunk, verifier.report()


def _while_whole(verifier: Verifier, chunk: Sequence[Stored]) -> Sequence[Stored]:
    good: list[Stored] = []
    for record in chunk:
        if not verifier.follow(record):
            break
        good.append(record)
    return good
