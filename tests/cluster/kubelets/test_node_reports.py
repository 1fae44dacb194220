"""Nodes say where they are and that they are alive; those that another agent keeps are left to it."""

from pumice.cluster.kubelets.machine import NodeAgentsMachine
from pumice.cluster.kubelets.node_reports import HOLDER, ClusterAddresses, NodeReportsMachine, OtherAgents
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster
from tests.kit.nodes import node
from tests.kit.pods import pod


def a_cluster() -> Cluster:
    addresses, others = ClusterAddresses(), OtherAgents()
    agents = NodeAgentsMachine(addresses=addresses, others=others)
    return Cluster(NodeReportsMachine(addresses, others), agents)


def lease(cluster: Cluster, name: str = "n1") -> Object:
    return cluster.get("Lease", name, "kube-node-lease")


def phase(cluster: Cluster, name: str) -> str:
    return str(cluster.get("Pod", name)["status"]["phase"])


def test_a_node_has_an_address_and_versions() -> None:
    cluster = a_cluster()
    cluster.create(node("n1"))
    cluster.settle()
    status = cluster.get("Node", "n1", "")["status"]
    assert {each["type"] for each in status["addresses"]} == {"InternalIP", "Hostname"}
    assert status["nodeInfo"]["kubeletVersion"].startswith("v1.")


def test_its_lease_is_renewed_and_nobody_waits_for_that() -> None:
    cluster = a_cluster()
    cluster.create(node("n1"))
    cluster.settle()
    first = lease(cluster)["spec"]
    assert first["holderIdentity"] == HOLDER
    cluster.advance(30)
    assert lease(cluster)["spec"]["renewTime"] > first["renewTime"]
    assert cluster.timers() == 0
    cluster.delete("Node", "n1", "")
    cluster.settle()
    assert not cluster.exists("Lease", "n1", "kube-node-lease")


def test_kwoks_nodes_are_left_to_it() -> None:
    cluster = a_cluster()
    given = node("n1")
    given["metadata"]["annotations"] = {"kwok.x-k8s.io/node": "fake"}
    cluster.create(given)
    cluster.create(pod("p"))
    cluster.bind("p", "n1")
    cluster.advance(100)
    assert phase(cluster, "p") == "Pending"
    assert not cluster.exists("Lease", "n1", "kube-node-lease")


def test_a_kubelet_that_joins_takes_its_node_over() -> None:
    cluster = a_cluster()
    cluster.create(node("n1"))
    cluster.create(pod("before", duration="60s"))
    cluster.bind("before", "n1")
    cluster.settle()
    assert phase(cluster, "before") == "Running"
    cluster.patch("Lease", "n1", {"spec": {"renewTime": "2030-01-01T00:00:00.000000Z"}}, "kube-node-lease")
    cluster.create(pod("after"))
    cluster.bind("after", "n1")
    cluster.advance(100)
    assert (phase(cluster, "before"), phase(cluster, "after")) == ("Running", "Pending")
    cluster.delete("Lease", "n1", "kube-node-lease")
    cluster.advance(100)
    assert (phase(cluster, "before"), phase(cluster, "after")) == ("Succeeded", "Succeeded")
