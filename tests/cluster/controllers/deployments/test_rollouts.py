"""Deployments are rolled out step by step, and back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.controllers.deployments import bounds, rolled, scaled
from pumice.cluster.controllers.family import FamilyMachine
from pumice.cluster.kernel.roster import deployment_rules
from pumice.cluster.kubelets.machine import NodeAgentsMachine
from pumice.core.objects.metadata import Object, text_map
from tests.actors.cluster import Cluster, bind_all
from tests.kit.nodes import node

REVISION = "deployment.kubernetes.io/revision"
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster(*map(FamilyMachine, deployment_rules()), NodeAgentsMachine())
    found.create(node("n1", cpu="100"))
    return found


def deployment(replicas: int = 4, **spec: Any) -> Object:
    template = {
        "metadata": {"labels": {"app": "d"}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "v1"}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "default", "annotations": {APPLIED: "{}", "mine": "yes"}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "d"}}, "template": template, **spec},
    }


def image(cluster: Cluster, to: str) -> None:
    cluster.patch("Deployment", "d", {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": to}]}}}})


def live(cluster: Cluster) -> None:
    """Until nothing is left to do; every pod finds a node immediately."""
    for _ in range(30):
        cluster.settle()
        if not bind_all(cluster):
            break
    cluster.advance(2)


def images(cluster: Cluster) -> list[str]:
    return sorted(each["spec"]["containers"][0]["image"] for each in cluster.all("Pod"))


def revisions(cluster: Cluster) -> dict[str, str]:
    sets = cluster.all("ReplicaSet")
    return {
        each["spec"]["template"]["spec"]["containers"][0]["image"]: each["metadata"]["annotations"][REVISION]
        for each in sets
    }


def test_never_too_few_and_never_too_many(cluster: Cluster) -> None:
    cluster.create(deployment(4))
    live(cluster)
    image(cluster, "v2")
    for _ in range(20):
        cluster.settle()
        active = [each for each in cluster.all("Pod") if "deletionTimestamp" not in each["metadata"]]
        ready = [each for each in active if each["status"].get("phase") == "Running"]
        assert len(active) <= 5
        assert len(ready) >= 3
        waiting = [each["metadata"]["name"] for each in active if "nodeName" not in each["spec"]]
        if not waiting:
            break
        cluster.bind(waiting[0], "n1")
    live(cluster)
    assert images(cluster) == ["v2"] * 4


def test_revisions_count_up_and_a_rollback_is_the_newest(cluster: Cluster) -> None:
    cluster.create(deployment(2))
    live(cluster)
    image(cluster, "v2")
    live(cluster)
    assert revisions(cluster) == {"v1": "1", "v2": "2"}
    image(cluster, "v1")
    live(cluster)
    assert (revisions(cluster), images(cluster)) == ({"v1": "3", "v2": "2"}, ["v1", "v1"])
    assert cluster.get("Deployment", "d")["metadata"]["annotations"][REVISION] == "3"
    [first] = [each for each in cluster.all("ReplicaSet") if REVISION + "-history" in each["metadata"]["annotations"]]
    assert first["metadata"]["annotations"][REVISION + "-history"] == "1"


def test_a_template_that_a_client_writes_back_is_the_same(cluster: Cluster) -> None:
    cluster.create(deployment(1))
    live(cluster)
    image(cluster, "v2")
    live(cluster)
    container: Object = {"name": "c", "image": "v1", "resources": {}}  # Go writes empty structs
    cluster.patch("Deployment", "d", {"spec": {"template": {"spec": {"containers": [container]}}}})
    live(cluster)
    assert revisions(cluster) == {"v1": "3", "v2": "2"}


def test_a_replica_set_has_not_what_was_applied_to_its_deployment(cluster: Cluster) -> None:
    cluster.create(deployment(1))
    live(cluster)
    [found] = cluster.all("ReplicaSet")
    annotations = text_map(found["metadata"]["annotations"])
    assert APPLIED not in annotations
    assert annotations["mine"] == "yes"


def test_a_paused_one_is_scaled_but_not_rolled_out(cluster: Cluster) -> None:
    cluster.create(deployment(2))
    live(cluster)
    cluster.patch("Deployment", "d", {"spec": {"paused": True}})
    image(cluster, "v2")
    cluster.patch("Deployment", "d", {"spec": {"replicas": 3}})
    live(cluster)
    assert images(cluster) == ["v1"] * 3
    cluster.patch("Deployment", "d", {"spec": {"paused": False}})
    live(cluster)
    assert images(cluster) == ["v2"] * 3


def test_recreate_has_no_two_templates_at_a_time(cluster: Cluster) -> None:
    cluster.create(deployment(2, strategy={"type": "Recreate"}))
    live(cluster)
    image(cluster, "v2")
    cluster.settle()
    active = [each for each in cluster.all("Pod") if "deletionTimestamp" not in each["metadata"]]
    assert len({each["spec"]["containers"][0]["image"] for each in active}) <= 1
    live(cluster)
    assert images(cluster) == ["v2"] * 2


def test_old_replica_sets_are_kept_up_to_a_limit(cluster: Cluster) -> None:
    cluster.create(deployment(1, revisionHistoryLimit=1))
    for version in ("v1", "v2", "v3", "v4"):
        image(cluster, version)
        live(cluster)
    assert revisions(cluster) == {"v3": "3", "v4": "4"}


def _set(name: str, replicas: int, available: int) -> Object:
    status = {"replicas": replicas, "availableReplicas": min(available, replicas)}
    return {"metadata": {"name": name}, "spec": {"replicas": replicas}, "status": status}


SETS = st.tuples(st.integers(0, 20), st.integers(0, 20))


@given(st.integers(0, 20), SETS, st.lists(SETS, max_size=3), st.sampled_from(["25%", "0%", 0, 1, 3, "100%"]))
def test_a_step_keeps_the_bounds(wanted: int, new: tuple[int, int], old: list[tuple[int, int]], share: Any) -> None:
    rolling = {"maxSurge": share, "maxUnavailable": share}
    given = deployment(wanted, strategy={"type": "RollingUpdate", "rollingUpdate": rolling})
    surge, missing = bounds(given)
    newest, others = _set("new", *new), [_set(f"old-{number}", *each) for number, each in enumerate(old)]
    asked = rolled(given, newest, others)
    before = sum(each["spec"]["replicas"] for each in (newest, *others))
    assert sum(asked.values()) <= max(before, wanted + surge)
    assert min(asked.values()) >= 0
    sets = (*others, newest)
    left = sum(min(asked[each["metadata"]["name"]], each["status"]["availableReplicas"]) for each in sets)
    available = sum(each["status"]["availableReplicas"] for each in sets)
    if asked["new"] >= new[0]:
        assert left >= min(available, wanted - missing)


@given(st.integers(0, 20), SETS, st.lists(SETS, max_size=3))
def test_another_number_is_shared_out(wanted: int, new: tuple[int, int], old: list[tuple[int, int]]) -> None:
    given = deployment(wanted)
    newest, others = _set("new", *new), [_set(f"old-{number}", *each) for number, each in enumerate(old)]
    asked = scaled(given, newest, others)
    assert min(asked.values(), default=0) >= 0
    active = [each for each in (newest, *others) if each["spec"]["replicas"]]
    if len(active) <= 1:
        assert list(asked.values()) == [wanted]


def test_a_replica_set_of_nobody_is_adopted_and_rolled_over(cluster: Cluster) -> None:
    labels = {"app": "d", "pod": "old"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "v0"}]},
    }
    orphan = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "old", "namespace": "default", "labels": labels, "annotations": {REVISION: "7"}},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
    }
    cluster.create(orphan)
    other = {**orphan, "metadata": {"name": "other", "namespace": "default", "labels": {"app": "x"}}}
    cluster.create(other)
    live(cluster)
    cluster.create(deployment(2))
    for _ in range(8):
        live(cluster)
    old = cluster.get("ReplicaSet", "old")
    assert [each["kind"] for each in old["metadata"]["ownerReferences"]] == ["Deployment"]
    assert old["spec"]["replicas"] == 0
    assert "ownerReferences" not in cluster.get("ReplicaSet", "other")["metadata"]
    assert cluster.get("Deployment", "d")["metadata"]["annotations"][REVISION] == "8"


def test_every_step_is_told_on_the_deployment(cluster: Cluster) -> None:
    cluster.create(deployment(replicas=2))
    cluster.settle()
    cluster.patch("Deployment", "d", {"spec": {"replicas": 3}})
    cluster.settle()
    cluster.patch("Deployment", "d", {"spec": {"replicas": 0}})
    cluster.settle()
    [made] = cluster.all("ReplicaSet")
    told = [each for each in cluster.all("Event") if each["involvedObject"]["kind"] == "Deployment"]
    assert {each["reason"] for each in told} == {"ScalingReplicaSet"}
    name = made["metadata"]["name"]
    assert sorted(each["message"] for each in told) == [
        f"Scaled down replica set {name} from 3 to 0",
        f"Scaled up replica set {name} from 0 to 2",
        f"Scaled up replica set {name} from 2 to 3",
    ]
