"""Admission of nodes."""

import pytest

from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster, fields
from tests.kit.nodes import node


def test_a_node_is_allocatable_as_a_whole_unless_it_says_otherwise(cluster: Cluster) -> None:
    bare = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": 8}}}
    assert cluster.create(bare)["status"] == {"capacity": {"cpu": "8"}, "allocatable": {"cpu": "8"}}


def test_a_nodes_amounts_and_taints_are_checked(cluster: Cluster) -> None:
    shrunk = node("n") | {"status": {"allocatable": {"cpu": "-4"}}}
    assert fields(cluster.refused(shrunk)) == ["status.allocatable[cpu]"]
    tainted = node("n", taints=[{"key": "a", "effect": "Sometimes"}])
    assert fields(cluster.refused(tainted)) == ["spec.taints[0].effect"]


@pytest.mark.parametrize(
    ("taints", "field"),
    [
        ([{"key": "two words", "effect": "NoSchedule"}], "spec.taints[0].key"),
        ([{"key": "\x1b[31m", "effect": "NoSchedule"}], "spec.taints[0].key"),
        ([{"key": "", "effect": "NoSchedule"}], "spec.taints[0].key"),
        ([{"key": "a", "value": "!", "effect": "NoSchedule"}], "spec.taints[0].value"),
        ([{"key": "a", "effect": "NoSchedule"}, {"key": "a", "value": "b", "effect": "NoSchedule"}], "spec.taints[1]"),
    ],
)
def test_taints_are_labels_each_once(cluster: Cluster, taints: list[Object], field: str) -> None:
    assert fields(cluster.refused(node("n", taints=taints))) == [field]
    both = [{"key": "example.com/a", "value": "b", "effect": effect} for effect in ("NoSchedule", "NoExecute")]
    assert cluster.create(node("n", taints=both))["spec"]["taints"] == both
