"""Compression dictionaries: what records repeat, for small appends, which have little to repeat in themselves.

A pod alone deflates from 1 kB to 600 bytes, and to 130 when the deflater has seen one like it. So the journal watches
how well small appends deflate and, when that is badly, puts a few of their records into a dictionary. Dictionaries are
rows of the journal's database and are never changed; a journal makes a handful in its life.
"""

from __future__ import annotations

import zlib
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.storage.journal import Record

DICTIONARY_BYTES: Final = 4096
"""Each append hashes all of it: 1 µs for 1 kB."""
SMALL_BYTES: Final = 16_384
SAMPLES: Final = 64
FIRST_LOOK_BYTES: Final = 16_384
LAST_LOOK_BYTES: Final = 4 << 20
BADLY: Final = 0.2
WELL: Final = 0.15
WINDOW: Final = -15


class Dictionary(NamedTuple):
    """Bytes given to the deflater ahead; `number` counts from 1."""

    number: int
    content: bytes


def deflate(payload: bytes, dictionary: bytes) -> bytes:
    """A raw deflate stream. Level 1: what repeats is found all the same, at three times the speed."""
    deflater = zlib.compressobj(1, zlib.DEFLATED, WINDOW, 8, zlib.Z_DEFAULT_STRATEGY, dictionary)
    return deflater.compress(payload) + deflater.flush()


def build(samples: Sequence[bytes]) -> bytes:
    """At most DICTIONARY_BYTES of samples: again and again the one that the others taken so far help least."""
    content = b""
    while True:
        packed = {sample: len(deflate(sample, content)) for sample in samples}
        worst = max(samples, key=lambda sample: packed[sample])
        if packed[worst] < WELL * len(worst) or len(content) + len(worst) > DICTIONARY_BYTES:
            return content or worst[:DICTIONARY_BYTES]
        content = worst + content


class Sampler:
    """Watches small appends, and says when a new dictionary is worth its while."""

    def __init__(self, newest: int) -> None:
        self._newest = newest
        self._samples: deque[bytes] = deque(maxlen=SAMPLES)
        self._given = self._packed = 0
        self._look = FIRST_LOOK_BYTES
        self._proposal: Dictionary | None = None

    def note(self, pack: Sequence[Record], packed_bytes: int) -> None:
        """An append of these records took so many bytes."""
        size = sum(len(record.payload) for record in pack)
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
            self._look = min(self._look * 4, LAST_LOOK_BYTES)
        self._given = self._packed = 0

    @property
    def proposal(self) -> Dictionary | None:
        """A dictionary to be used from now on; it stays until `adopt`."""
        return self._proposal

    def adopt(self, dictionary: Dictionary) -> None:
        """The dictionary is in the database."""
        self._newest = dictionary.number
        self._proposal = None
