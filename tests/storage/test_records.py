"""What is said of records that cannot be read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pumice.core.messages.events import CycleRecord, Mutation
from pumice.core.messages.message import KEY
from pumice.storage import codec
from pumice.storage.errors import DamagedError, NewerPayloadError
from pumice.storage.journal import API, CYCLE, Stored
from pumice.storage.records import content, read_as, told

_READERS: tuple[Callable[[Stored], object], ...] = (lambda each: read_as(each, Mutation), content, told)
MUTATION = Mutation(3, "ADDED", "Pod", "default", "p", b"", "")


def stored(payload: bytes, kind: str = API) -> Stored:
    return Stored(7, kind, payload, 0, 0.0, b"")


def test_a_record_of_another_shape_is_damage_with_its_number() -> None:
    assert read_as(stored(codec.encode(MUTATION)), Mutation) == MUTATION
    for payload in (b"", b"\xc1", codec.pack([1]), codec.encode(MUTATION)[:-1]):
        for read in _READERS:
            with pytest.raises(DamagedError, match=r"damaged at record 7: changed: it cannot be read \(") as raised:
                read(stored(payload))
            assert raised.value.sequence == 7
    with pytest.raises(DamagedError, match="record 7"):
        read_as(stored(codec.encode(MUTATION), CYCLE), CycleRecord)


def test_a_record_of_a_newer_version_is_no_damage() -> None:
    newer = codec.pack({**codec.unpack(codec.encode(MUTATION)), KEY: "Mutation/99"})
    with pytest.raises(NewerPayloadError):
        read_as(stored(newer), Mutation)


def test_a_kind_of_a_newer_pumice_tells_nothing() -> None:
    assert (told(stored(b"?", "news")), content(stored(b"?", "news"))) == (None, None)
