"""StatefulSets on a cluster without actors, whose pods become ready by hand."""

from __future__ import annotations

from typing import Any

from pumice.cluster.controllers.family import FamilyMachine
from pumice.cluster.controllers.stateful import StatefulSetRule
from pumice.cluster.kube.statuses import timestamp
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster
from tests.kit.nodes import node

SET = "StatefulSet"


def stateful_set(replicas: int = 3, image: str = "a", **spec: Any) -> Object:
    """One called `w`."""
    pod: Object = {"schedulerName": "volcano", "containers": [{"name": "c", "image": image}]}
    template = {"metadata": {"labels": {"app": "w"}}, "spec": pod}
    selector = {"matchLabels": {"app": "w"}}
    return {
        "apiVersion": "apps/v1",
        "kind": SET,
        "metadata": {"name": "w", "namespace": "default"},
        "spec": {"replicas": replicas, "serviceName": "s", "selector": selector, "template": template, **spec},
    }


def started(owner: Object) -> Cluster:
    """A cluster in which one was made."""
    cluster = Cluster(FamilyMachine(StatefulSetRule()))
    cluster.create(node("n1"))
    cluster.create(owner)
    cluster.settle()
    return cluster


def names(cluster: Cluster) -> list[str]:
    """Of its pods."""
    return [each["metadata"]["name"] for each in cluster.all("Pod")]


def images(cluster: Cluster) -> str:
    """Of its pods, in order."""
    return "".join(each["spec"]["containers"][0]["image"] for each in cluster.all("Pod"))


def run(cluster: Cluster, name: str) -> None:
    """The pod is bound, runs and is ready from now on."""
    pod = cluster.get("Pod", name)
    if not pod["spec"].get("nodeName"):
        cluster.bind(name, "n1")
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": timestamp(cluster.now)}
    cluster.status("Pod", name, {"phase": "Running", "conditions": [ready]})
    cluster.settle()


def run_all(cluster: Cluster, most: int = 30) -> list[str]:
    """Pods become ready, one after the other, as long as there are any that are not; those that go are gone."""
    ran: list[str] = []
    for _ in range(most):
        leaving = [each for each in cluster.all("Pod") if "deletionTimestamp" in each["metadata"]]
        waiting = [each for each in cluster.all("Pod") if each["status"]["phase"] == "Pending"]
        if leaving:
            cluster.delete("Pod", leaving[0]["metadata"]["name"], grace_s=0)
            cluster.settle()
        elif waiting:
            ran.append(waiting[0]["metadata"]["name"])
            run(cluster, ran[-1])
        else:
            return ran
    raise AssertionError(f"it never ends: {ran}")


def change(cluster: Cluster, **spec: Any) -> None:
    """Patch the set."""
    cluster.patch(SET, "w", {"spec": spec})
    cluster.settle()


def image(name: str) -> Object:
    """A patch of its template."""
    return {"spec": {"containers": [{"name": "c", "image": name}]}}


def status(cluster: Cluster, *fields: str) -> tuple[Any, ...]:
    """Of the set."""
    found: Object = cluster.get(SET, "w").get("status") or {}
    return tuple(found.get(field) for field in fields)
