"""What the store reads without a copy, and what it has written, is read by watchers too: no write may change it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pumice.core.messages.commands import BindPod, EvictPod, StatusCondition
from pumice.core.messages.events import Mutation
from pumice.proof.storm.invariants.truth import StormTruth
from pumice.proof.storm.script.workload import Size
from pumice.proof.storm.simulation import simulate
from pumice.proof.storm.stress import StressPlan, script_of
from pumice.storage.codec import unpack
from pumice.storage.shared_objects import SHARED
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
    shared = cluster.store.tables.seen(record)
    write(cluster)
    assert shared == unpack(bytes_before)


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_watchers_read_what_the_bytes_say(write: Callable[[Cluster], Any]) -> None:
    cluster = Cluster()
    cluster.create(pod("p", annotations={"c": "d"}))
    write(cluster)
    cluster.status("Pod", "p", {"conditions": [CONDITION], "reason": "x"})
    written = [mutation.blob for mutation in cluster.journal]
    shared = [repr(cluster.objects.unpack(blob)) for blob in written]
    assert shared == [repr(unpack(blob)) for blob in written], "to the type of every value"


@pytest.mark.parametrize("profile", ["storm", "victims", "claims"])
def test_nobody_in_a_storm_changes_what_is_shared(profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written: dict[bytes, Any] = {}
    see = StormTruth.apply

    def remember(truth: StormTruth, mutation: Mutation) -> Any:
        written[mutation.blob] = truth.read(mutation.blob)
        return see(truth, mutation)

    monkeypatch.setattr(StormTruth, "apply", remember)
    outcome = simulate(script_of(3, StressPlan(profile, size=Size(5, 40))))
    assert not outcome.violations
    assert 100 < len(written) < SHARED
    assert list(map(repr, written.values())) == [repr(unpack(blob)) for blob in written]


def test_only_the_newest_of_an_object_takes_room() -> None:
    cluster = Cluster()
    cluster.create(pod("p"))
    old = cluster.journal[-1].blob
    shared = cluster.objects.unpack(old)
    cluster.status("Pod", "p", {"phase": "Running"})
    assert cluster.objects.unpack(old) is not shared
    assert cluster.objects.unpack(old) == shared, "who is late can still read it"
