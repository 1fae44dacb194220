"""NoExecute taints take pods off their nodes, unless they are tolerated, and for as long as they are."""

from typing import Any

import pytest

from pumice.cluster.kubelets.machine import NodeAgentsMachine
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster
from tests.kit.nodes import node
from tests.kit.pods import pod

TAINT: Object = {"key": "broken", "value": "yes", "effect": "NoExecute"}
OTHER: Object = {"key": "old", "effect": "NoExecute"}


def exists(key: str = "broken", **more: Any) -> Object:
    return {"key": key, "operator": "Exists", **more}


def running(*tolerations: Object) -> Cluster:
    cluster = Cluster(NodeAgentsMachine())
    cluster.create(node("n1"))
    made = pod("p", duration="0", annotations={"pumice.dev/termination": "1s"})
    made["spec"] |= {"tolerations": list(tolerations)}
    cluster.create(made)
    cluster.bind("p", "n1")
    cluster.settle()
    return cluster


def taint(cluster: Cluster, *taints: Object) -> None:
    cluster.patch("Node", "n1", {"spec": {"taints": list(taints)}}, "")
    cluster.settle()


def goes_after(cluster: Cluster, most_s: int = 200) -> int | None:
    """Seconds until the pod is told to go."""
    for second in range(most_s):
        if not cluster.exists("Pod", "p") or "deletionTimestamp" in cluster.get("Pod", "p")["metadata"]:
            return second
        cluster.advance(1)
    return None


@pytest.mark.parametrize(
    ("tolerations", "taints", "after"),
    [
        ([], [TAINT], 0),
        ([], [{**TAINT, "effect": "NoSchedule"}], None),
        ([exists()], [TAINT], None),
        ([exists(tolerationSeconds=30)], [TAINT], 30),
        ([exists(tolerationSeconds=30), exists("")], [TAINT], 30),  # the shortest of those that are used
        ([exists(tolerationSeconds=0)], [TAINT], 0),
        ([exists(tolerationSeconds=-5)], [TAINT], 0),
        ([exists(effect="NoSchedule")], [TAINT], 0),
        ([{"key": "broken", "value": "yes"}], [TAINT], None),
        ([{"key": "broken", "value": "no"}], [TAINT], 0),
        ([exists(tolerationSeconds=50), exists("old", tolerationSeconds=20)], [TAINT, OTHER], 20),
        ([exists(tolerationSeconds=50)], [TAINT, OTHER], 0),
    ],
)
def test_pod_goes_when_its_tolerations_end(tolerations: list[Object], taints: list[Object], after: int | None) -> None:
    cluster = running(*tolerations)
    taint(cluster, *taints)
    assert goes_after(cluster) == after


def test_reason_is_said() -> None:
    cluster = running()
    taint(cluster, TAINT)
    conditions = cluster.get("Pod", "p")["status"]["conditions"]
    assert ("DisruptionTarget", "DeletionByTaintManager") in {(each["type"], each.get("reason")) for each in conditions}


def test_taint_that_is_taken_away_in_time_takes_nobody() -> None:
    cluster = running(exists(tolerationSeconds=30))
    taint(cluster, TAINT)
    cluster.advance(29)
    taint(cluster)
    assert goes_after(cluster) is None
    assert cluster.timers() == 0


def test_pod_that_comes_to_a_tainted_node_goes() -> None:
    cluster = Cluster(NodeAgentsMachine())
    tainted = node("n1")
    tainted["spec"]["taints"] = [TAINT]
    cluster.create(tainted)
    cluster.create(pod("p", duration="0"))
    cluster.bind("p", "n1")
    cluster.settle()
    assert not cluster.exists("Pod", "p") or "deletionTimestamp" in cluster.get("Pod", "p")["metadata"]


def test_pod_that_has_ended_stays() -> None:
    cluster = Cluster(NodeAgentsMachine())
    cluster.create(node("n1"))
    cluster.create(pod("p", duration="1s"))
    cluster.bind("p", "n1")
    cluster.advance(2)
    taint(cluster, TAINT)
    cluster.advance(2)
    assert cluster.get("Pod", "p")["status"]["phase"] == "Succeeded"
