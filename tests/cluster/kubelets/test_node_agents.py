"""Node agents: pods start, run, end, and stop; on a clock moved by hand, no actor in sight."""

from typing import Any

import pytest

from pumice.cluster.kubelets.machine import ORPHAN_S, NodeAgentsMachine
from pumice.core.messages.commands import UpdateStatus
from tests.actors.cluster import Cluster
from tests.kit.nodes import node
from tests.kit.pods import pod


def phase(cluster: Cluster, name: str = "p") -> str:
    return str(cluster.get("Pod", name)["status"]["phase"])


def bound(cluster: Cluster, name: str = "p", **each: Any) -> None:
    cluster.create(pod(name, **each))
    cluster.bind(name, "n1")
    cluster.settle()


def test_a_pod_without_a_node_waits(cluster: Cluster) -> None:
    cluster.create(pod("p"))
    cluster.advance(1000)
    assert phase(cluster) == "Pending"
    assert cluster.timers() == 0


def test_a_bound_pod_runs_for_its_duration_and_succeeds(cluster: Cluster) -> None:
    bound(cluster, duration="90s")
    running = cluster.get("Pod", "p")["status"]
    assert (running["phase"], running["startTime"]) == ("Running", "2023-11-14T22:13:20Z")
    assert {each["type"]: each["status"] for each in running["conditions"]} == {"PodScheduled": "True", "Ready": "True"}
    assert running["containerStatuses"][0]["ready"] is True
    cluster.advance(89.9)
    assert phase(cluster) == "Running"
    cluster.advance(0.1)
    ended = cluster.get("Pod", "p")["status"]
    assert ended["phase"] == "Succeeded"
    assert ended["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    assert cluster.timers() == 0


def test_five_seconds_unless_it_says_otherwise(cluster: Cluster) -> None:
    bound(cluster)
    cluster.advance(4.9)
    assert phase(cluster) == "Running"
    cluster.advance(0.1)
    assert phase(cluster) == "Succeeded"


@pytest.mark.parametrize("duration", ["0", "0s"])
def test_zero_never_ends(cluster: Cluster, duration: str) -> None:
    bound(cluster, duration=duration)
    cluster.advance(10**6)
    assert phase(cluster) == "Running"
    assert cluster.timers() == 0


@pytest.mark.parametrize("duration", ["soon", "-5s", "5"])
def test_a_duration_that_makes_no_sense_is_refused_or_when_it_comes_later_the_default(
    cluster: Cluster, duration: str
) -> None:
    (cause,) = cluster.refused(pod("p", duration=duration)).details["causes"]
    assert cause["field"] == "metadata.annotations[pumice.dev/duration]"
    cluster.create(pod("p"))
    cluster.patch("Pod", "p", {"metadata": {"annotations": {"pumice.dev/duration": duration}}})
    cluster.bind("p", "n1")
    cluster.settle()
    cluster.advance(5)
    assert phase(cluster) == "Succeeded"


def test_an_exit_code_fails_it(cluster: Cluster) -> None:
    bound(cluster, annotations={"pumice.dev/exit-code": "137"})
    cluster.advance(5)
    status = cluster.get("Pod", "p")["status"]
    assert status["phase"] == "Failed"
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137


def test_what_a_replica_set_keeps_up_does_not_end_by_itself(cluster: Cluster) -> None:
    kept = pod("p")
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}
    kept["metadata"]["ownerReferences"] = [owner]
    cluster.create(kept)
    cluster.bind("p", "n1")
    cluster.advance(1000)
    assert phase(cluster) == "Running"


def test_a_start_can_take_its_time() -> None:
    cluster = Cluster(NodeAgentsMachine(start_delay_s=3))
    cluster.create(node("n1"))
    bound(cluster)
    assert phase(cluster) == "Pending"
    cluster.advance(3)
    assert phase(cluster) == "Running"
    cluster.advance(5)
    assert phase(cluster) == "Succeeded"


def test_a_deleted_pod_stops_in_its_own_time(cluster: Cluster) -> None:
    bound(cluster, duration="0", annotations={"pumice.dev/termination": "4s"})
    cluster.delete("Pod", "p")
    cluster.advance(3.9)
    assert "deletionTimestamp" in cluster.get("Pod", "p")["metadata"]
    cluster.advance(0.1)
    assert not cluster.exists("Pod", "p")
    assert cluster.timers() == 0


def test_but_never_longer_than_its_grace(cluster: Cluster) -> None:
    bound(cluster, duration="0", annotations={"pumice.dev/termination": "10m"})
    cluster.delete("Pod", "p", grace_s=7)
    cluster.advance(6.9)
    assert cluster.exists("Pod", "p")
    cluster.advance(0.1)
    assert not cluster.exists("Pod", "p")


def test_a_second_delete_can_shorten_it(cluster: Cluster) -> None:
    bound(cluster, duration="0", annotations={"pumice.dev/termination": "10m"})
    cluster.delete("Pod", "p", grace_s=30)
    cluster.advance(5)
    cluster.delete("Pod", "p", grace_s=2)
    cluster.advance(2)
    assert not cluster.exists("Pod", "p")


def test_an_evicted_pod_does_not_succeed_on_its_way_out(cluster: Cluster) -> None:
    bound(cluster, duration="5s", annotations={"pumice.dev/termination": "20s"})
    cluster.evict("p")
    cluster.advance(10)
    assert phase(cluster) == "Running"
    cluster.advance(10)
    assert not cluster.exists("Pod", "p")


def test_a_namesake_is_another_pod(cluster: Cluster) -> None:
    bound(cluster, duration="10s")
    cluster.advance(6)
    cluster.delete("Pod", "p", grace_s=0)
    bound(cluster, duration="10s")
    cluster.advance(6)
    assert phase(cluster) == "Running"
    cluster.advance(4)
    assert phase(cluster) == "Succeeded"


def test_a_pod_on_no_node_is_removed_after_a_while(cluster: Cluster) -> None:
    cluster.create(pod("p"))
    cluster.bind("p", "nowhere")
    cluster.advance(ORPHAN_S - 0.1)
    assert phase(cluster) == "Pending"
    cluster.advance(0.1)
    assert not cluster.exists("Pod", "p")


def test_a_node_that_comes_back_keeps_its_pods(cluster: Cluster) -> None:
    bound(cluster, duration="100s")
    cluster.delete("Node", "n1", "")
    cluster.advance(30)
    cluster.create(node("n1"))
    cluster.advance(30)
    assert phase(cluster) == "Running"
    cluster.advance(40)
    assert phase(cluster) == "Succeeded"


def test_one_that_does_not_loses_them(cluster: Cluster) -> None:
    bound(cluster, duration="0")
    cluster.delete("Node", "n1", "")
    cluster.advance(ORPHAN_S)
    assert not cluster.exists("Pod", "p")


def test_a_restart_goes_on_from_the_start_time(cluster: Cluster) -> None:
    bound(cluster, duration="60s")
    cluster.advance(40)
    cluster.restart(NodeAgentsMachine())
    cluster.advance(19)
    assert phase(cluster) == "Running"
    cluster.advance(1)
    assert phase(cluster) == "Succeeded"


def test_a_restart_in_the_middle_of_a_termination_ends_it(cluster: Cluster) -> None:
    bound(cluster, duration="0", annotations={"pumice.dev/termination": "10s"})
    cluster.delete("Pod", "p")
    cluster.advance(5)
    cluster.restart(NodeAgentsMachine())
    cluster.advance(10)
    assert not cluster.exists("Pod", "p")


def test_many_pods_are_written_in_one_batch(cluster: Cluster) -> None:
    cluster.settle()
    for number in range(100):
        cluster.create(pod(f"p{number}", duration="1s"))
        cluster.bind(f"p{number}", "n1")
    cluster.settle()
    cluster.requests.clear()
    assert cluster.timers() == 100
    cluster.advance(1)
    names = [request.name for request, _ in cluster.requests if isinstance(request, UpdateStatus)]
    assert names == [f"p{number}" for number in range(100)], "in the order in which they started"
    assert cluster.timers() == 0
