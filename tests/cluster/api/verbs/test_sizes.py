"""The size of an object that a client may write: etcd's, owners of fields included."""

from __future__ import annotations

import pytest

from pumice.cluster.api.store import Store
from pumice.cluster.api.verbs.creation import MOST_BYTES
from pumice.core.messages.commands import Delete, Patch, Update
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object
from pumice.storage.codec import pack, unpack

NOW = 1_000.0
KEY = ("ConfigMap", "default", "c")


def config_map(**data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}, "data": data}


def served() -> Store:
    store = Store(served=True)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    assert isinstance(store.create(pack(namespace), NOW), Accepted)
    return store


def is_too_large(reply: object) -> bool:
    return isinstance(reply, Refused) and (reply.code, reply.message) == (413, "etcdserver: request is too large")


def test_a_large_object_is_not_created_and_one_below_is() -> None:
    store = served()
    assert is_too_large(store.create(pack(config_map(x="x" * MOST_BYTES)), NOW))
    assert store.tables.get(KEY) is None
    assert isinstance(store.create(pack(config_map(x="x" * (MOST_BYTES - 4096))), NOW), Accepted)


def test_a_run_from_files_has_no_such_limit() -> None:
    assert isinstance(Store().create(pack(config_map(x="x" * MOST_BYTES)), NOW), Accepted)


@pytest.mark.parametrize("form", ["update", "merge", "json"])
def test_no_change_makes_it_too_large_and_deletes_pass(form: str) -> None:
    store = served()
    half = "x" * (MOST_BYTES * 2 // 3)
    assert isinstance(store.create(pack(config_map(x=half)), NOW), Accepted)
    match form:
        case "update":
            reply = store.apply(Update(pack(config_map(x=half, y=half))), NOW)
        case "merge":
            reply = store.apply(Patch(*KEY, pack({"data": {"y": half}}), form="merge"), NOW)
        case _:
            added = [{"op": "add", "path": "/data/y", "value": half}]
            reply = store.apply(Patch(*KEY, pack(added), form="json"), NOW)
    assert is_too_large(reply)
    record = store.tables.get(KEY)
    assert record is not None
    assert list(unpack(record.blob)["data"]) == ["x"]
    assert isinstance(store.apply(Delete(*KEY), NOW), Accepted)


def test_managers_with_many_fields_meet_the_limit() -> None:
    """Each applies the same thousand fields, so that only the owners grow."""
    store = served()
    fields = {f"{'f' * 200}-{number:04}": "x" for number in range(1_000)}
    replies = list[object]()
    for number in range(20):
        message = Patch(*KEY, pack(config_map(**fields)), form="apply", manager=f"m{number}")
        replies.append(store.apply(message, NOW))
        if is_too_large(replies[-1]):
            break
    assert is_too_large(replies[-1])
    assert 3 < len(replies) < 20
    record = store.tables.get(KEY)
    assert record is not None
    assert len(record.blob) <= MOST_BYTES
