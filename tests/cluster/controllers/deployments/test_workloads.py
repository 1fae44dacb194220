"""PodGroups for pods nobody gave one, and the pods of Deployments and ReplicaSets."""

from typing import Any

import pytest

from pumice.cluster.controllers.batch.rule import JobRule
from pumice.cluster.controllers.family import FamilyMachine
from pumice.cluster.controllers.groups import PodGroupMachine
from pumice.cluster.kernel.roster import deployment_rules
from pumice.cluster.kubelets.machine import NodeAgentsMachine
from pumice.core.messages.commands import Create
from pumice.core.objects.metadata import Object, text_map
from tests.actors.cluster import Cluster, bind_all
from tests.kit.nodes import node
from tests.kit.pods import pod
from tests.kit.queues import queue


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster(*map(FamilyMachine, deployment_rules()), PodGroupMachine(), NodeAgentsMachine())
    found.create(node("n1"))
    return found


def workload(kind: str = "ReplicaSet", name: str = "w", replicas: int = 3, **template: Any) -> Object:
    labels = {"app": name}
    spec: Object = {
        "schedulerName": "volcano",
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels, **template}, "spec": spec},
        },
    }


def group_of(cluster: Cluster, name: str) -> str | None:
    annotations = text_map(cluster.get("Pod", name)["metadata"].get("annotations"))
    return annotations.get("scheduling.k8s.io/group-name")


# --- PodGroups


def test_a_plain_pod_gets_a_group_of_its_own(cluster: Cluster) -> None:
    uid = cluster.create(pod("p", cpu="2", annotations={"volcano.sh/preemptable": "true"}))["metadata"]["uid"]
    cluster.settle()
    [group] = cluster.all("PodGroup")
    assert group["metadata"]["name"] == group_of(cluster, "p") == f"podgroup-{uid}"
    assert group["metadata"]["ownerReferences"][0]["uid"] == uid
    assert group["metadata"]["annotations"] == {"volcano.sh/preemptable": "true"}
    assert (group["spec"]["minMember"], group["spec"]["queue"]) == (1, "default")
    assert (group["spec"]["minResources"]["cpu"], group["spec"]["minResources"]["memory"]) == ("2", "1Gi")
    assert group["status"]["phase"] == "Pending"


@pytest.mark.parametrize("each", [{"group": "mine"}, {"scheduler": "default-scheduler"}])
def test_others_do_not(cluster: Cluster, each: Object) -> None:
    cluster.create(pod("p", **each))
    cluster.settle()
    assert cluster.all("PodGroup") == []


def test_it_goes_with_its_pod(cluster: Cluster) -> None:
    cluster.create(pod("p"))
    cluster.settle()
    cluster.delete("Pod", "p")
    cluster.settle()
    assert cluster.all("PodGroup") == []


def test_annotations_choose_queue_and_topology(cluster: Cluster) -> None:
    cluster.create(queue("q"))
    annotations = {
        "scheduling.volcano.sh/queue-name": "q",
        "volcano.sh/network-topology-mode": "Soft",
        "volcano.sh/network-topology-highest-tier": "2",
    }
    cluster.create(pod("p", annotations=annotations))
    cluster.settle()
    spec = cluster.all("PodGroup")[0]["spec"]
    assert (spec["queue"], spec["networkTopology"]) == ("q", {"mode": "soft", "highestTierAllowed": 2})


def test_a_pod_whose_queue_is_missing_says_so_until_it_comes(cluster: Cluster) -> None:
    cluster.create(pod("p", annotations={"scheduling.volcano.sh/queue-name": "late"}))
    cluster.settle()
    assert cluster.all("PodGroup") == []
    [condition] = cluster.get("Pod", "p")["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "Unschedulable")
    assert 'queue "late" does not exist' in condition["message"]
    before = cluster.store.revision
    cluster.advance(1000)
    assert cluster.store.revision == before, "and does not say it again and again"
    cluster.create(queue("late"))
    cluster.settle()
    assert cluster.all("PodGroup")[0]["spec"]["queue"] == "late"
    assert group_of(cluster, "p")


def test_a_refused_group_is_on_no_pod_of_its_owner(cluster: Cluster) -> None:
    cluster.create(workload(annotations={"scheduling.volcano.sh/queue-name": "late"}))
    cluster.settle()
    names = [each["metadata"]["name"] for each in cluster.all("Pod")]
    assert [group_of(cluster, name) for name in names] == [None] * 3
    [message] = {each["message"] for name in names for each in cluster.get("Pod", name)["status"]["conditions"]}
    assert 'queue "late" does not exist' in message
    cluster.create(queue("late"))
    cluster.settle()
    assert len({group_of(cluster, name) for name in names} - {None}) == 1


def test_pods_of_one_owner_share_a_group(cluster: Cluster) -> None:
    owner = workload()
    owner["metadata"]["annotations"] = {"scheduling.volcano.sh/group-min-member": "3", "volcano.sh/note": "x", "b": "y"}
    uid = cluster.create(owner)["metadata"]["uid"]
    cluster.settle()
    [group] = cluster.all("PodGroup")
    assert group["metadata"]["name"] == f"podgroup-{uid}"
    assert group["metadata"]["annotations"] == {"volcano.sh/note": "x"}
    assert (group["spec"]["minMember"], group["spec"]["minResources"]["cpu"]) == (3, "3")
    names = [each["metadata"]["name"] for each in cluster.all("Pod")]
    assert len(names) == 3
    assert {group_of(cluster, name) for name in names} == {f"podgroup-{uid}"}


@pytest.mark.parametrize(("said", "least"), [("3", 3), ("+3", 3), ("0", 0), ("-1", 1), ("3000000000", 1), ("many", 1)])
def test_group_of_a_batch_job_has_its_annotations(said: str, least: int) -> None:
    cluster = Cluster(FamilyMachine(JobRule()), PodGroupMachine(), NodeAgentsMachine())
    job = workload("Job")
    job["metadata"]["annotations"] = {"scheduling.volcano.sh/group-min-member": said, "volcano.sh/note": "x"}
    job["apiVersion"] = "batch/v1"
    template = job["spec"]["template"]
    template["spec"]["restartPolicy"] = "Never"
    job["spec"] = {"parallelism": 3, "completions": 3, "template": template}
    uid = cluster.create(job)["metadata"]["uid"]
    cluster.settle()
    [group] = cluster.all("PodGroup")
    assert group["metadata"]["name"] == f"podgroup-{uid}"
    assert (group["metadata"]["annotations"], group["spec"]["minMember"]) == ({"volcano.sh/note": "x"}, least)


def test_scaled_to_nothing_the_group_goes(cluster: Cluster) -> None:
    cluster.create(workload())
    cluster.settle()
    cluster.patch("ReplicaSet", "w", {"spec": {"replicas": 0}})
    cluster.settle()
    assert cluster.all("PodGroup") == []


# --- ReplicaSets and Deployments


def test_a_replica_set_keeps_its_number(cluster: Cluster) -> None:
    cluster.create(workload())
    cluster.settle()
    bind_all(cluster)
    cluster.advance(100)
    assert cluster.get("ReplicaSet", "w")["status"] == {
        "replicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "fullyLabeledReplicas": 3,
        "observedGeneration": 1,
    }
    [first, *_] = cluster.all("Pod")
    cluster.delete("Pod", first["metadata"]["name"])
    cluster.advance(5)
    names = [each["metadata"]["name"] for each in cluster.all("Pod")]
    assert len(names) == 3
    assert first["metadata"]["name"] not in names


def test_it_is_scaled_down_by_who_is_least_missed(cluster: Cluster) -> None:
    cluster.create(workload(replicas=2))
    cluster.settle()
    kept = bind_all(cluster)
    cluster.patch("ReplicaSet", "w", {"spec": {"replicas": 4}})
    cluster.settle()
    cluster.patch("ReplicaSet", "w", {"spec": {"replicas": 2}})
    cluster.settle()
    assert sorted(each["metadata"]["name"] for each in cluster.all("Pod")) == sorted(kept)


def test_an_ended_pod_is_replaced(cluster: Cluster) -> None:
    cluster.create(workload(replicas=1))
    cluster.settle()
    [only] = bind_all(cluster)
    cluster.settle()
    cluster.status("Pod", only, {"phase": "Failed"})
    cluster.settle()
    assert len(cluster.all("Pod")) == 2


def test_refused_pods_are_not_tried_for_ever(cluster: Cluster) -> None:
    broken = workload()
    broken["spec"]["template"]["spec"]["priorityClassName"] = "none"
    cluster.create(broken)
    cluster.advance(1000)
    tries = sum(isinstance(request, Create) and b"schedulerName" in request.blob for request, _ in cluster.requests)
    assert tries <= 3 * 12  # each time after twice as long
    assert cluster.timers() == 0
    [condition] = cluster.get("ReplicaSet", "w")["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("ReplicaFailure", "FailedCreate")


def test_a_deployment_has_a_replica_set(cluster: Cluster) -> None:
    cluster.create(workload("Deployment", replicas=2))
    cluster.settle()
    [found] = cluster.all("ReplicaSet")
    mark = found["metadata"]["labels"]["pod-template-hash"]
    assert found["metadata"]["name"] == f"w-{mark}"
    assert [each["metadata"]["labels"] for each in cluster.all("Pod")] == [{"app": "w", "pod-template-hash": mark}] * 2
    bind_all(cluster)
    cluster.settle()
    status = cluster.get("Deployment", "w")["status"]
    conditions = status.pop("conditions")
    assert status == {
        "observedGeneration": 1,
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
    }
    assert [(one["type"], one["status"], one["reason"]) for one in conditions] == [
        ("Available", "True", "MinimumReplicasAvailable"),
        ("Progressing", "True", "NewReplicaSetAvailable"),
    ]


def test_a_deployment_is_scaled_and_changed(cluster: Cluster) -> None:
    cluster.create(workload("Deployment", replicas=2))
    cluster.settle()
    cluster.patch("Deployment", "w", {"spec": {"replicas": 3}})
    cluster.settle()
    assert [each["spec"]["replicas"] for each in cluster.all("ReplicaSet")] == [3]
    cluster.patch("Deployment", "w", {"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}})
    cluster.advance(5)
    while bind_all(cluster):
        cluster.advance(5)
    assert sorted(each["spec"]["replicas"] for each in cluster.all("ReplicaSet")) == [0, 3]
    assert {each["metadata"]["labels"].get("version") for each in cluster.all("Pod")} == {"2"}


def test_everything_goes_with_the_deployment(cluster: Cluster) -> None:
    cluster.create(workload("Deployment"))
    cluster.settle()
    bind_all(cluster)
    cluster.settle()
    cluster.delete("Deployment", "w")
    cluster.advance(5)
    assert [cluster.all(kind) for kind in ("ReplicaSet", "Pod", "PodGroup")] == [[], [], []]


def test_a_restart_writes_nothing(cluster: Cluster) -> None:
    cluster.create(workload("Deployment"))
    cluster.create(pod("p"))
    cluster.settle()
    before = cluster.store.revision
    cluster.restart(*map(FamilyMachine, deployment_rules()), PodGroupMachine(), NodeAgentsMachine())
    cluster.settle()
    assert cluster.store.revision == before
