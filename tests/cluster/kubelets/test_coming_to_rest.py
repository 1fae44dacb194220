"""Whatever happens to pods and nodes, and however their agents see it, nothing is left to be done in the end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.kubelets.machine import NodeAgentsMachine
from pumice.cluster.kubelets.node_reports import ClusterAddresses
from pumice.core.objects.metadata import text_map
from tests.actors.cluster import Cluster
from tests.kit.nodes import node
from tests.kit.pods import pod

NODES, PODS = ("n1", "n2"), ("p", "q")
TAINT = {"key": "broken", "effect": "NoExecute"}
PATIENT = {"key": "broken", "operator": "Exists", "tolerationSeconds": 7}

NAMED = st.sampled_from(PODS)
ON = st.sampled_from(NODES)
STEPS = st.one_of(
    st.tuples(st.just("pod"), NAMED, ON, st.sampled_from(("0", "3s", "")), st.sampled_from((0, 1, 30)), st.booleans()),
    st.tuples(st.just("delete"), NAMED, st.sampled_from((None, 0, 5))),
    st.tuples(st.just("evict"), NAMED),
    st.tuples(st.just("fail"), NAMED),
    st.tuples(st.just("remove"), ON),
    st.tuples(st.just("restore"), ON),
    st.tuples(st.just("taint"), ON, st.booleans()),
    st.tuples(st.just("time"), st.sampled_from((0.0, 0.5, 2.0, 10.0, 40.0))),
    st.tuples(st.just("deaf")),
    st.tuples(st.just("restart")),
)


def happen(cluster: Cluster, what: str, *rest: Any) -> None:
    match what:
        case "pod":
            name, where, duration, grace_s, patient = rest
            made = pod(name, duration=duration or None, grace_s=grace_s, tolerations=[PATIENT] if patient else [])
            if not duration:
                made["spec"]["containers"][0]["command"] = ["sleep", "4"]
                made["spec"]["restartPolicy"] = "Never"
            if not cluster.exists("Pod", name):
                cluster.create(made)
                cluster.bind(name, where)
        case "delete":
            cluster.delete("Pod", rest[0], grace_s=rest[1])
        case "evict":
            cluster.evict(rest[0])
        case "fail":
            cluster.status("Pod", rest[0], {"phase": "Failed"})
        case "remove":
            cluster.delete("Node", rest[0], "")
        case "restore":
            if not cluster.exists("Node", rest[0], ""):
                cluster.create(node(rest[0]))
        case "taint":
            cluster.patch("Node", rest[0], {"spec": {"taints": [TAINT] if rest[1] else None}}, "")
        case "time":
            cluster.advance(rest[0])
        case "deaf":
            cluster.now += 1.0  # what comes next is heard with what came before
        case _:
            cluster.machines[:] = [NodeAgentsMachine(addresses=ClusterAddresses())]


@given(st.lists(STEPS, max_size=25), st.booleans())
def test_agents_have_no_timer_left_when_all_has_happened(steps: list[tuple[Any, ...]], immediate: bool) -> None:
    cluster = Cluster(NodeAgentsMachine(addresses=ClusterAddresses()))
    for name in NODES:
        cluster.create(node(name))
    for what, *rest in steps:
        happen(cluster, what, *rest)
        if not immediate:
            cluster.settle()
    cluster.advance(1000.0)
    assert cluster.timers() == 0
    nodes = {each["metadata"]["name"] for each in cluster.all("Node")}
    for each in cluster.all("Pod"):
        assert "deletionTimestamp" not in each["metadata"]
        assert each["spec"].get("nodeName") in {None, *nodes}, "nobody removes a pod whose node is gone"
        endless = text_map(each["metadata"].get("annotations")).get("pumice.dev/duration") == "0"
        assert each["status"]["phase"] != "Running" or endless


@pytest.mark.parametrize("told", [True, False], ids=["told", "not told"])
def test_a_pod_of_the_same_name_has_nothing_of_the_one_before(told: bool) -> None:
    """A list shows only the one that has the name now: the end of the other was not told."""
    machine = NodeAgentsMachine(addresses=ClusterAddresses())
    cluster = Cluster(machine)
    cluster.create(node("n1"))
    cluster.patch("Node", "n1", {"spec": {"taints": [TAINT]}}, "")
    happen(cluster, "pod", "p", "n1", "0", 0, True)
    cluster.advance(5.0)
    cluster.delete("Pod", "p", grace_s=0)
    if told:
        cluster.settle()
    happen(cluster, "pod", "p", "n1", "0", 0, True)
    second = cluster.get("Pod", "p")
    machine.observe("Pod", second, int(second["metadata"]["resourceVersion"]))
    cluster.advance(3.0)
    assert cluster.exists("Pod", "p"), "it tolerates the taint for seven seconds of its own"
    cluster.advance(5.0)
    assert not cluster.exists("Pod", "p")


def test_a_pod_that_is_removed_leaves_no_timer() -> None:
    cluster = Cluster(NodeAgentsMachine())
    cluster.create(node("n1"))
    happen(cluster, "pod", "p", "n1", "3s", 0, False)
    cluster.settle()
    assert cluster.timers() == 1
    cluster.delete("Pod", "p", grace_s=0)
    cluster.settle()
    assert cluster.timers() == 0
