"""A test with the official client: the code under test takes any cluster that a kubeconfig names."""

from importlib import import_module
from typing import Any, Final

import pytest

from pumice.testing import ServedCluster

client: Final[Any] = import_module("kubernetes.client")  # it has no types
config: Final[Any] = import_module("kubernetes.config")


def cordon_idle_nodes(core: Any) -> list[str]:
    """Cordon the nodes on which no pod runs; the code under test."""
    busy = {pod.spec.node_name for pod in core.list_pod_for_all_namespaces().items}
    idle = [node.metadata.name for node in core.list_node().items if node.metadata.name not in busy]
    for name in idle:
        core.patch_node(name, {"spec": {"unschedulable": True}})
    return idle


@pytest.fixture
def core(pumice_cluster: ServedCluster) -> Any:
    return client.CoreV1Api(config.new_client_from_config(str(pumice_cluster.kubeconfig)))


POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: main, image: nginx}]}
"""


def test_only_idle_nodes_are_cordoned(pumice_cluster: ServedCluster, core: Any) -> None:
    pumice_cluster.apply(POD)
    pod = pumice_cluster.wait_for("pod", "web", "condition=Ready")
    assert len(cordon_idle_nodes(core)) == 2
    assert not core.read_node(pod["spec"]["nodeName"]).spec.unschedulable


@pytest.mark.pumice_cluster(nodes=5)
def test_all_nodes_of_an_idle_cluster_are_cordoned(pumice_cluster: ServedCluster, core: Any) -> None:
    assert len(cordon_idle_nodes(core)) == 5
    assert all(node["spec"]["unschedulable"] for node in pumice_cluster.list("nodes"))
