"""What many read is decoded once, and not kept for ever."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from pumice.core.messages.events import Mutation
from pumice.storage import codec, shared_objects
from pumice.storage.errors import CodecError
from pumice.storage.shared_objects import BoundedTable, SharedObjects


def test_what_its_writer_shares_is_not_decoded() -> None:
    shared, written = SharedObjects(), {"kind": "Pod", "spec": {"nodeName": "n1"}}
    blob = codec.pack(written)
    shared.keep(blob, written)
    assert shared.unpack(bytes(bytearray(blob))) is written
    other = codec.pack({"kind": "Pod"})
    assert shared.unpack(other) == {"kind": "Pod"}
    shared.keep(other, {"late": True})
    assert shared.unpack(other) == {"kind": "Pod"}, "whoever decoded it first keeps what he has"
    assert SharedObjects().unpack(blob) is not written, "another system has another table"


def test_so_many_are_shared_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_objects, "SHARED", 4)
    shared = SharedObjects()
    blobs = [codec.pack({"name": str(number)}) for number in range(5)]
    first = [shared.unpack(blob) for blob in blobs[:4]]
    assert [shared.unpack(blob) for blob in blobs[:4]] == first
    assert shared.unpack(blobs[4]) == {"name": "4"}
    kept = [shared.unpack(blob) is obj for blob, obj in zip(blobs[2:4], first[2:], strict=True)]
    assert kept == [True, True], "the younger half stays"
    assert shared.unpack(blobs[0]) is not first[0]


def test_of_large_objects_fewer_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_objects, "SHARED_BYTES", 1_000)
    shared = SharedObjects()
    kept = vars(shared)["_objects"]
    blobs = [codec.pack({"name": str(number), "text": "x" * 300}) for number in range(6)]
    for number, blob in enumerate(blobs):
        obj = shared.unpack(blob)
        assert shared.unpack(blob) is obj
        assert sum(map(len, kept)) == kept.size <= 1_000
        assert list(kept)[-1] == blobs[number]
    shared.forget(blobs[5])
    shared.forget(blobs[5])
    assert sum(map(len, kept)) == kept.size


def test_within_the_block_all_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_objects, "SHARED", 4)
    shared = SharedObjects()
    blobs = [codec.pack({"name": str(number)}) for number in range(9)]
    with shared.keeping_all():
        first = [shared.unpack(blob) for blob in blobs]
        assert all(shared.unpack(blob) is obj for blob, obj in zip(blobs, first, strict=True))
    assert [shared.unpack(blob) is obj for blob, obj in zip(blobs[7:], first[7:], strict=True)] == [True, True]
    assert shared.unpack(blobs[0]) is not first[0]


def test_of_large_changes_fewer_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_objects, "CHANGED_BYTES", 1_000)
    shared = SharedObjects()
    large = [Mutation(number, "MODIFIED", "Pod", "default", "p", bytes(300)) for number in range(1, 9)]
    for each in large:
        shared.keep_changes([each])
    told = shared.changes(range(1, 9), [codec.encode(each) for each in large])
    assert told == large
    assert [one is each for one, each in zip(told, large, strict=True)] == [False] * 6 + [True] * 2
    assert sum(len(each.blob) for each in vars(shared)["_changes"].values()) <= 1_000


def change(revision: int) -> Mutation:
    return Mutation(revision, "ADDED", "Pod", "default", f"p{revision}", b"x")


def test_a_change_is_decoded_once_whoever_pulls_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_objects, "SHARED", 4)
    shared = SharedObjects()
    frames = {revision: Raw(codec.encode(change(revision))) for revision in range(1, 9)}
    first = shared.changes((1, 2), (frames[1], frames[2]))
    assert first == [change(1), change(2)]
    again = shared.changes((2, 3), (frames[2], frames[3]))
    assert again[0] is first[1]
    late = shared.changes(tuple(frames), tuple(frames.values()))
    assert late == [change(revision) for revision in frames]
    assert shared.changes((8, 1), (frames[8], frames[1]))[0] is late[-1]
    assert shared.changes((1,), (frames[1],))[0] is not first[0], "the older ones have gone"
    with pytest.raises(CodecError):
        shared.changes((99,), (Raw(codec.pack("no change")),))


def test_a_change_that_its_writer_shares_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_objects, "SHARED", 4)
    shared, written = SharedObjects(), [change(revision) for revision in range(1, 7)]
    for each in written:
        shared.keep_changes([each])
    frames = [Raw(codec.encode(each)) for each in written]
    found = shared.changes(range(1, 7), frames)
    assert found == written
    assert [one is other for one, other in zip(found, written, strict=True)] == [False] * 2 + [True] * 4


def test_what_nobody_reads_any_more_leaves_room() -> None:
    shared, blob = SharedObjects(), codec.pack({"kind": "Pod"})
    first = shared.unpack(blob)
    shared.forget(blob)
    shared.forget(blob)
    assert shared.unpack(blob) is not first


MOST, BYTES = 6, 100


@given(st.lists(st.tuples(st.sampled_from(["keep", "put", "forget"]), st.integers(0, 12), st.integers(0, 50))))
def test_a_table_is_bounded_in_number_and_in_bytes(steps: list[tuple[str, int, int]]) -> None:
    table = BoundedTable[int, bytes](MOST, BYTES, lambda key, value: len(value))
    for step, key, size in steps:
        before = table.get(key)
        if step == "forget":
            table.forget(key)
            assert key not in table
        else:
            (table.put if step == "put" else table.keep)(key, bytes(size))
            assert table[key] == (bytes(size) if step == "put" or before is None else before)
        assert table.size == sum(map(len, table.values())) <= BYTES
        assert len(table) <= MOST


def test_the_older_half_goes() -> None:
    table = BoundedTable[int, bytes](MOST, BYTES, lambda key, value: len(value))
    for key in range(MOST + 1):
        table.keep(key, b"x")
    assert list(table) == [3, 4, 5, 6]
