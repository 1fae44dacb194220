"""Drivers of storage classes are registered on every node, and nowhere twice."""

from __future__ import annotations

from pumice.cluster.controllers.volumes.drivers import DriversMachine
from pumice.core.messages.commands import Delete
from tests.actors.cluster import Cluster
from tests.kit import node
from tests.kit.storage import local_class, storage_class


def registered(cluster: Cluster) -> dict[str, list[str]]:
    cluster.settle()
    found = {each["metadata"]["name"]: each for each in cluster.all("CSINode")}
    return {name: [driver["name"] for driver in each["spec"]["drivers"]] for name, each in sorted(found.items())}


def test_nodes_have_the_drivers_of_all_classes() -> None:
    cluster = Cluster(DriversMachine())
    cluster.create(node("n0"))
    cluster.create(local_class())
    assert registered(cluster) == {}
    cluster.create(storage_class("cloud"))
    assert registered(cluster) == {"n0": ["csi.example.com"]}
    cluster.create(node("n1"))
    cluster.create(storage_class("other", provisioner="a.example.com"))
    both = ["a.example.com", "csi.example.com"]
    assert registered(cluster) == {"n0": both, "n1": both}
    cluster.ask(Delete("StorageClass", "", "cloud"))
    cluster.ask(Delete("Node", "", "n1"))
    assert registered(cluster) == {"n0": ["a.example.com"]}


def test_what_somebody_else_registered_stays() -> None:
    cluster = Cluster(DriversMachine())
    driver = {"name": "theirs.example.com", "nodeID": "n0", "allocatable": {"count": 2}}
    theirs = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n0"}}
    cluster.create({**theirs, "spec": {"drivers": [driver]}})
    cluster.create(node("n0"))
    cluster.create(storage_class("cloud"))
    assert registered(cluster) == {"n0": ["theirs.example.com"]}
    cluster.ask(Delete("Node", "", "n0"))
    assert registered(cluster) == {"n0": ["theirs.example.com"]}


def test_a_machine_that_starts_later_writes_nothing_again() -> None:
    cluster = Cluster(DriversMachine())
    cluster.create(node("n0"))
    cluster.create(storage_class("cloud"))
    assert registered(cluster) == {"n0": ["csi.example.com"]}
    asked = len(cluster.requests)
    cluster.restart(DriversMachine())
    assert registered(cluster) == {"n0": ["csi.example.com"]}
    assert len(cluster.requests) == asked
