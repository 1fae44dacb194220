"""Bindings and evictions."""

import pytest

from pumice.core.messages.commands import BindPod, EvictPod, StatusCondition
from pumice.core.messages.replies import Accepted, ApiReply, Refused
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster
from tests.kit.pods import pod


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster()
    found.create(pod("p"))
    return found


def conflict(reply: ApiReply) -> str:
    assert isinstance(reply, Refused), reply
    assert (reply.code, reply.reason) == (409, "Conflict")
    return reply.message


def conditions(cluster: Cluster) -> dict[str, Object]:
    return {each["type"]: each for each in cluster.get("Pod", "p")["status"]["conditions"]}


def test_a_binding_sets_the_node_and_the_condition_and_nothing_else(cluster: Cluster) -> None:
    failed = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "full"}
    other = {"type": "Other", "status": "True"}
    cluster.status("Pod", "p", {"conditions": [other, failed], "nominatedNodeName": "n9"})
    before = cluster.get("Pod", "p")
    cluster.bind("p", "n1")
    after = cluster.get("Pod", "p")
    assert after["spec"] == before["spec"] | {"nodeName": "n1"}
    assert after["status"]["nominatedNodeName"] == "n9"
    assert after["status"]["phase"] == "Pending"
    now = "2023-11-14T22:13:20Z"
    assert after["status"]["conditions"] == [
        other,
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": now},
    ]


def test_the_same_binding_again_changes_nothing(cluster: Cluster) -> None:
    cluster.bind("p", "n1")
    before = cluster.store.revision
    assert isinstance(cluster.bind("p", "n1"), Accepted)
    assert cluster.store.revision == before


def test_another_node_is_a_conflict(cluster: Cluster) -> None:
    cluster.bind("p", "n1")
    assert 'pod p is already assigned to node "n1"' in conflict(cluster.bind("p", "n2"))
    assert cluster.get("Pod", "p")["spec"]["nodeName"] == "n1"


def test_an_absent_pod_is_not_found(cluster: Cluster) -> None:
    reply = cluster.bind("q", "n1")
    assert isinstance(reply, Refused)
    assert (reply.code, reply.message) == (404, 'pods "q" not found')


def test_a_namesake_is_a_conflict(cluster: Cluster) -> None:
    assert "UID in precondition: other" in conflict(cluster.ask(BindPod("default", "p", "other", "n1")))
    uid = cluster.get("Pod", "p")["metadata"]["uid"]
    assert isinstance(cluster.ask(BindPod("default", "p", uid, "n1")), Accepted)


def test_a_gated_or_dying_pod_cannot_be_bound(cluster: Cluster) -> None:
    gated = pod("gated")
    gated["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    cluster.create(gated)
    assert "non-empty .spec.schedulingGates" in conflict(cluster.bind("gated", "n1"))
    cluster.patch("Pod", "p", {"metadata": {"finalizers": ["example.com/hold"]}})
    cluster.delete("Pod", "p")
    assert "is being deleted" in conflict(cluster.bind("p", "n1"))


def test_an_eviction_says_why_and_deletes_gracefully(cluster: Cluster) -> None:
    cluster.bind("p", "n1")
    assert isinstance(cluster.evict("p"), Accepted)
    assert conditions(cluster)["DisruptionTarget"]["reason"] == "PreemptionByScheduler"
    meta = cluster.get("Pod", "p")["metadata"]
    assert meta["deletionGracePeriodSeconds"] == 30


def test_one_whose_conditions_say_so_already_is_left_alone(cluster: Cluster) -> None:
    cluster.bind("p", "n1")
    wanted = (StatusCondition("Ready", "False", "Evict"),)
    cluster.status("Pod", "p", {"conditions": [{"type": "Ready", "status": "False", "reason": "Evict"}]})
    before = cluster.store.revision
    assert isinstance(cluster.ask(EvictPod("default", "p", "", wanted)), Accepted)
    assert cluster.store.revision == before


def test_a_condition_keeps_its_time_while_its_status_stays(cluster: Cluster) -> None:
    cluster.bind("p", "n1")
    cluster.now += 60
    wanted = (StatusCondition("PodScheduled", "True", "Because"),)
    cluster.ask(EvictPod("default", "p", "", wanted))
    assert conditions(cluster)["PodScheduled"]["lastTransitionTime"] == "2023-11-14T22:13:20Z"


def test_evicting_an_absent_pod_or_a_namesake(cluster: Cluster) -> None:
    reply = cluster.evict("q")
    assert isinstance(reply, Refused)
    assert reply.code == 404
    conflict(cluster.ask(EvictPod("default", "p", "other")))
    assert cluster.exists("Pod", "p")
