"""A node agent refuses pods whose ports of the node are taken, and starts them when they are not."""

from typing import Any

import pytest

from pumice.cluster.kubelets.machine import NodeAgentsMachine
from tests.actors.cluster import Cluster
from tests.kit.nodes import node
from tests.kit.pods import pod


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster(NodeAgentsMachine())
    for name in ("n1", "n2"):
        found.create(node(name))
    return found


def started(cluster: Cluster, name: str, on: str = "n1", duration: str = "90s", **port: Any) -> str:
    made = pod(name, duration=duration)
    made["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80, **port}]
    cluster.create(made)
    cluster.bind(name, on)
    cluster.settle()
    return phase(cluster, name)


def phase(cluster: Cluster, name: str) -> str:
    return str(cluster.get("Pod", name)["status"]["phase"])


def test_a_port_is_one_pods(cluster: Cluster) -> None:
    assert started(cluster, "a") == "Running"
    assert started(cluster, "b") == "Failed"
    refused = cluster.get("Pod", "b")["status"]
    assert (refused["reason"], refused["message"].startswith("Pod was rejected")) == ("NodePorts", True)
    assert started(cluster, "elsewhere", "n2") == "Running"
    assert phase(cluster, "a") == "Running"


def test_addresses_and_protocols_tell_ports_apart(cluster: Cluster) -> None:
    assert started(cluster, "a", hostIP="10.0.0.1") == "Running"
    assert started(cluster, "b", hostIP="10.0.0.2") == "Running"
    assert started(cluster, "udp", protocol="UDP") == "Running"
    assert started(cluster, "every", hostIP="0.0.0.0") == "Failed"
    assert started(cluster, "more", hostPort=81) == "Running"


def test_a_port_is_free_again_when_its_pod_has_ended_or_is_gone(cluster: Cluster) -> None:
    assert started(cluster, "a", duration="10s") == "Running"
    cluster.advance(10)
    assert started(cluster, "b") == "Running"
    cluster.delete("Pod", "b", "default", 0)
    cluster.settle()
    assert started(cluster, "c") == "Running"


def test_a_restart_knows_who_has_it(cluster: Cluster) -> None:
    assert started(cluster, "a") == "Running"
    cluster.restart(NodeAgentsMachine())
    assert started(cluster, "b") == "Failed"
    assert phase(cluster, "a") == "Running"
