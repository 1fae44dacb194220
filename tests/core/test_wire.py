"""What files call messages: a class may be renamed, a newer version is refused by name."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

import pumice.core.messages.events as events
from pumice.core.messages import decisions
from pumice.core.messages.commands import WriteStatus
from pumice.core.messages.decisions import Decision
from pumice.core.messages.message import KEY, WIRE, Message, Wire, newer, tag_of
from pumice.storage import codec
from pumice.storage.errors import CodecError, NewerPayloadError
from pumice.storage.journal import RECORDS

JOURNALED: list[type[msgspec.Struct]] = [
    *(each for record in RECORDS.values() for each in get_args(record) or (record,)),
    WriteStatus,
    decisions.PodCondition,
    decisions.PodGroupStatus,
    decisions.QueueStatus,
    decisions.PodGroupEvent,
]
FIRST_TAGS = [
    "Mutation",
    "CycleRecord",
    "Bind",
    "Evict",
    "Bound",
    "BindRefused",
    "BindTimedOut",
    "Evicted",
    "EvictRefused",
    "EvictTimedOut",
    "StatusRefused",
    "ActorStarted",
    "ActorCrashed",
    "ActorStopped",
    "CycleDropped",
    "ConfigLoaded",
    "CheckpointTaken",
    "ShadowCompared",
    "FaultsBegan",
    "FaultStruck",
    "WriteStatus",
    "PodCondition",
    "PodGroupStatus",
    "QueueStatus",
    "PodGroupEvent",
]


def test_the_table_lists_what_goes_into_journals_and_nothing_else() -> None:
    assert set(WIRE) == {each.__name__ for each in JOURNALED}


def test_files_know_them_by_the_names_of_the_first_version() -> None:
    assert [each.__struct_config__.tag for each in JOURNALED] == FIRST_TAGS


def test_a_renamed_class_reads_what_was_written_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WIRE, "Placement", Wire("Bind"))

    tagged = msgspec.defstruct("Placement", [("name", str), ("node", str)], bases=(Message,), frozen=True)
    written: dict[str, Any] = {KEY: "Bind", "namespace": "a", "name": "b", "uid": "c", "node": "d", "job": "e"}
    read = codec.decode(codec.pack(written), tagged)
    assert (read.name, read.node) == ("b", "d")  # type: ignore[attr-defined]
    assert codec.unpack(codec.encode(read))[KEY] == "Bind"


def test_messages_that_are_in_no_file_go_by_their_class() -> None:
    assert tag_of("TakeSnapshot") == "TakeSnapshot"


def test_a_version_is_part_of_the_tag_from_the_second_on() -> None:
    assert (Wire("Bind").tag, Wire("Bind", 2).tag) == ("Bind", "Bind/2")


@pytest.mark.parametrize("kind", [Decision, events.Mutation], ids=["union", "class"])
def test_a_newer_payload_is_refused_by_name(kind: Any) -> None:
    name = "Bind" if kind is Decision else "Mutation"
    with pytest.raises(NewerPayloadError, match=f"{name} has version 2, newer than 1.*upgrade") as refused:
        codec.decode(codec.pack({KEY: f"{name}/2"}), kind)
    assert (refused.value.found, refused.value.known) == (2, 1)


@pytest.mark.parametrize("tag", ["Bind", "Bind/1", "Bind/x", "Nobody/2", 7, None])
def test_anything_else_is_no_newer_version(tag: object) -> None:
    assert newer(tag) is None


def test_what_nobody_ever_wrote_is_just_not_it() -> None:
    with pytest.raises(CodecError, match="not a Mutation") as refused:
        codec.decode(codec.pack({KEY: "Nobody"}), events.Mutation)
    assert not isinstance(refused.value, NewerPayloadError)
