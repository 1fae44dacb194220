"""What the store reads without a copy is read by watchers too: no write may change it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from core.messages.commands import BindPod, EvictPod, StatusCondition
from storage.codec import unpack, unpack_shared
from tests.actors.cluster import Cluster
from tests.kit.pods import pod

BIND = BindPod("default", "p", "", "n1", annotations={"a": "b"})
EVICT = EvictPod("default", "p", "", (StatusCondition("DisruptionTarget", "True"),))
CONDITION = {"type": "Ready", "status": "True"}

WRITES: dict[str, Callable[[Cluster], Any]] = {
    "a status": lambda cluster: cluster.status("Pod", "p", {"conditions": [CONDITION], "phase": "Running"}),
    "a status with nulls": lambda cluster: cluster.status("Pod", "p", {"conditions": [{"a": None}], "phase": None}),
    "a status of a wrong type": lambda cluster: cluster.status("Pod", "p", {"phase": 1}),
    "a binding": lambda cluster: cluster.ask(BIND),
    "an eviction": lambda cluster: cluster.ask(EVICT),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_leaves_alone_what_others_read(write: Callable[[Cluster], Any]) -> None:
    cluster = Cluster()
    cluster.create(pod("p", annotations={"c": "d"}))
    cluster.status("Pod", "p", {"conditions": [{"type": "PodScheduled", "status": "False"}]})
    record = cluster.store.tables.get(("Pod", "default", "p"))
    assert record is not None
    bytes_before = record.blob
    shared = unpack_shared(bytes_before)
    write(cluster)
    assert shared == unpack(bytes_before)
