"""What is said of pods in Event objects: each thing once, a restart included, and forgotten after an hour."""

from __future__ import annotations

import pytest

from pumice.cluster.controllers.events import KEPT_S, PodEventsMachine
from tests.actors.cluster import Cluster
from tests.kit.nodes import node
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster(PodEventsMachine())
    made.create(node("n1"))
    made.create(pod("p"))
    return made


def said(cluster: Cluster) -> list[tuple[str, str, str]]:
    events = sorted(cluster.all("Event"), key=lambda event: int(event["metadata"]["resourceVersion"]))
    return [(event["type"], event["reason"], event["message"]) for event in events]


def test_a_life_is_told(cluster: Cluster) -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    cluster.status("Pod", "p", {"conditions": [condition]})
    cluster.settle()
    cluster.bind("p", "n1")
    cluster.settle()
    cluster.status("Pod", "p", {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"})
    cluster.settle()
    cluster.delete("Pod", "p")
    cluster.settle()
    assert said(cluster) == [
        ("Warning", "FailedScheduling", "no room"),
        ("Normal", "Scheduled", "Successfully assigned default/p to n1"),
        ("Normal", "Started", "Started container main"),
        ("Normal", "Killing", "Stopping container main"),
    ]
    about = cluster.all("Event")[0]["involvedObject"]
    assert (about["kind"], about["name"], about["uid"]) == ("Pod", "p", cluster.get("Pod", "p")["metadata"]["uid"])


def test_an_eviction_says_why(cluster: Cluster) -> None:
    cluster.bind("p", "n1")
    ready = {"type": "Ready", "status": "False", "reason": "Evict", "message": "Pod is evicted, because of preempt"}
    cluster.status("Pod", "p", {"conditions": [ready]})
    cluster.settle()
    assert ("Warning", "Evict", "Pod is evicted, because of preempt") in said(cluster)


def test_a_pod_group_tells_why_it_waits_that_it_is_ready_and_who_was_evicted(cluster: Cluster) -> None:
    group = pod_group("g")
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    group["metadata"]["ownerReferences"] = [owner]
    cluster.create(group)
    waits = {"type": "Unschedulable", "status": "True", "message": "2/2 tasks in gang unschedulable: no room"}
    cluster.status("PodGroup", "g", {"phase": "Inqueue", "conditions": [waits]})
    cluster.settle()
    ready = {"type": "Scheduled", "status": "True", "reason": "tasks in gang are ready to be scheduled"}
    cluster.status("PodGroup", "g", {"phase": "Running", "conditions": [ready]})
    cluster.create(pod("member", group="g"))
    cluster.bind("member", "n1")
    evicted = {"type": "Ready", "status": "False", "reason": "Evict", "message": "Pod is evicted, because of preempt"}
    cluster.status("Pod", "member", {"conditions": [evicted]})
    cluster.settle()
    events = [each for each in cluster.all("Event") if each["involvedObject"]["kind"] != "Pod"]
    assert {(each["involvedObject"]["name"], each["type"], each["reason"], each["message"]) for each in events} == {
        ("g", "Warning", "Unschedulable", "2/2 tasks in gang unschedulable: no room"),
        ("j", "Warning", "PodGroupPending", f"PodGroup default:j unschedulable, reason: {waits['message']}"),
        ("g", "Normal", "Scheduled", "pod group is ready"),
        ("g", "Normal", "Evict", "preempt"),
    }


def test_containers_that_fail_again_and_again_are_told_of(cluster: Cluster) -> None:
    cluster.bind("p", "n1")
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container=main"}
    cluster.status("Pod", "p", {"containerStatuses": [{"name": "main", "state": {"waiting": waiting}}]})
    cluster.settle()
    uid = cluster.get("Pod", "p")["metadata"]["uid"]
    assert ("Warning", "BackOff", f"Back-off restarting failed container main in pod p_default({uid})") in said(cluster)


def test_kubernetes_own_scheduler_speaks_for_itself() -> None:
    cluster = Cluster(PodEventsMachine())
    cluster.create(node("n1"))
    cluster.create(pod("p", scheduler="default-scheduler"))
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    cluster.status("Pod", "p", {"conditions": [waits]})
    cluster.settle()
    cluster.bind("p", "n1")
    cluster.settle()
    why = "default-scheduler: preempting to accommodate a higher priority pod"
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": why}
    cluster.status("Pod", "p", {"conditions": [target]})
    cluster.settle()
    told = {(event["reason"], event["source"]["component"]) for event in cluster.all("Event")}
    assert told >= {(each, "default-scheduler") for each in ("FailedScheduling", "Scheduled", "Preempted")}
    assert not [each for each in told if each[1] == "volcano"]


def test_nothing_is_said_twice_not_even_after_a_restart(cluster: Cluster) -> None:
    cluster.bind("p", "n1")
    cluster.settle()
    once = said(cluster)
    cluster.status("Pod", "p", {"hostIP": "10.0.0.1"})
    cluster.settle()
    cluster.restart(PodEventsMachine())
    cluster.settle()
    assert said(cluster) == once
    assert len(once) == 1


def test_another_scheduler_speaks_for_itself() -> None:
    cluster = Cluster(PodEventsMachine(scheduler=False))
    cluster.create(node("n1"))
    cluster.create(pod("p"))
    cluster.bind("p", "n1")
    cluster.settle()
    assert said(cluster) == []


def test_events_are_forgotten_after_an_hour(cluster: Cluster) -> None:
    cluster.bind("p", "n1")
    cluster.settle()
    cluster.advance(KEPT_S - 1)
    assert said(cluster)
    cluster.advance(2)
    assert said(cluster) == []


def test_what_is_said_again_is_counted_and_not_by_a_restart(cluster: Cluster) -> None:
    def waits(message: str) -> None:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        cluster.status("Pod", "p", {"conditions": [condition]})
        cluster.settle()

    for message in ("no room", "no node", "no room"):
        cluster.now += 10
        waits(message)
    counts = {each["message"]: each["count"] for each in cluster.all("Event")}
    assert counts == {"no room": 2, "no node": 1}
    [again] = [each for each in cluster.all("Event") if each["count"] == 2]
    assert again["lastTimestamp"] > again["firstTimestamp"]
    cluster.restart(PodEventsMachine())
    cluster.settle()
    assert {each["message"]: each["count"] for each in cluster.all("Event")} == counts


def test_events_are_kept_for_as_long_as_somebody_says() -> None:
    cluster = Cluster(PodEventsMachine(kept_s=20.0))
    cluster.create(node("n1"))
    cluster.create(pod("p"))
    cluster.bind("p", "n1")
    cluster.settle()
    for seconds, left in ((19.0, 1), (2.0, 0)):
        cluster.now += seconds
        cluster.settle()
        assert len(cluster.all("Event")) == left
