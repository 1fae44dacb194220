"""The digest of a cycle covers declared fields, whatever classes hold them."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.config.errors import NewerVersionError
from pumice.core.digest import BATCH, COVERED, VERSION, as_encoded, as_row, covered, digest
from pumice.core.messages.decisions import (
    Bind,
    BindContext,
    ClaimedDevices,
    Evict,
    PodCondition,
    PodGroupCondition,
    PodGroupStatus,
    QueueStatus,
)

BIND = Bind("default", "p-0", "u0", "n0", "default/p")
CARRYING = Bind(
    "default", "p-1", "u1", "n1", "default/p", BindContext((("pv", "default/c"),), (), (ClaimedDevices("default/d"),))
)
EVICT = Evict("default", "v", "u2", "n0", "default/v", "room", "default/p-0", "preempt", 0.5)
POD = PodCondition("default", "w", "u3", "Unschedulable", "no nodes", "n1")
GROUP = PodGroupStatus("default", "p", "Running", (PodGroupCondition("Scheduled", "True", "ready", ""),), 2)
QUEUE = QueueStatus("q", {"cpu": "2", "memory": "1Gi"})
VERSIONS = sorted(COVERED)


class LaterBind(Bind, frozen=True, tag="LaterBind"):
    """A bind that has come to say more."""

    reservation: str = "r"


class LaterGroup(PodGroupStatus, frozen=True, tag="LaterGroup"):
    """A status that has come to say more."""

    queued: int = 3


def of(version: int, bind: Bind = BIND, group: PodGroupStatus = GROUP, queue: QueueStatus = QUEUE) -> str:
    return digest([bind, CARRYING], [EVICT], [POD], [group], [queue], version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_field_that_a_class_gains_changes_no_digest(version: int) -> None:
    bind = LaterBind(*(getattr(BIND, name) for name in BIND.__struct_fields__))
    group = LaterGroup(*(getattr(GROUP, name) for name in GROUP.__struct_fields__))
    assert of(version, bind=bind, group=group) == of(version)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("what", [BIND, CARRYING, EVICT, POD, GROUP, QUEUE], ids=lambda what: type(what).__name__)
def test_every_field_there_is_counts(version: int, what: msgspec.Struct) -> None:
    kinds = (Bind, Evict, PodCondition, PodGroupStatus, QueueStatus)

    def alone(one: msgspec.Struct) -> str:
        written: list[Any] = [[one] if isinstance(one, kind) else [] for kind in kinds]
        binds, evicts, pods, groups, queues = written
        return digest(binds, evicts, pods, groups, queues, version)

    seen = {alone(what)}
    others = {str: "other", int: 7, float: 7.0, tuple: ((),), dict: {"other": "1"}}
    for name in what.__struct_fields__:
        value = getattr(what, name)
        if isinstance(value, (tuple, BindContext)) or value is None:
            continue  # what is in those is covered by fields of their own: below
        seen.add(alone(msgspec.structs.replace(what, **{name: others[type(value)]})))
    plain = sum(
        not isinstance(getattr(what, name), (tuple, BindContext, type(None))) for name in what.__struct_fields__
    )
    assert len(seen) == plain + 1


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_bind_carries_counts(version: int) -> None:
    carried = [
        None,
        BindContext(),
        BindContext(volumes=(("pv", "default/c"),)),
        BindContext(provisions=("default/c",)),
        BindContext(devices=(ClaimedDevices("default/d"),)),
        BindContext(devices=(ClaimedDevices("default/d", node="n0"),)),
        BindContext(devices=(ClaimedDevices("default/d", (("r", "driver", "pool", "gpu0"),)),)),
        BindContext(timeout_s=1.0),
    ]
    binds = [msgspec.structs.replace(BIND, pre_bind=each) for each in carried]
    assert len({digest([bind], [], [], [], [], version) for bind in binds}) == len(binds)


def test_annotations_count_from_version_2_on() -> None:
    bare, annotated = (
        msgspec.structs.replace(BIND, pre_bind=BindContext(annotations=each)) for each in ((), (("a", "b"),))
    )
    assert of(1, bind=bare) == of(1, bind=annotated)
    assert of(2, bind=bare) != of(2, bind=annotated)


def test_locks_of_nodes_count_from_version_3_on() -> None:
    bare, locking = (msgspec.structs.replace(BIND, pre_bind=BindContext(locks=each)) for each in ((), (("a", "b"),)))
    assert of(2, bind=bare) == of(2, bind=locking)
    assert of(3, bind=bare) != of(3, bind=locking)


def test_the_newest_version_covers_all_that_there_is() -> None:
    """A field that a class has gained is part of what was decided: it wants a version that lists it."""
    newest = COVERED[VERSION]
    kinds = (Bind, Evict, PodCondition, PodGroupStatus, QueueStatus)
    inner = ((BindContext, newest.bind.inner["pre_bind"]), (PodGroupCondition, newest.pod_group.inner["conditions"]))
    devices = ((ClaimedDevices, newest.bind.inner["pre_bind"].inner["devices"]),)
    for kind, fields in (*zip(kinds, newest, strict=True), *inner, *devices):
        assert set(fields.names) == set(kind.__struct_fields__), kind


def test_version_1_is_the_encoding_of_the_classes_as_they_were() -> None:
    """As msgspec wrote them: tag first, fields in order, `pre_bind` only where there is one."""
    written = (
        '[[{"_":"Bind","namespace":"default","name":"p-0","uid":"u0","node":"n0","job":"default/p"},'
        '{"_":"Bind","namespace":"default","name":"p-1","uid":"u1","node":"n1","job":"default/p","pre_bind":'
        '{"volumes":[["pv","default/c"]],"provisions":[],"devices":[{"claim":"default/d","devices":[],"node":""}],'
        '"timeout_s":600.0}}],'
        '[{"_":"Evict","namespace":"default","name":"v","uid":"u2","node":"n0","job":"default/v","reason":"room",'
        '"preemptor":"default/p-0","action":"preempt","score":0.5}],'
        '[{"_":"PodCondition","namespace":"default","name":"w","uid":"u3","reason":"Unschedulable",'
        '"message":"no nodes","nominated":"n1"}],'
        '[{"_":"PodGroupStatus","namespace":"default","name":"p","phase":"Running","conditions":'
        '[{"type":"Scheduled","status":"True","reason":"ready","message":""}],"running":2,"succeeded":0,"failed":0,'
        '"annotations":{}}],'
        '[{"_":"QueueStatus","name":"q","allocated":{"cpu":"2","memory":"1Gi"}}]]'
    )
    assert of(1) == blake2b(written.encode(), digest_size=16).hexdigest()


@given(st.dictionaries(st.text(max_size=3), st.text(max_size=3), min_size=2))
def test_the_order_of_a_mapping_is_no_part_of_version_2(allocated: dict[str, str]) -> None:
    turned = dict(reversed(allocated.items()))
    assert of(2, queue=QueueStatus("q", allocated)) == of(2, queue=QueueStatus("q", turned))


def test_a_newer_version_is_refused_by_name() -> None:
    with pytest.raises(NewerVersionError, match=f"the digest of a cycle: version {VERSION + 1} is newer"):
        of(VERSION + 1)


def digested(version: int, *written: list[Any]) -> str:
    binds, evicts, conditions, groups, queues = written
    return digest(binds, evicts, conditions, groups, queues, version)


def all_in_one_batch(version: int, *written: list[Any]) -> str:
    """The plain way: everything encoded in one piece."""
    row = as_encoded if version == 1 else as_row
    said = [list(map(row(fields), each)) for fields, each in zip(covered(version), written, strict=True)]
    encoded = msgspec.json.encode(said, order=None if version == 1 else "deterministic")
    return blake2b(encoded, digest_size=16).hexdigest()


def many(count: int) -> tuple[list[Any], ...]:
    """So many records of each kind, all different; every third bind carries something."""
    binds = [msgspec.structs.replace(CARRYING if i % 3 else BIND, uid=f"u{i}") for i in range(count)]
    conditions = [msgspec.structs.replace(POD, uid=f"u{i}") for i in range(count)]
    evicts = [msgspec.structs.replace(EVICT, score=float(i)) for i in range(count)]
    groups = [msgspec.structs.replace(GROUP, running=i) for i in range(count)]
    return binds, evicts, conditions, groups, [msgspec.structs.replace(QUEUE, name=f"q{i}") for i in range(count)]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("count", [0, 1, BATCH - 1, BATCH, BATCH + 1, 2 * BATCH, 2 * BATCH + 1])
def test_records_that_are_encoded_in_pieces_are_digested_as_in_one(version: int, count: int) -> None:
    written = many(count)
    assert digested(version, *written) == all_in_one_batch(version, *written)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", range(5))
def test_every_record_beyond_the_first_piece_counts_in_its_place(version: int, kind: int) -> None:
    written = many(BATCH + 2)
    found = {digested(version, *written)}
    for first, second in ((0, BATCH), (BATCH - 1, BATCH), (BATCH, BATCH + 1)):
        moved = list(written[kind])
        moved[first], moved[second] = moved[second], moved[first]
        found.add(digested(version, *written[:kind], moved, *written[kind + 1 :]))
    found.add(digested(version, *written[:kind], written[kind][:-1], *written[kind + 1 :]))
    assert len(found) == 5
