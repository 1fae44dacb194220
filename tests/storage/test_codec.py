"""The codec: what goes in comes out, and everything else is refused by name."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.messages.decisions import Bind, Decision, Evict
from pumice.core.messages.events import Bound, Mutation, Outcome
from pumice.storage import codec
from pumice.storage.errors import CodecError

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LEAF = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False)
    | TEXT
    | st.binary(max_size=20)
)
PLAIN = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5), max_leaves=30
)
BINDS = st.builds(Bind, namespace=TEXT, name=TEXT, uid=TEXT, node=TEXT, job=TEXT)
EVICTS = st.builds(Evict, namespace=TEXT, name=TEXT, uid=TEXT, node=TEXT, job=TEXT, reason=TEXT, preemptor=TEXT)
MUTATIONS = st.builds(
    Mutation, revision=st.integers(0, 1 << 50), type=TEXT, kind=TEXT, namespace=TEXT, name=TEXT, blob=st.binary()
)


@given(PLAIN)
def test_plain_data_comes_back(data: Any) -> None:
    assert codec.unpack(codec.pack(data)) == data


@given(PLAIN)
def test_what_was_read_is_written_to_the_same_bytes(data: Any) -> None:
    assert codec.repack(data) == codec.pack(data)


@pytest.mark.parametrize("alien", [object(), 1 << 64, [1, {"a": 1j}], "\ud800"])
def test_what_nobody_can_write_is_refused(alien: Any) -> None:
    with pytest.raises(CodecError, match="cannot pack"):
        codec.repack(alien)
    assert codec.repack([1]) == codec.pack([1])


@given(st.lists(BINDS | EVICTS, max_size=5))
def test_messages_that_came_together_come_back_in_order(messages: list[Decision]) -> None:
    assert codec.decoder_of_many(Decision)(codec.encode_many(messages)) == messages


def test_of_messages_that_go_together_the_wrong_one_is_named() -> None:
    right = Evict("n", "p", "u", "node", "j", "r", "by")
    wrong = Bound("c", 1, "n", "p", "u", "\ud800", 1)
    with pytest.raises(CodecError, match="cannot encode Bound"):
        codec.encode_many([right, wrong])


@pytest.mark.parametrize("wrong", [b"", b"\xc1", codec.encode(Bound("c", 1, "n", "p", "u", "node", 1))])
def test_of_messages_that_came_together_the_wrong_one_is_refused_as_if_alone(wrong: bytes) -> None:
    with pytest.raises(CodecError) as alone:
        codec.decode(wrong, Decision)
    right = codec.encode(Evict("n", "p", "u", "node", "j", "r", "by"))
    with pytest.raises(CodecError) as together:
        codec.decoder_of_many(Decision)([right, wrong, right])
    assert str(together.value) == str(alone.value)


@given(BINDS | EVICTS)
def test_a_union_comes_back_as_the_right_class(message: Decision) -> None:
    decoded = codec.decode(codec.encode(message), Decision)
    assert decoded == message
    assert type(decoded) is type(message)


@given(st.binary(max_size=60))
def test_any_bytes_are_data_or_refused(data: bytes) -> None:
    with suppress(CodecError):
        codec.unpack(data)


@given(MUTATIONS, st.data())
def test_a_message_cut_short_is_refused(message: Mutation, data: st.DataObject) -> None:
    encoded = codec.encode(message)
    short = encoded[: data.draw(st.integers(0, len(encoded) - 1))]
    with pytest.raises(CodecError):
        codec.decode(short, Mutation)


@pytest.mark.parametrize("alien", [object(), {1, 2}, 1 << 64, [1, {"a": 1j}], "\ud800"])
def test_what_is_not_plain_is_refused(alien: Any) -> None:
    with pytest.raises(CodecError, match="cannot pack"):
        codec.pack(alien)
    assert codec.unpack(codec.pack([1])) == [1], "a refusal leaves nothing behind"


def test_too_deep_is_refused() -> None:
    nested: list[Any] = []
    for _ in range(2000):
        nested = [nested]
    with pytest.raises(CodecError):
        codec.pack(nested)
    with pytest.raises(CodecError):
        codec.unpack(b"\x91" * 2000 + b"\xc0")


def test_a_refusal_names_the_field() -> None:
    with pytest.raises(CodecError, match=r"\$\.sequence"):
        codec.decode(codec.pack({"_": "Bound", "cause": "1/u", "sequence": "five"}), Outcome)
    with pytest.raises(CodecError, match="Nonsense"):
        codec.decode(codec.pack({"_": "Nonsense"}), Outcome)
    with pytest.raises(CodecError):
        codec.decode(codec.pack([1, 2]), Bound)
    with pytest.raises(CodecError):
        codec.decode(codec.pack({"_": ["Bound"]}), Outcome)


@pytest.mark.parametrize("tag", [["Bind"], {}, None, 7, "Nonsense"])
def test_plain_data_that_names_no_message_is_none(tag: Any) -> None:
    with pytest.raises(CodecError):
        codec.convert({"_": tag, "namespace": "default"}, Decision)


@pytest.mark.parametrize("alien", [None, 7, "Bind", ["Bind"], b"Bind"])
def test_plain_data_that_is_no_dictionary_is_no_message(alien: Any) -> None:
    with pytest.raises(CodecError, match="not a"):
        codec.convert(alien, Decision)


def test_a_field_added_later_reads_as_its_default() -> None:
    class Old(msgspec.Struct, frozen=True, tag="Record", tag_field="_"):
        name: str

    class New(msgspec.Struct, frozen=True, tag="Record", tag_field="_"):
        name: str
        colour: str = "grey"

    assert codec.decode(codec.encode(Old("a")), New) == New("a", "grey")
    assert codec.decode(codec.encode(New("a", "red")), Old) == Old("a")


def test_other_types_are_decoded_too() -> None:
    assert codec.decode(codec.pack({"a": [1, 2]}), dict[str, tuple[int, int]]) == {"a": (1, 2)}
    assert codec.decode(codec.pack(None), int | None) is None


@pytest.mark.parametrize("wrong", [b"", b"\xc1", b"\x92\x01"])
def test_bytes_that_hold_no_value_are_refused_whatever_is_looked_for(wrong: bytes) -> None:
    with pytest.raises(CodecError, match=f"cannot unpack {len(wrong)} bytes"):
        codec.decode(wrong, list[int])


@given(BINDS | EVICTS | MUTATIONS)
def test_a_message_is_the_same_messagepack_as_its_plain_data(message: Bind | Evict | Mutation) -> None:
    plain = msgspec.to_builtins(message, builtin_types=(bytes,))
    assert codec.encode(message) == codec.pack(plain)
    assert codec.unpack(codec.encode(message)) == plain


@pytest.mark.parametrize("deep", [b"\x91" * 60_000 + b"\xc0", b"\x81\xa1a" * 20_000 + b"\xc0", b"\xdd\xff\xff\xff\xff"])
def test_depth_and_sizes_that_bytes_only_claim_are_refused(deep: bytes) -> None:
    with pytest.raises(CodecError):
        codec.unpack(deep)


def test_what_is_nested_too_deep_is_not_written() -> None:
    value: object = None
    for _ in range(5_000):
        value = [value]
    for write in (codec.pack, codec.repack):
        with pytest.raises(CodecError):
            write(value)
