"""Pods that are resized in place: what the api lets through, and what their node does about it."""

from typing import Any

import pytest

from pumice.cluster.kubelets.machine import NodeAgentsMachine
from pumice.cluster.kubelets.node_reports import ClusterAddresses
from pumice.core.messages.commands import Patch, Update
from pumice.core.messages.replies import Accepted, ApiReply, Refused
from pumice.core.objects.metadata import Object
from pumice.storage.codec import pack
from tests.actors.cluster import Cluster
from tests.kit.nodes import node
from tests.kit.pods import pod


def agents() -> NodeAgentsMachine:
    return NodeAgentsMachine(default_duration_s=0.0, addresses=ClusterAddresses())


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster(agents())
    found.create(node("n1", cpu="8", memory="16Gi"))
    return found


def bound(cluster: Cluster, name: str = "p", cpu: str = "2", command: Any = None, **container: Any) -> None:
    made = pod(name)
    made["metadata"].pop("annotations", None)
    program = {"command": ["sh", "-c", command]} if command else {}
    resources = {"resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    made["spec"]["containers"] = [{"name": "c", "image": "tool", **program, **resources, **container}]
    cluster.create(made)
    cluster.bind(name, "n1")
    cluster.settle()


def resized(cluster: Cluster, requests: Object, name: str = "p", **more: Any) -> ApiReply:
    patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": requests}, **more}]}}
    reply = cluster.ask(Patch("Pod", "default", name, pack(patch), form="strategic", subresource="resize"))
    cluster.settle()
    return reply


def refused(reply: ApiReply) -> str:
    assert isinstance(reply, Refused)
    return reply.message


def container(cluster: Cluster, name: str = "p") -> Object:
    found: Object = cluster.get("Pod", name)["status"]["containerStatuses"][0]
    return found


def said(cluster: Cluster, name: str = "p") -> dict[str, tuple[str, str]]:
    """Reason and message of the conditions about a resize."""
    conditions = cluster.get("Pod", name)["status"]["conditions"]
    return {
        each["type"]: (each.get("reason", ""), each.get("message", ""))
        for each in conditions
        if each["type"].startswith("PodResize")
    }


@pytest.mark.parametrize("command", [None, "sleep 1000"])
def test_a_resize_that_fits_is_taken_and_carried_out(cluster: Cluster, command: str | None) -> None:
    bound(cluster, command=command)
    assert container(cluster)["allocatedResources"] == {"cpu": "2", "memory": "1Gi"}
    assert isinstance(resized(cluster, {"cpu": "5"}), Accepted)
    whole = cluster.get("Pod", "p")
    assert (whole["metadata"]["generation"], said(cluster)) == (2, {"PodResizeInProgress": ("", "")})
    assert container(cluster)["allocatedResources"]["cpu"] == "5"
    assert container(cluster)["resources"]["requests"]["cpu"] == "2"
    cluster.advance(1)
    after = container(cluster)
    assert (after["resources"]["requests"]["cpu"], said(cluster)) == ("5", {})
    assert (after["restartCount"], after["state"]) == (0, whole["status"]["containerStatuses"][0]["state"])
    assert cluster.timers() == (0 if command is None else 1)


def test_a_resize_above_the_node_is_infeasible(cluster: Cluster) -> None:
    bound(cluster)
    resized(cluster, {"cpu": "9"})
    why = "Node didn't have enough capacity: cpu, requested: 9000, capacity: 8000"
    assert said(cluster) == {"PodResizePending": ("Infeasible", why)}
    assert container(cluster)["allocatedResources"]["cpu"] == "2"
    resized(cluster, {"cpu": "2"})
    assert said(cluster) == {}, "it was withdrawn"


@pytest.mark.parametrize("way", ["delete", "shrink", "withdraw"])
def test_a_deferred_resize_is_tried_again(cluster: Cluster, way: str) -> None:
    bound(cluster)
    bound(cluster, "other", cpu="5")
    resized(cluster, {"cpu": "4"})
    why = "Node didn't have enough resource: cpu, requested: 4000, used: 5000, capacity: 8000"
    assert said(cluster) == {"PodResizePending": ("Deferred", why)}
    if way == "delete":
        cluster.delete("Pod", "other", grace_s=0)
        cluster.settle()
    elif way == "shrink":
        resized(cluster, {"cpu": "1"}, "other")
    else:
        resized(cluster, {"cpu": "2"})
    cluster.advance(1)
    assert said(cluster) == {}
    assert container(cluster)["resources"]["requests"]["cpu"] == ("2" if way == "withdraw" else "4")


def test_the_pod_of_higher_priority_grows_first(cluster: Cluster) -> None:
    cluster.create(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    )
    bound(cluster, "low")
    made = pod("high", priority=9)
    made["spec"] |= {"priorityClassName": "high"}
    made["spec"]["containers"] = [{"name": "c", "image": "tool", "resources": {"requests": {"cpu": "2"}}}]
    cluster.create(made)
    cluster.bind("high", "n1")
    bound(cluster, "third", cpu="4")
    for name in ("low", "high"):
        resized(cluster, {"cpu": "4"}, name)
        assert said(cluster, name)["PodResizePending"][0] == "Deferred"
    resized(cluster, {"cpu": "2"}, "third")
    cluster.advance(1)
    assert container(cluster, "high")["resources"]["requests"]["cpu"] == "4"
    assert said(cluster, "low")["PodResizePending"][0] == "Deferred"


@pytest.mark.parametrize("command", [None, "sleep 1000"])
def test_a_container_that_says_so_is_restarted(cluster: Cluster, command: str | None) -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    bound(cluster, command=command, resizePolicy=policy)
    resized(cluster, {"memory": "2Gi"})
    cluster.advance(1)
    assert container(cluster)["restartCount"] == 0
    resized(cluster, {"cpu": "3"})
    cluster.advance(1)
    assert (container(cluster)["restartCount"], container(cluster)["resources"]["requests"]["cpu"]) == (1, "3")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"resources": {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}}, "QOS"),
        ({"resources": {"requests": {"cpu": "2"}}}, "resource requests cannot be removed"),
        ({"resources": {"requests": {"cpu": "2", "memory": "1Gi", "x.io/y": "1"}}}, "only cpu and memory resources"),
        ({"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}, "only cpu and memory"),
        ({"name": "d"}, "containers may not be renamed or reordered on resize"),
        ({"resources": {"requests": {"cpu": "-1", "memory": "1Gi"}}}, "must be greater than or equal to 0"),
        ({"resources": {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "1"}}}, "cpu limit of 1"),
    ],
)
def test_what_kubernetes_refuses_is_refused(cluster: Cluster, change: Object, why: str) -> None:
    bound(cluster)
    found = cluster.get("Pod", "p")
    found["spec"]["containers"][0] |= change
    assert why in refused(cluster.ask(Update(pack(found), subresource="resize")))
    assert cluster.get("Pod", "p")["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]


def test_all_else_that_a_resize_says_is_passed_over(cluster: Cluster) -> None:
    bound(cluster)
    found = cluster.get("Pod", "p")
    found["spec"]["containers"][0] |= {"image": "other", "resources": {"requests": {"cpu": "3", "memory": "1Gi"}}}
    found["metadata"]["labels"] = {"a": "b"}
    assert isinstance(cluster.ask(Update(pack(found), subresource="resize")), Accepted)
    after = cluster.get("Pod", "p")
    assert (
        after["spec"]["containers"][0]["image"],
        after["spec"]["containers"][0]["resources"]["requests"]["cpu"],
    ) == (
        "tool",
        "3",
    )
    assert "a" not in after["metadata"].get("labels", {})


def test_a_pod_whose_node_does_not_say_what_it_gives_is_not_resized(cluster: Cluster) -> None:
    bound(cluster)
    statuses = [{k: v for k, v in container(cluster).items() if k != "resources"}]
    cluster.status("Pod", "p", {"containerStatuses": statuses})
    assert "Pod running on node without support for resize" in refused(resized(cluster, {"cpu": "3"}))


def test_quotas_and_limit_ranges_are_asked(cluster: Cluster) -> None:
    bound(cluster)
    meta = {"name": "q", "namespace": "default"}
    cluster.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": {"cpu": "3"}}})
    message = refused(resized(cluster, {"cpu": "4"}))
    assert message.endswith("exceeded quota: q, requested: cpu=2, used: cpu=2, limited: cpu=3")
    assert isinstance(resized(cluster, {"cpu": "3"}), Accepted)
    limits = [{"type": "Container", "max": {"memory": "2Gi"}}]
    cluster.create({"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": {"limits": limits}})
    assert "maximum memory usage per Container is 2Gi" in refused(resized(cluster, {"memory": "3Gi"}))


def test_an_agent_that_starts_anew_goes_on_with_a_resize(cluster: Cluster) -> None:
    bound(cluster)
    bound(cluster, "other", cpu="5")
    resized(cluster, {"cpu": "4"})
    resized(cluster, {"cpu": "4"}, "other")
    cluster.restart(agents())
    cluster.settle()
    cluster.advance(1)
    assert said(cluster) == {}
    assert container(cluster)["resources"]["requests"]["cpu"] == "4"
    assert container(cluster, "other")["resources"]["requests"]["cpu"] == "4"
