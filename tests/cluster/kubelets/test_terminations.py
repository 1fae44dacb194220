"""A pod that is deleted or evicted comes to its last phase before it goes, as a kubelet has it."""

from typing import Any

import pytest

from pumice.cluster.kubelets.machine import ORPHAN_S, NodeAgentsMachine
from pumice.core.messages.commands import Delete, UpdateStatus
from pumice.core.objects.metadata import Object
from pumice.storage.codec import unpack
from tests.actors.cluster import Cluster
from tests.kit.nodes import node
from tests.kit.pods import pod

SLEEPER: Object = {"name": "main", "image": "busybox", "command": ["sh", "-c", "sleep 600"]}
SERVER: Object = {"name": "web", "image": "nginx:1.27"}


def bound(cluster: Cluster, *containers: Object, annotations: dict[str, str] | None = None, **spec: Any) -> None:
    made = pod("p", annotations=annotations or {}, duration="0" if not containers else None)
    if containers:
        made["spec"] |= {"containers": list(containers)}
    made["spec"] |= {"restartPolicy": "Never", **spec}
    cluster.create(made)
    cluster.bind("p", "n1")
    cluster.settle()
    cluster.requests.clear()


def last(cluster: Cluster) -> tuple[str, list[int]]:
    """The last phase that was written before the pod went, and the exit codes."""
    written = [request for request, _ in cluster.requests if isinstance(request, UpdateStatus | Delete)]
    assert isinstance(written[-1], Delete), "it was not removed"
    before = written[-2]
    assert isinstance(before, UpdateStatus)
    status: Object = unpack(before.blob)
    codes = [each["state"]["terminated"]["exitCode"] for each in status.get("containerStatuses") or ()]
    return status["phase"], codes


@pytest.mark.parametrize(
    ("containers", "spec", "after", "end"),
    [
        ((SLEEPER,), {"terminationGracePeriodSeconds": 7}, 7, ("Failed", [137])),
        ((SLEEPER,), {}, 30, ("Failed", [137])),
        ((SERVER,), {}, 1, ("Succeeded", [0])),
        ((SERVER, SLEEPER), {}, 30, ("Failed", [0, 137])),
        ((), {"terminationGracePeriodSeconds": 4}, 1, ("Failed", [143])),
        (({**SLEEPER, "command": ["sleep", "12"]},), {}, 12, ("Succeeded", [0])),
        (({**SLEEPER, "command": ["sh", "-c", "sleep 3; exit 5"]},), {}, 3, ("Failed", [5])),
    ],
)
@pytest.mark.parametrize("evicted", [False, True])
def test_pod_that_is_told_to_go_ends_first(
    cluster: Cluster,
    containers: tuple[Object, ...],
    spec: Object,
    after: float,
    end: tuple[str, list[int]],
    evicted: bool,
) -> None:
    bound(cluster, *containers, **spec)
    if evicted:
        cluster.evict("p")
    else:
        cluster.delete("Pod", "p")
    cluster.advance(after - 0.1)
    assert cluster.get("Pod", "p")["status"]["phase"] == "Running"
    cluster.advance(0.1)
    assert not cluster.exists("Pod", "p")
    assert last(cluster) == end
    assert cluster.timers() == 0


@pytest.mark.parametrize(
    ("annotations", "after", "end"),
    [
        ({"pumice.dev/termination": "4s"}, 4, ("Failed", [143])),
        ({"pumice.dev/termination": "4s", "pumice.dev/exit-code": "0"}, 4, ("Succeeded", [0])),
        ({"pumice.dev/termination": "10m"}, 30, ("Failed", [137])),
    ],
)
def test_annotation_says_how_long_it_takes(
    cluster: Cluster, annotations: dict[str, str], after: float, end: tuple[str, list[int]]
) -> None:
    bound(cluster, annotations=annotations)
    cluster.delete("Pod", "p")
    cluster.advance(after - 0.1)
    assert cluster.exists("Pod", "p")
    cluster.advance(0.1)
    assert last(cluster) == end


def test_containers_with_commands_follow_the_annotation(cluster: Cluster) -> None:
    bound(cluster, {**SLEEPER, "name": "b"}, SLEEPER, annotations={"pumice.dev/termination": "3s"})
    cluster.delete("Pod", "p")
    cluster.advance(3)
    assert last(cluster) == ("Failed", [143, 143])


def test_pod_that_never_began_fails_immediately(cluster: Cluster) -> None:
    late = Cluster(NodeAgentsMachine(start_delay_s=10))
    late.create(node("n1"))
    bound(late)
    late.delete("Pod", "p")
    late.settle()
    assert last(late) == ("Failed", [137])


def test_pod_of_a_node_that_has_gone_says_why_it_failed(cluster: Cluster) -> None:
    bound(cluster, SLEEPER)
    cluster.delete("Node", "n1", "")
    cluster.advance(ORPHAN_S)
    assert not cluster.exists("Pod", "p")
    assert last(cluster)[0] == "Failed"
    conditions = next(unpack(each.blob) for each in reversed(cluster.journal) if each.kind == "Pod")["status"][
        "conditions"
    ]
    assert "DeletionByPodGC" in {each.get("reason") for each in conditions}


def test_condition_of_an_eviction_outlives_the_end(cluster: Cluster) -> None:
    bound(cluster, terminationGracePeriodSeconds=2)
    cluster.patch("Pod", "p", {"metadata": {"finalizers": ["x/y"]}})
    cluster.evict("p")
    cluster.advance(2)
    status = cluster.get("Pod", "p")["status"]
    assert status["phase"] == "Failed"
    assert "DisruptionTarget" in {each["type"] for each in status["conditions"]}
