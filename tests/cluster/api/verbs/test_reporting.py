"""What the scheduler reports: laid over the newest status, and only there where it is news."""

from typing import Any

from pumice.core.messages.commands import ReportStatus
from pumice.core.messages.decisions import PodCondition, PodGroupCondition, PodGroupStatus, QueueStatus
from pumice.core.messages.replies import Accepted, ApiReply, Refused
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster
from tests.kit.nodes import node
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.queues import queue

BEGAN, LATER = "2023-11-14T22:13:20Z", "2023-11-14T22:13:30Z"


def to_pod(cluster: Cluster, uid: str, message: str = "no room", nominated: str = "", reason: str = "Full") -> ApiReply:
    wanted = PodCondition("default", "p", uid, reason, message, nominated)
    return cluster.ask(ReportStatus("Pod", "default", "p", wanted, 1, cluster.store.revision))


def to_group(cluster: Cluster, *conditions: PodGroupCondition, cycle: int = 1, **wanted: Any) -> ApiReply:
    status = PodGroupStatus("default", "g", "Inqueue", conditions, **wanted)
    return cluster.ask(ReportStatus("PodGroup", "default", "g", status, cycle, cluster.store.revision))


def to_queue(cluster: Cluster, **allocated: str) -> ApiReply:
    return cluster.ask(ReportStatus("Queue", "", "q", QueueStatus("q", allocated), 1, cluster.store.revision))


def changes(cluster: Cluster, *replies: ApiReply) -> int:
    """How many revisions these have made; all must be accepted."""
    assert all(isinstance(reply, Accepted) for reply in replies), replies
    return len([mutation for mutation in cluster.journal if mutation.user == "scheduler"])


def pod_status(cluster: Cluster) -> Object:
    status: Object = cluster.get("Pod", "p")["status"]
    return status


# --- pods


def test_a_condition_comes_beside_the_others(cluster: Cluster) -> None:
    stored = cluster.create(pod("p"))
    cluster.status("Pod", "p", {"conditions": [{"type": "Ready", "status": "False"}], "qosClass": "Burstable"})
    assert changes(cluster, to_pod(cluster, stored["metadata"]["uid"], nominated="n1")) == 1
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Full", "message": "no room"}
    assert pod_status(cluster) == {
        "phase": "Pending",
        "qosClass": "Burstable",
        "nominatedNodeName": "n1",
        "conditions": [{"type": "Ready", "status": "False"}, scheduled | {"lastTransitionTime": BEGAN}],
    }
    after = cluster.get("Pod", "p")
    assert after["spec"] == stored["spec"]
    assert after["metadata"] | {"resourceVersion": ""} == stored["metadata"] | {"resourceVersion": ""}


def test_the_transition_time_moves_with_the_status_alone(cluster: Cluster) -> None:
    uid = cluster.create(pod("p"))["metadata"]["uid"]
    to_pod(cluster, uid)
    cluster.now += 10
    to_pod(cluster, uid, "still no room")
    (condition,) = pod_status(cluster)["conditions"]
    assert (condition["message"], condition["lastTransitionTime"]) == ("still no room", BEGAN)
    cluster.status("Pod", "p", {"conditions": [condition | {"status": "True"}]})
    to_pod(cluster, uid, "still no room")
    (condition,) = pod_status(cluster)["conditions"]
    assert (condition["status"], condition["lastTransitionTime"]) == ("False", LATER)


def test_what_a_pod_says_already_is_not_written_again(cluster: Cluster) -> None:
    uid = cluster.create(pod("p"))["metadata"]["uid"]
    assert changes(cluster, to_pod(cluster, uid, nominated="n1"), to_pod(cluster, uid, nominated="n1")) == 1


def test_a_nomination_alone_leaves_the_conditions_and_none_leaves_the_nomination(cluster: Cluster) -> None:
    uid = cluster.create(pod("p"))["metadata"]["uid"]
    to_pod(cluster, uid, "", "n1", reason="")
    assert "conditions" not in pod_status(cluster)
    assert pod_status(cluster)["nominatedNodeName"] == "n1"
    to_pod(cluster, uid)
    assert pod_status(cluster)["nominatedNodeName"] == "n1"


def test_a_namesake_is_left_alone(cluster: Cluster) -> None:
    cluster.create(pod("p"))
    assert changes(cluster, to_pod(cluster, "another one")) == 0


def test_a_pod_that_is_on_a_node_by_then_is_left_alone(cluster: Cluster) -> None:
    cluster.create(node("n1"))
    uid = cluster.create(pod("p"))["metadata"]["uid"]
    cluster.bind("p", "n1")
    before = pod_status(cluster)
    assert changes(cluster, to_pod(cluster, uid)) == 0
    assert pod_status(cluster) == before


def test_a_pod_that_has_gone_is_not_found(cluster: Cluster) -> None:
    reply = to_pod(cluster, "u")
    assert isinstance(reply, Refused)
    assert reply.code == 404


# --- pod groups

FULL = PodGroupCondition("Unschedulable", "True", "NotEnoughResources", "no room")
READY = PodGroupCondition("Scheduled", "True", "tasks in gang are ready to be scheduled", "")


def test_a_group_gets_the_whole_status_and_keeps_what_others_say(cluster: Cluster) -> None:
    cluster.create(pod_group("g", annotations={"a": "b"}) | {"status": {"phase": "Pending", "more": 1}})
    assert changes(cluster, to_group(cluster, FULL, running=2, succeeded=1, failed=3, annotations={"k": "v"})) == 1
    after = cluster.get("PodGroup", "g")
    said = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "no room"}
    assert after["status"] == {
        "phase": "Inqueue",
        "more": 1,
        "conditions": [said | {"transitionID": "1", "lastTransitionTime": BEGAN}],
        "running": 2,
        "succeeded": 1,
        "failed": 3,
    }
    assert after["metadata"]["annotations"] == {"a": "b", "k": "v"}


def test_a_condition_that_says_what_it_said_keeps_its_time_and_id(cluster: Cluster) -> None:
    cluster.create(pod_group("g"))
    to_group(cluster, FULL)
    cluster.now += 10
    to_group(cluster, FULL, READY, cycle=2)
    full, ready = cluster.get("PodGroup", "g")["status"]["conditions"]
    assert (full["transitionID"], full["lastTransitionTime"]) == ("1", BEGAN)
    assert (ready["transitionID"], ready["lastTransitionTime"]) == ("2", LATER)


def test_what_a_group_says_already_is_not_written_again(cluster: Cluster) -> None:
    cluster.create(pod_group("g"))
    same: dict[str, Any] = {"running": 1, "annotations": {"k": "v"}}
    assert changes(cluster, to_group(cluster, FULL, **same), to_group(cluster, FULL, cycle=2, **same)) == 1


def test_annotations_alone_are_news(cluster: Cluster) -> None:
    cluster.create(pod_group("g"))
    assert changes(cluster, to_group(cluster, FULL), to_group(cluster, FULL, annotations={"k": "v"})) == 2


# --- queues


def test_the_allocated_amounts_are_replaced_and_the_rest_stays(cluster: Cluster) -> None:
    cluster.create(queue("q"))
    cluster.status("Queue", "q", {"allocated": {"cpu": "1", "pods": "1"}, "running": 3})
    assert changes(cluster, to_queue(cluster, cpu="2"), to_queue(cluster, cpu="2")) == 1
    status = cluster.get("Queue", "q", "")["status"]
    assert status["allocated"] == {"cpu": "2"}
    assert status["running"] == 3


# --- concurrency


def test_what_has_changed_since_is_a_conflict(cluster: Cluster) -> None:
    cluster.create(queue("q"))
    known = cluster.store.revision
    assert isinstance(to_queue(cluster, cpu="2"), Accepted)
    late = ReportStatus("Queue", "", "q", QueueStatus("q", {"cpu": "1"}), 1, known)
    reply = cluster.ask(late)
    assert isinstance(reply, Refused)
    assert (reply.code, reply.reason, reply.revision) == (409, "Conflict", cluster.store.revision)
    assert cluster.get("Queue", "q", "")["status"]["allocated"] == {"cpu": "2"}


def test_a_change_elsewhere_is_none(cluster: Cluster) -> None:
    cluster.create(queue("q"))
    known = cluster.store.revision
    cluster.create(queue("other"))
    report = ReportStatus("Queue", "", "q", QueueStatus("q", {"cpu": "1"}), 1, known)
    assert isinstance(cluster.ask(report), Accepted)
