"""Nodes that are not well are tainted, and no longer once they are."""

import pytest

from pumice.cluster.controllers.nodes import NodeTaintsMachine
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster
from tests.kit.nodes import node

PREFIX = "node.kubernetes.io/"
OTHER = {"key": "mine", "effect": "NoSchedule"}


def made(conditions: list[Object], *, agents: bool = False, annotations: Object | None = None) -> Cluster:
    cluster = Cluster(NodeTaintsMachine(agents=agents))
    one = node("n")
    one["metadata"]["annotations"] = annotations or {}
    one["status"]["conditions"] = conditions
    cluster.create(one)
    cluster.settle()
    return cluster


def said(**conditions: str) -> list[Object]:
    return [{"type": name, "status": status} for name, status in conditions.items()]


def taints(cluster: Cluster) -> list[str]:
    found: list[Object] = cluster.get("Node", "n", "")["spec"].get("taints") or []
    return [each["key"].removeprefix(PREFIX) for each in found if each["effect"] == "NoSchedule"]


@pytest.mark.parametrize(
    ("conditions", "keys"),
    [
        ({}, ["not-ready"]),
        ({"Ready": "True"}, []),
        ({"Ready": "False"}, ["not-ready"]),
        ({"Ready": "Unknown"}, ["unreachable"]),
        ({"Ready": "True", "MemoryPressure": "True", "DiskPressure": "False"}, ["memory-pressure"]),
        (
            {"Ready": "True", "PIDPressure": "True", "NetworkUnavailable": "True"},
            ["network-unavailable", "pid-pressure"],
        ),
    ],
)
def test_what_is_said_of_a_node_is_its_taint(conditions: dict[str, str], keys: list[str]) -> None:
    assert taints(made(said(**conditions))) == keys


def test_where_agents_are_about_to_say_it_a_new_node_is_not_tainted() -> None:
    assert taints(made([], agents=True)) == []
    assert taints(made([], agents=True, annotations={"kwok.x-k8s.io/node": "fake"})) == ["not-ready"]
    assert taints(made(said(Ready="False"), agents=True)) == ["not-ready"]


def test_once_it_is_ready_the_taint_goes_and_others_stay() -> None:
    cluster = made([])
    own = cluster.get("Node", "n", "")["spec"]["taints"]
    assert own == [{"key": f"{PREFIX}not-ready", "effect": "NoSchedule", "timeAdded": "2023-11-14T22:13:20Z"}]
    cluster.patch("Node", "n", {"spec": {"taints": [*own, OTHER]}}, "")
    cluster.status("Node", "n", {"conditions": said(Ready="True")}, "")
    cluster.settle()
    assert taints(cluster) == ["mine"]


def test_a_cordoned_node_is_tainted_as_long_as_it_is() -> None:
    cluster = made(said(Ready="True"))
    cluster.patch("Node", "n", {"spec": {"unschedulable": True}}, "")
    cluster.settle()
    assert taints(cluster) == ["unschedulable"]
    cluster.patch("Node", "n", {"spec": {"unschedulable": None}}, "")
    cluster.settle()
    assert cluster.get("Node", "n", "")["spec"].get("taints") is None


def test_what_is_not_to_keep_pods_off_is_left_alone() -> None:
    cluster = made(said(Ready="True"))
    evicting = {"key": f"{PREFIX}memory-pressure", "effect": "NoExecute"}
    cluster.patch("Node", "n", {"spec": {"taints": [evicting]}}, "")
    cluster.settle()
    assert cluster.get("Node", "n", "")["spec"]["taints"] == [evicting]


@pytest.mark.parametrize(("ready", "key"), [("False", "not-ready"), ("Unknown", "unreachable"), ("True", "")])
def test_node_that_is_down_is_tainted_to_evict(ready: str, key: str) -> None:
    found: list[Object] = made(said(Ready=ready)).get("Node", "n", "")["spec"].get("taints") or []
    evicting = [each["key"] for each in found if each["effect"] == "NoExecute"]
    assert evicting == ([PREFIX + key] if key else [])


def test_node_that_is_ready_again_evicts_no_more() -> None:
    cluster = made(said(Ready="Unknown"))
    cluster.status("Node", "n", {"conditions": said(Ready="True")}, "")
    cluster.settle()
    assert not cluster.get("Node", "n", "")["spec"].get("taints")
