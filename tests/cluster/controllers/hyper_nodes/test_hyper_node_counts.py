"""The number of members in the status of HyperNodes."""

import pytest

from pumice.cluster.controllers.hyper_nodes import HyperNodeMachine
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster
from tests.kit.nodes import node


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster(HyperNodeMachine())
    for name, rack in (("a0", "r0"), ("a1", "r0"), ("b0", "r1")):
        cluster.create(node(name, labels={"rack": rack}))
    return cluster


def of_members(*selectors: Object, kind: str = "Node") -> Object:
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": "h"},
        "spec": {"tier": 1, "members": [{"type": kind, "selector": selector} for selector in selectors]},
    }


EXACT = [{"exactMatch": {"name": name}} for name in ("a0", "gone", "a0")]
LABELS = {"labelMatch": {"matchLabels": {"rack": "r0"}}}
PATTERN = {"regexMatch": {"pattern": "^a"}}


@pytest.mark.parametrize(
    ("selectors", "count"),
    [
        (EXACT, 2),
        ([LABELS], 2),
        ([PATTERN, {"exactMatch": {"name": "b0"}}], 3),
        ([{"regexMatch": {"pattern": "^c"}}], 0),
        ([PATTERN, LABELS], 2),
    ],
)
def test_hyper_node_members_are_counted_once(cluster: Cluster, selectors: list[Object], count: int) -> None:
    """A name counts whether there is such a node or not."""
    cluster.create(of_members(*selectors))
    cluster.settle()
    assert cluster.get("HyperNode", "h", "").get("status", {}).get("nodeCount", 0) == count


def test_hyper_node_of_hyper_nodes_counts_these(cluster: Cluster) -> None:
    cluster.create(of_members({"exactMatch": {"name": "s0"}}, {"exactMatch": {"name": "s1"}}, kind="HyperNode"))
    cluster.settle()
    assert cluster.get("HyperNode", "h", "")["status"]["nodeCount"] == 2


def test_node_that_comes_later_counts_from_the_next_change(cluster: Cluster) -> None:
    cluster.create(of_members(LABELS))
    cluster.settle()
    cluster.create(node("a2", labels={"rack": "r0"}))
    cluster.delete("Node", "a0", "")
    cluster.delete("Node", "a1", "")
    cluster.settle()
    assert cluster.get("HyperNode", "h", "")["status"]["nodeCount"] == 2
    cluster.patch("HyperNode", "h", {"metadata": {"labels": {"k": "v"}}}, "")
    cluster.settle()
    assert cluster.get("HyperNode", "h", "")["status"]["nodeCount"] == 1
