# SPDX-License-Identifier: Apache-2.0
"""Records as rows of the journal's table and back, packed, with dictionaries for small appends.

One row a record, but the payloads of an append are deflated together (a *pack*) and lie in the row of its first record:
objects of one role differ in a few bytes, so a pod of 1 kB costs about 70 bytes in a batch. A record finds its payload
by `lead` (how many rows back the pack lies), `start` and `size`. The hash covers the payload as it was given, whatever
way it is stored.
"""

from __future__ import annotations

import zlib
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pumice.storage.chain import link
from pumice.storage.errors import DamagedError
from pumice.storage.journal import Stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

    from pumice.storage.journal import Record

# --- Compression dictionaries
# A pod alone deflates from 1 kB to 600 bytes, and to 130 when the deflater has seen one like it. So the journal
# watches how well small appends deflate and, when that is badly, puts a few of their records into a dictionary.
# Dictionaries are rows of the journal's database and are never changed; a journal makes a handful in its life.

DICTIONARY_BYTES: Final = 4096
"""Each append hashes all of it: 1 µs for 1 kB."""
SMALL_BYTES: Final = 16_384
SAMPLES: Final = 64
FIRST_LOOK_BYTES: Final = 16_384
LAST_LOOK_BYTES: Final = 4 << 20
BADLY: Final = 0.2
WELL: Final = 0.15
WINDOW: Final = -15
SMALL_WINDOW: Final = -13
"""What reaches no further back needs a quarter of the tables: to make them takes 46 us of a small append, and 10 so."""


class Dictionary(NamedTuple):
    """Bytes that the deflater gets before the data; `number` counts from 1."""

    number: int
    content: bytes


def deflate(payload: bytes, dictionary: bytes) -> bytes:
    """Return a raw deflate stream. Level 1 finds repetitions all the same, at three times the speed."""
    small = len(payload) + len(dictionary) <= 1 << -SMALL_WINDOW
    window, memory = (SMALL_WINDOW, 6) if small else (WINDOW, 8)
    deflater = zlib.compressobj(1, zlib.DEFLATED, window, memory, zlib.Z_DEFAULT_STRATEGY, dictionary)
    return deflater.compress(payload) + deflater.flush()


def build(samples: Sequence[bytes]) -> bytes:
    """Build a dictionary of at most DICTIONARY_BYTES from samples: each time the one that the chosen ones help
    least.
    """
    content = b""
    while True:
        packed = {sample: len(deflate(sample, content)) for sample in samples}
        worst = max(samples, key=lambda sample: packed[sample])
        if packed[worst] < WELL * len(worst) or len(content) + len(worst) > DICTIONARY_BYTES:
            return content or worst[:DICTIONARY_BYTES]
        content = worst + content


class Sampler:
    """Watches small appends, and proposes a new dictionary when it pays."""

    def __init__(self, newest: int) -> None:
        self._newest = newest
        self._samples: deque[bytes] = deque(maxlen=SAMPLES)
        self._given = self._packed = 0
        self._look = FIRST_LOOK_BYTES
        self._proposal: Dictionary | None = None

    def note(self, pack: Sequence[Record], packed_bytes: int) -> None:
        """Note that an append of these records took so many bytes."""
        size = sum(len(record.payload) for record in pack)
        # A large pack finds its repetitions in itself, and a dictionary gains nothing there.
        if size > SMALL_BYTES:
            return
        self._samples.extend(record.payload for record in pack if record.payload)
        self._given += size
        self._packed += packed_bytes
        if self._given >= self._look and self._samples:
            self._decide()

    def _decide(self) -> None:
        if self._packed > BADLY * self._given:
            self._proposal = Dictionary(self._newest + 1, build(self._samples))
            # Dictionaries are kept for good: each one makes the next come later.
            self._look = min(self._look * 4, LAST_LOOK_BYTES)
        self._given = self._packed = 0

    @property
    def proposal(self) -> Dictionary | None:
        """Return a dictionary to be used from now on; it stays until `adopt`."""
        return self._proposal

    def adopt(self, dictionary: Dictionary) -> None:
        """Note that the dictionary is in the database."""
        self._newest = dictionary.number
        self._proposal = None


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
    """Return records as one pack, numbered from `sequence`."""
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
        # Only the first row of a pack holds it.
        packing = content = None
        start += size
    return Packed(flat, previous, len(packed))


def inflate(packing: int, content: bytes, dictionaries: Mapping[int, bytes]) -> tuple[bytes, str]:
    """Return the payloads of a pack, as far as they can be read, and the error that stopped it ("" at the end)."""
    if packing != NO_DICTIONARY and packing not in dictionaries:
        return b"", f"unreadable: compression dictionary {packing} is missing"
    given = dictionaries.get(packing, b"")
    # The larger window reads streams of both sizes.
    inflater = zlib.decompressobj(WINDOW, given)
    try:
        payload = inflater.decompress(content)
    except zlib.error as problem:
        return _readable_part(content, given), f"unreadable: its bytes were changed ({problem})"
    if inflater.unused_data:
        return payload, "unreadable: its bytes were added to"
    return payload, "" if inflater.eof else "unreadable: its bytes were cut"


def _readable_part(content: bytes, given: bytes) -> bytes:
    """Return the bytes before the damage, so that the error names the first bad record and not just its pack."""
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
        self._contents: dict[int, tuple[int, bytes]] = {}
        self._dictionaries = dictionaries
        self._inflated: dict[int, tuple[bytes, str]] = {}
        self.add(contents)

    def add(self, contents: Iterable[tuple[int, int, bytes]]) -> None:
        """Add packs: number of the first record, number of the dictionary, content."""
        self._contents.update((sequence, (packing, content)) for sequence, packing, content in contents)

    @property
    def known(self) -> Set[int]:
        """Return the packs that it has."""
        return self._contents.keys()

    @property
    def inflated(self) -> int:
        """Return the number of packs that it has inflated."""
        return len(self._inflated)

    def read(self, rows: Iterable[JournalRow], into: list[Stored]) -> None:
        """Add the records of rows to a list. Raises DamagedError at the first damaged one."""
        # The inner loop of every fold: names instead of attributes save a quarter of it.
        pack, payload, stopped, length = None, b"", "", 0
        for sequence, kind, cause, at, lead, start, size, hash_ in rows:
            if sequence - lead != pack:
                pack = sequence - lead
                payload, stopped = self._payload(pack)
                length = len(payload)
            end = start + size
            if lead < 0 or start < 0 or size < 0:
                raise DamagedError(sequence, "changed: it does not say where its bytes are")
            # A pack that did not end as it should is at fault with its last record, however much of it can be read.
            if length < end or (stopped and length == end):
                raise DamagedError(sequence, stopped or "unreadable: its bytes were cut")
            into.append(Stored(sequence, kind, payload[start:end], cause, at, hash_))

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
