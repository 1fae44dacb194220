"""Records as rows of the journal's table, and back.

One row a record, but the payloads of an append are deflated together (a *pack*) and lie in the row of its first record:
objects of one role differ in a few bytes, so a pod of 1 kB costs about 70 bytes in a batch. A record finds its payload
by `lead` (how many rows back the pack lies), `start` and `size`. The hash covers the payload as it was given, whatever
way it is stored.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pumice.storage.chain import link
from pumice.storage.dictionary import WINDOW, deflate
from pumice.storage.errors import DamagedError
from pumice.storage.journal import Stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pumice.storage.dictionary import Dictionary
    from pumice.storage.journal import Record

COLUMNS: Final = ("sequence", "kind", "cause", "at", "lead", "start", "size", "packing", "content", "hash")
PACK_RECORDS: Final = 1024
PACK_BYTES: Final = 1 << 20
"""A pack is closed at this many records or payload bytes: what reading one record may cost stays bounded."""

NO_DICTIONARY: Final = 0
"""`packing` is the number of the dictionary the pack was deflated with, or this; NULL: no pack in this row."""


class JournalRow(NamedTuple):
    """A row without its pack, as read."""

    sequence: int
    kind: str
    cause: int
    at: float
    lead: int
    start: int
    size: int
    hash: bytes


def packs(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    """Cut an append into packs."""
    begin = size = 0
    for index, record in enumerate(records):
        if index - begin == PACK_RECORDS or (size and size + len(record.payload) > PACK_BYTES):
            yield records[begin:index]
            begin, size = index, 0
        size += len(record.payload)
    if begin < len(records):
        yield records[begin:]


class Packed(NamedTuple):
    """A pack ready to be written: its rows' columns in one flat list, the last record's hash, the size of the pack."""

    columns: list[Any]
    hash: bytes
    bytes: int


def pack_rows(
    records: Sequence[Record], sequence: int, previous: bytes, dictionary: Dictionary | None = None
) -> Packed:
    """Records as one pack, numbered from `sequence`."""
    flat: list[Any] = []
    payload = b"".join([record.payload for record in records])
    packing: int | None = dictionary.number if dictionary else NO_DICTIONARY
    packed = deflate(payload, dictionary.content if dictionary else b"")
    content: bytes | None = packed
    start = 0
    for lead, record in enumerate(records):
        number, size = sequence + lead, len(record.payload)
        previous = link(previous, number, record.kind, record.cause, record.at, record.payload)
        flat += (number, record.kind, record.cause, record.at, lead, start, size, packing, content, previous)
        packing = content = None
        start += size
    return Packed(flat, previous, len(packed))


def inflate(packing: int, content: bytes, dictionaries: Mapping[int, bytes]) -> tuple[bytes, str]:
    """The payloads of a pack, as far as they can be had, and what stopped it ("" at the end)."""
    if packing != NO_DICTIONARY and packing not in dictionaries:
        return b"", f"unreadable: compression dictionary {packing} is missing"
    given = dictionaries.get(packing, b"")
    inflater = zlib.decompressobj(WINDOW, given)
    try:
        payload = inflater.decompress(content)
    except zlib.error as problem:
        return _readable_part(content, given), f"unreadable: its bytes were changed ({problem})"
    if inflater.unused_data:
        return payload, "unreadable: its bytes were added to"
    return payload, "" if inflater.eof else "unreadable: its bytes were cut"


def _readable_part(content: bytes, given: bytes) -> bytes:
    """What comes before the damage, so that the first bad record can be named and not just its pack."""
    inflater = zlib.decompressobj(WINDOW, given)
    payload = b""
    try:
        for index in range(len(content)):
            payload += inflater.decompress(content[index : index + 1])
    except zlib.error:
        pass
    return payload


class PackReader:
    """Cuts payloads out of packs, each inflated once."""

    def __init__(self, contents: Iterable[tuple[int, int, bytes]], dictionaries: Mapping[int, bytes]) -> None:
        self._contents = {sequence: (packing, content) for sequence, packing, content in contents}
        self._dictionaries = dictionaries
        self._inflated: dict[int, tuple[bytes, str]] = {}

    def stored(self, row: JournalRow) -> Stored:
        """The record of a row. Raises DamagedError."""
        payload, stopped = self._payload(row.sequence - row.lead)
        end = row.start + row.size
        if min(row.lead, row.start, row.size) < 0:
            raise DamagedError(row.sequence, "changed: it does not say where its bytes are")
        # A pack that did not end as it should is at fault with its last record, however much of it can be read.
        if len(payload) < end or (stopped and len(payload) == end):
            raise DamagedError(row.sequence, stopped or "unreadable: its bytes were cut")
        piece = payload if row.size == len(payload) else payload[row.start : end]
        return Stored(row.sequence, row.kind, piece, row.cause, row.at, row.hash)

    def _payload(self, sequence: int) -> tuple[bytes, str]:
        found = self._inflated.get(sequence)
        if found is None:
            found = self._inflated[sequence] = self._inflate(sequence)
        return found

    def _inflate(self, sequence: int) -> tuple[bytes, str]:
        if sequence not in self._contents:
            return b"", f"unreadable: its bytes lay in record {sequence}, which is lost"
        packing, content = self._contents[sequence]
        return inflate(packing, content, self._dictionaries)
