"""ReplicationControllers: as many pods as are asked for."""

from __future__ import annotations

from typing import Any

from pumice.cluster.controllers.family import FamilyMachine
from pumice.cluster.controllers.replication import REPLICATION_CONTROLLERS, ReplicationRule
from pumice.cluster.kubelets.machine import NodeAgentsMachine
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster, bind_all
from tests.kit.nodes import node
from tests.kit.pods import pod


def controller(replicas: int = 2, **more: Any) -> Object:
    """One called `r`."""
    run = {
        "schedulerName": "volcano",
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "c", "image": "i"}],
        **more,
    }
    template = {"metadata": {"labels": {"app": "r", "more": "x"}}, "spec": run}
    metadata = {"name": "r", "namespace": "default"}
    spec = {"replicas": replicas, "selector": {"app": "r"}, "template": template}
    return {"apiVersion": "v1", "kind": "ReplicationController", "metadata": metadata, "spec": spec}


def started(owner: Object) -> Cluster:
    cluster = Cluster(FamilyMachine(ReplicationRule(REPLICATION_CONTROLLERS)), NodeAgentsMachine())
    cluster.create(node("n1"))
    cluster.create(owner)
    cluster.settle()
    return cluster


def status(cluster: Cluster) -> Object:
    found: Object = cluster.get("ReplicationController", "r")["status"]
    return {name: value for name, value in found.items() if name != "observedGeneration"}


def test_it_keeps_its_number() -> None:
    cluster = started(controller())
    assert status(cluster) == {"replicas": 2, "fullyLabeledReplicas": 2}
    bind_all(cluster)
    cluster.advance(5)
    assert status(cluster) == dict.fromkeys(
        ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"), 2
    )
    cluster.delete("Pod", cluster.all("Pod")[0]["metadata"]["name"])
    cluster.advance(5)
    assert len(cluster.all("Pod")) == 2
    cluster.patch("ReplicationController", "r", {"spec": {"replicas": 0}})
    cluster.advance(5)
    assert (cluster.all("Pod"), status(cluster)["replicas"]) == ([], 0)


def test_a_pod_with_other_labels_is_let_go() -> None:
    cluster = started(controller(replicas=1))
    [only] = cluster.all("Pod")
    cluster.patch("Pod", only["metadata"]["name"], {"metadata": {"labels": {"app": "other"}}})
    cluster.settle()
    assert len(cluster.all("Pod")) == 2
    assert "ownerReferences" not in cluster.get("Pod", only["metadata"]["name"])["metadata"]


def test_a_pod_of_nobody_is_adopted_if_it_matches() -> None:
    cluster = started(controller(replicas=0))
    for name, label in (("mine", "r"), ("other", "s")):
        cluster.create(pod(name, labels={"app": label}))
    cluster.patch("ReplicationController", "r", {"spec": {"replicas": 2}})
    cluster.settle()
    assert len(cluster.all("Pod", "app=r")) == 2
    assert [each["kind"] for each in cluster.get("Pod", "mine")["metadata"]["ownerReferences"]] == [
        "ReplicationController"
    ]
    assert "ownerReferences" not in cluster.get("Pod", "other")["metadata"]
    cluster.patch("Pod", "other", {"metadata": {"labels": {"app": "r"}}})
    cluster.settle()
    assert len(cluster.all("Pod", "app=r")) == 2, "there is one too many, so one goes"


def test_refused_pods_are_a_condition_until_they_come() -> None:
    cluster = started(controller(priorityClassName="late"))
    [condition] = status(cluster)["conditions"]
    assert (condition["type"], condition["reason"]) == ("ReplicaFailure", "FailedCreate")
    assert "late" in condition["message"]
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "late"}, "value": 1}
    cluster.create(priority)
    cluster.advance(2)
    assert status(cluster) == {"replicas": 2, "fullyLabeledReplicas": 2}


def test_defaults_are_those_of_its_template() -> None:
    plain = controller()
    del plain["spec"]["selector"], plain["spec"]["replicas"]
    made = Cluster().create(plain)
    assert (made["spec"]["replicas"], made["spec"]["selector"]) == (1, {"app": "r", "more": "x"})
    assert made["metadata"]["labels"] == {"app": "r", "more": "x"}


def test_its_selector_selects_its_template() -> None:
    other = controller()
    other["spec"]["selector"] = {"app": "s"}
    refused = Cluster().refused(other)
    assert [cause["field"] for cause in refused.details["causes"]] == ["spec.template.metadata.labels"]
