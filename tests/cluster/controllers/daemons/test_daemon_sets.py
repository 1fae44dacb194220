"""DaemonSets: a pod on every node that is selected, and no more."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.cluster.controllers.daemons import DaemonSetRule
from pumice.cluster.controllers.family import FamilyMachine
from pumice.cluster.kube.statuses import timestamp
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster
from tests.kit.nodes import node

SET = "DaemonSet"


def daemon_set(image: str = "a", pod: Object | None = None, **spec: Any) -> Object:
    """One called `d`."""
    run: Object = {"schedulerName": "volcano", "containers": [{"name": "c", "image": image}], **(pod or {})}
    template = {"metadata": {"labels": {"app": "d"}}, "spec": run}
    whole = {"selector": {"matchLabels": {"app": "d"}}, "template": template, **spec}
    metadata = {"name": "d", "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": SET, "metadata": metadata, "spec": whole}


def started(owner: Object, nodes: int = 3) -> Cluster:
    cluster = Cluster(FamilyMachine(DaemonSetRule()))
    for number in range(nodes):
        cluster.create(node(f"n{number}", labels={"number": str(number)}))
    cluster.create(owner)
    cluster.settle()
    return cluster


def asked_for(pod: Object) -> str:
    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    [field] = terms["nodeSelectorTerms"][0]["matchFields"]
    assert field["key"] == "metadata.name"
    return str(field["values"][0])


def nodes_of(cluster: Cluster) -> list[str]:
    return sorted(asked_for(pod) for pod in cluster.all("Pod"))


def images(cluster: Cluster) -> str:
    pods = sorted(cluster.all("Pod"), key=asked_for)
    return "".join(pod["spec"]["containers"][0]["image"] for pod in pods if "deletionTimestamp" not in pod["metadata"])


def run(cluster: Cluster, *nodes: str) -> None:
    """Pods that wait for these nodes (all) run there and are ready from now on."""
    for pod in cluster.all("Pod"):
        name, where = pod["metadata"]["name"], asked_for(pod)
        if pod["status"]["phase"] == "Pending" and (not nodes or where in nodes):
            cluster.bind(name, where)
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": timestamp(cluster.now)}
            cluster.status("Pod", name, {"phase": "Running", "conditions": [ready]})
    cluster.settle()


def let_go(cluster: Cluster) -> int:
    """Pods on their way out are gone; returns how many there were."""
    leaving = [pod["metadata"]["name"] for pod in cluster.all("Pod") if "deletionTimestamp" in pod["metadata"]]
    for name in leaving:
        cluster.delete("Pod", name, grace_s=0)
    cluster.settle()
    return len(leaving)


def change(cluster: Cluster, **spec: Any) -> None:
    cluster.patch(SET, "d", {"spec": spec})
    cluster.settle()


def image(name: str) -> Object:
    return {"spec": {"containers": [{"name": "c", "image": name}]}}


def status(cluster: Cluster, *fields: str) -> tuple[Any, ...]:
    found: Object = cluster.get(SET, "d").get("status") or {}
    return tuple(found.get(field) for field in fields)


COUNTS = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "numberAvailable", "numberUnavailable")


def test_a_pod_for_every_node() -> None:
    cluster = started(daemon_set())
    assert nodes_of(cluster) == ["n0", "n1", "n2"]
    assert status(cluster, *COUNTS) == (3, 3, 0, None, 3)
    run(cluster)
    assert status(cluster, *COUNTS) == (3, 3, 3, 3, None)
    assert status(cluster, "updatedNumberScheduled", "numberMisscheduled") == (3, 0)
    [revision] = cluster.all("ControllerRevision")
    mark = revision["metadata"]["labels"]["controller-revision-hash"]
    assert [*revision["data"]["spec"]["template"]] == ["$patch", "metadata", "spec"]  # the text is compared by clients
    pod = cluster.all("Pod")[0]
    assert pod["metadata"]["labels"]["controller-revision-hash"] == mark
    keys = {each["key"].removeprefix("node.kubernetes.io/"): each["effect"] for each in pod["spec"]["tolerations"]}
    assert keys["not-ready"] == keys["unreachable"] == "NoExecute"
    assert keys["disk-pressure"] == keys["unschedulable"] == "NoSchedule"


def test_nodes_come_and_go() -> None:
    cluster = started(daemon_set(), nodes=1)
    cluster.create(node("n9"))
    cluster.settle()
    assert nodes_of(cluster) == ["n0", "n9"]
    cluster.delete("Node", "n0", "")
    cluster.settle()
    assert nodes_of(cluster) == ["n9"]


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def affinity(*expressions: Object) -> Object:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}}}}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ({"nodeSelector": {"number": "1"}}, ["n1"]),
        ({"nodeSelector": {"number": "9"}}, []),
        (affinity({"key": "number", "operator": "NotIn", "values": ["1"]}), ["n0", "n2"]),
        (affinity({"key": "number", "operator": "Gt", "values": ["0"]}), ["n1", "n2"]),
        ({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}}, []),
    ],
)
def test_it_may_select_nodes(pod: Object, expected: list[str]) -> None:
    assert nodes_of(started(daemon_set(pod=pod))) == expected


def test_labels_of_nodes_may_change() -> None:
    cluster = started(daemon_set(pod={"nodeSelector": {"number": "1"}}))
    cluster.patch("Node", "n0", {"metadata": {"labels": {"number": "1"}}}, "")
    cluster.patch("Node", "n1", {"metadata": {"labels": {"number": "0"}}}, "")
    cluster.settle()
    assert nodes_of(cluster) == ["n0"]


@pytest.mark.parametrize(("effect", "comes", "stays"), [("NoSchedule", False, True), ("NoExecute", False, False)])
def test_taints_keep_it_away(effect: str, comes: bool, stays: bool) -> None:
    taints = {"spec": {"taints": [{"key": "k", "effect": effect}]}}
    cluster = started(daemon_set(), nodes=1)
    run(cluster)
    cluster.patch("Node", "n0", taints, "")
    cluster.settle()
    let_go(cluster)
    assert bool(nodes_of(cluster)) is stays
    assert status(cluster, "desiredNumberScheduled", "numberMisscheduled") == (0, int(stays))
    other = started(daemon_set(pod={"tolerations": [{"key": "k", "operator": "Exists"}]}), nodes=1)
    other.patch("Node", "n0", taints, "")
    other.settle()
    assert (nodes_of(other), comes) == (["n0"], False)


def test_a_pod_that_has_ended_comes_again() -> None:
    cluster = started(daemon_set(), nodes=1)
    run(cluster)
    cluster.status("Pod", cluster.all("Pod")[0]["metadata"]["name"], {"phase": "Failed"})
    cluster.settle()
    assert [pod["status"]["phase"] for pod in cluster.all("Pod")] == ["Pending"]
    assert "FailedDaemonPod" in {each["reason"] for each in cluster.all("Event")}


# --- other templates


def test_pods_are_replaced_one_by_one() -> None:
    cluster = started(daemon_set())
    run(cluster)
    change(cluster, template=image("b"))
    seen = [images(cluster)]
    for _ in range(3):
        assert let_go(cluster) == 1
        run(cluster)
        seen.append(images(cluster))
    assert [len(each) for each in seen] == [2, 2, 2, 3], "one at a time"
    assert images(cluster) == "bbb"
    assert status(cluster, "updatedNumberScheduled", "numberAvailable") == (3, 3)


@pytest.mark.parametrize(("most", "count"), [(2, 2), ("50%", 2), ("100%", 3)])
def test_or_several_at_a_time(most: object, count: int) -> None:
    cluster = started(daemon_set(updateStrategy={"rollingUpdate": {"maxUnavailable": most}}))
    run(cluster)
    change(cluster, template=image("b"))
    assert let_go(cluster) == count


def test_those_that_do_not_work_go_first() -> None:
    cluster = started(daemon_set())
    run(cluster, "n0", "n1")
    change(cluster, template=image("b"))
    assert images(cluster) == "aab"


def test_new_pods_may_come_beside_the_old_ones() -> None:
    cluster = started(daemon_set(updateStrategy={"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}), nodes=2)
    run(cluster)
    change(cluster, template=image("b"))
    assert nodes_of(cluster) == ["n0", "n0", "n1"]
    for _ in range(3):
        run(cluster)
        let_go(cluster)
    assert images(cluster) == "bb"


def test_pods_may_wait_until_somebody_deletes_them() -> None:
    cluster = started(daemon_set(updateStrategy={"type": "OnDelete"}), nodes=2)
    run(cluster)
    change(cluster, template=image("b"))
    assert (images(cluster), let_go(cluster)) == ("aa", 0)
    cluster.delete("Pod", cluster.all("Pod")[0]["metadata"]["name"], grace_s=0)
    cluster.settle()
    assert sorted(images(cluster)) == ["a", "b"]


def test_a_controller_that_starts_anew_changes_nothing() -> None:
    cluster = started(daemon_set())
    run(cluster)
    before = cluster.store.revision
    cluster.restart(FamilyMachine(DaemonSetRule()))
    cluster.settle()
    assert cluster.store.revision == before


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"updateStrategy": {"type": "Never"}}, "spec.updateStrategy.type"),
        (
            {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}},
            "spec.updateStrategy.rollingUpdate.maxUnavailable",
        ),
        ({"pod": {"restartPolicy": "Never"}}, "spec.template.spec.restartPolicy"),
    ],
)
def test_what_it_must_be_like(spec: Object, field: str) -> None:
    refused = Cluster().refused(daemon_set(**spec))
    assert [cause["field"] for cause in refused.details["causes"]] == [field]


def test_the_selector_is_fixed() -> None:
    cluster = started(daemon_set())
    answer = cluster.patch(SET, "d", {"spec": {"selector": {"matchLabels": {"app": "e"}}}})
    assert isinstance(answer, Refused)
    assert "field is immutable" in answer.message


def test_half_a_rolling_update_beside_another_strategy_is_stored() -> None:
    started(daemon_set(updateStrategy={"type": "OnDelete", "rollingUpdate": {"maxSurge": 0}}), nodes=1)
