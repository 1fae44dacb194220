"""Resource claims on a store: devices go back when the last pod has ended."""

from __future__ import annotations

import pytest

from pumice.cluster.controllers.devices import DeviceMachine
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster
from tests.kit.pods import pod
from tests.kit.storage import device_claim, with_devices


def user(made: Object) -> Object:
    return {"resource": "pods", "name": made["metadata"]["name"], "uid": made["metadata"]["uid"]}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(DeviceMachine())


def reserve(cluster: Cluster, *users: Object) -> None:
    allocation = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]}}
    cluster.status("ResourceClaim", "c", {"allocation": allocation, "reservedFor": list(users)})


def test_the_last_pod_gives_the_devices_back(cluster: Cluster) -> None:
    cluster.create(device_claim("c"))
    first, second = (cluster.create(with_devices(pod(name), "c")) for name in ("p1", "p2"))
    reserve(cluster, user(first), user(second))
    cluster.settle()
    assert cluster.get("ResourceClaim", "c")["status"]["reservedFor"] == [user(first), user(second)]
    cluster.status("Pod", "p1", {"phase": "Succeeded"})
    cluster.settle()
    left = cluster.get("ResourceClaim", "c")["status"]
    assert left["reservedFor"] == [user(second)]
    assert "allocation" in left
    cluster.delete("Pod", "p2", grace_s=0)
    cluster.settle()
    assert cluster.get("ResourceClaim", "c")["status"] == {}


def test_a_pod_that_was_never_seen_is_asked_for_before_it_loses_anything(cluster: Cluster) -> None:
    """The claim comes first in this machine's eyes: it must not think the pod gone."""
    cluster.create(device_claim("c"))
    lives = cluster.create(with_devices(pod("p1"), "c"))
    reserve(cluster, user(lives), {"resource": "pods", "name": "ghost", "uid": "u-ghost"})
    machine = cluster.machines[0]
    claim = cluster.get("ResourceClaim", "c")
    machine.observe("ResourceClaim", claim, int(claim["metadata"]["resourceVersion"]))
    for _ in range(3):
        for request in machine.step(cluster.now):
            machine.answered(request, cluster.ask(request), cluster.now)
    assert cluster.get("ResourceClaim", "c")["status"]["reservedFor"] == [user(lives)]


def test_a_namesake_is_another_pod(cluster: Cluster) -> None:
    cluster.create(device_claim("c"))
    old = cluster.create(with_devices(pod("p1"), "c"))
    reserve(cluster, user(old))
    cluster.settle()
    cluster.delete("Pod", "p1", grace_s=0)
    cluster.create(with_devices(pod("p1"), "c"))
    cluster.settle()
    assert cluster.get("ResourceClaim", "c")["status"] == {}
