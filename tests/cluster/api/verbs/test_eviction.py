"""Evictions that respect PodDisruptionBudgets, and how these are counted."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.controllers.disruptions import DisruptionMachine
from pumice.cluster.kube.budgets import is_ready
from pumice.core.messages.commands import RequestEviction
from pumice.core.messages.replies import Accepted, ApiReply, Refused
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster
from tests.kit.budgets import READY, budget
from tests.kit.nodes import node
from tests.kit.pods import pod


def running(cluster: Cluster, name: str, *, ready: bool = True, owner: Object | None = None) -> Object:
    made = pod(name)
    made["metadata"]["labels"] = {"app": "web"}
    if owner is not None:
        meta = owner["metadata"]
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}
        made["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    cluster.create(made)
    cluster.bind(name, "n1")
    cluster.status("Pod", name, READY if ready else {"phase": "Running"})
    return cluster.get("Pod", name)


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster(DisruptionMachine())
    found.create(node("n1"))
    return found


def evict(cluster: Cluster, name: str, **more: Any) -> ApiReply:
    return cluster.ask(RequestEviction("default", name, **more))


def blocked(reply: ApiReply) -> str:
    assert isinstance(reply, Refused), reply
    assert (reply.code, reply.reason) == (429, "TooManyRequests")
    assert reply.message == "Cannot evict pod as it would violate the pod's disruption budget."
    (cause,) = reply.details["causes"]
    assert cause["reason"] == "DisruptionBudget"
    return str(cause["message"])


def test_without_a_budget_a_pod_goes_with_its_grace_and_says_why(cluster: Cluster) -> None:
    running(cluster, "p")
    assert isinstance(evict(cluster, "p"), Accepted)
    found = cluster.get("Pod", "p")
    assert found["metadata"]["deletionGracePeriodSeconds"] == 30
    condition = next(each for each in found["status"]["conditions"] if each["type"] == "DisruptionTarget")
    assert (condition["reason"], condition["message"]) == ("EvictionByEvictionAPI", "Eviction API: evicting")


def test_as_many_go_as_the_budget_allows(cluster: Cluster) -> None:
    for name in ("a", "b", "c"):
        running(cluster, name)
    cluster.create(budget(minAvailable=2))
    assert isinstance(evict(cluster, "a"), Accepted)
    assert blocked(evict(cluster, "b")) == "The disruption budget pdb does not allow evicting pods currently"
    found = cluster.get("PodDisruptionBudget", "pdb")["status"]
    assert found["disruptionsAllowed"] == 0
    assert list(found["disruptedPods"]) == ["a"]
    cluster.settle()
    assert blocked(evict(cluster, "b")) == "The disruption budget pdb needs 2 healthy pods and has 2 currently"
    running(cluster, "d")
    cluster.settle()
    assert isinstance(evict(cluster, "b"), Accepted)


def test_a_dry_run_spends_nothing(cluster: Cluster) -> None:
    for name in ("a", "b"):
        running(cluster, name)
    cluster.create(budget(minAvailable=1))
    before = cluster.store.revision
    assert isinstance(evict(cluster, "a", dry_run=True), Accepted)
    assert cluster.store.revision == before


def test_a_granted_eviction_that_does_not_happen_is_forgotten(cluster: Cluster) -> None:
    for name in ("a", "b"):
        running(cluster, name)
    made = budget(minAvailable=1)
    made["status"] = {"disruptedPods": {"a": "2023-11-14T22:13:20Z", "gone": "2023-11-14T22:13:20Z"}}
    cluster.create(made)
    blocked(evict(cluster, "b"))
    cluster.now += 121
    assert isinstance(evict(cluster, "b"), Accepted)


def test_an_unready_pod_may_go_while_the_others_are_enough(cluster: Cluster) -> None:
    running(cluster, "a")
    running(cluster, "sick", ready=False)
    cluster.create(budget(minAvailable=1))
    assert isinstance(evict(cluster, "sick"), Accepted)
    blocked(evict(cluster, "a"))


@pytest.mark.parametrize(("policy", "goes"), [("AlwaysAllow", True), ("IfHealthyBudget", False)])
def test_or_when_the_budget_says_so(cluster: Cluster, policy: str, goes: bool) -> None:
    running(cluster, "sick", ready=False)
    cluster.create(budget(minAvailable=1, unhealthyPodEvictionPolicy=policy))
    assert isinstance(evict(cluster, "sick"), Accepted if goes else Refused)


def test_a_pod_that_is_pending_ended_or_going_is_not_protected(cluster: Cluster) -> None:
    cluster.create(budget(minAvailable=5))
    waiting = pod("waiting")
    waiting["metadata"]["labels"] = {"app": "web"}
    cluster.create(waiting)
    running(cluster, "done")
    cluster.status("Pod", "done", {"phase": "Succeeded"})
    running(cluster, "going")
    cluster.delete("Pod", "going")
    for name in ("waiting", "done", "going"):
        assert isinstance(evict(cluster, name), Accepted), name


def test_two_budgets_on_one_pod_are_an_error(cluster: Cluster) -> None:
    running(cluster, "a")
    cluster.create(budget("one", minAvailable=0))
    cluster.create(budget("two", minAvailable=0))
    reply = evict(cluster, "a")
    assert isinstance(reply, Refused)
    assert (reply.code, "more than one PodDisruptionBudget" in reply.message) == (500, True)


def test_a_budget_without_selector_covers_nothing_and_an_empty_one_everything(cluster: Cluster) -> None:
    running(cluster, "a")
    nothing = budget("nothing", minAvailable=9)
    del nothing["spec"]["selector"]
    cluster.create(nothing)
    assert isinstance(evict(cluster, "a", dry_run=True), Accepted)
    cluster.create(budget("all", {}, minAvailable=9))
    blocked(evict(cluster, "a"))


def test_a_share_counts_from_the_controllers_scale(cluster: Cluster) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    meta = {"name": "rs", "namespace": "default"}
    spec = {"replicas": 4, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    owner = cluster.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": spec})
    for name in ("a", "b", "c", "d"):
        running(cluster, name, owner=owner)
    cluster.create(budget(maxUnavailable="50%"))
    assert isinstance(evict(cluster, "a"), Accepted)
    assert isinstance(evict(cluster, "b"), Accepted)
    blocked(evict(cluster, "c"))


def test_an_eviction_names_the_pod_by_its_uid(cluster: Cluster) -> None:
    running(cluster, "a")
    reply = evict(cluster, "a", uid="another")
    assert isinstance(reply, Refused)
    assert reply.code == 409
    missing = evict(cluster, "nobody")
    assert isinstance(missing, Refused)
    assert missing.code == 404


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"minAvailable": 1, "maxUnavailable": 1}, "spec"),
        ({"minAvailable": -1}, "spec.minAvailable"),
        ({"maxUnavailable": "half"}, "spec.maxUnavailable"),
        ({"maxUnavailable": "101%"}, "spec.maxUnavailable"),
        ({"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}, "spec.selector"),
    ],
)
def test_a_bad_budget_is_refused(cluster: Cluster, spec: Object, field: str) -> None:
    reply = cluster.refused(budget(**spec))
    assert [cause["field"] for cause in reply.details["causes"]] == [field]


# --- the controller that counts


def counted(cluster: Cluster) -> tuple[int, int, int, int]:
    cluster.settle()
    status = cluster.get("PodDisruptionBudget", "pdb")["status"]
    return status["expectedPods"], status["currentHealthy"], status["desiredHealthy"], status["disruptionsAllowed"]


def test_the_status_follows_the_pods(cluster: Cluster) -> None:
    cluster.create(budget(minAvailable=1))
    assert counted(cluster) == (0, 0, 1, 0)
    running(cluster, "a")
    running(cluster, "b", ready=False)
    assert counted(cluster) == (2, 1, 1, 0)
    cluster.status("Pod", "b", READY)
    assert counted(cluster) == (2, 2, 1, 1)
    cluster.delete("Pod", "a")
    assert counted(cluster) == (2, 1, 1, 0)
    cluster.delete("Pod", "a", grace_s=0)
    cluster.patch("Pod", "b", {"metadata": {"labels": {"app": "other"}}})
    assert counted(cluster) == (0, 0, 1, 0)


def test_the_status_follows_the_budget_and_its_controllers(cluster: Cluster) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    meta = {"name": "rs", "namespace": "default"}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    owner = cluster.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": spec})
    for name in ("a", "b"):
        running(cluster, name, owner=owner)
    cluster.create(budget(maxUnavailable=1))
    assert counted(cluster) == (2, 2, 1, 1)
    cluster.patch("ReplicaSet", "rs", {"spec": {"replicas": 3}})
    assert counted(cluster) == (3, 2, 2, 0)
    cluster.patch("PodDisruptionBudget", "pdb", {"spec": {"maxUnavailable": 2}})
    assert counted(cluster) == (3, 2, 1, 1)
    assert cluster.get("PodDisruptionBudget", "pdb")["status"]["observedGeneration"] == 2


def test_nothing_is_written_while_nothing_changes(cluster: Cluster) -> None:
    cluster.create(budget(minAvailable=1))
    running(cluster, "a")
    cluster.settle()
    before = cluster.store.revision
    cluster.patch("Pod", "a", {"metadata": {"annotations": {"a": "b"}}})
    cluster.settle()
    assert cluster.store.revision == before + 1


def test_a_granted_eviction_counts_until_its_pod_goes_or_does_not(cluster: Cluster) -> None:
    for name in ("a", "b", "c"):
        running(cluster, name)
    made = budget(minAvailable=1)
    made["status"] = {"disruptedPods": {"a": "2023-11-14T22:13:20Z"}}
    cluster.create(made)
    assert counted(cluster) == (3, 2, 1, 1)
    cluster.advance(200)
    assert counted(cluster) == (3, 3, 1, 2)
    assert "disruptedPods" not in cluster.get("PodDisruptionBudget", "pdb")["status"]


@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from(["run", "sick", "evict", "gone", "settle"])), max_size=25
    ),
    st.integers(0, 3),
)
def test_evictions_never_take_more_than_the_budget_lets_go(steps: list[tuple[str, str]], least: int) -> None:
    cluster = Cluster(DisruptionMachine())
    cluster.create(node("n1"))
    cluster.create(budget(minAvailable=least))
    for name, what in steps:
        there = cluster.exists("Pod", name)
        if what in ("run", "sick") and not there:
            running(cluster, name, ready=what == "run")
        elif what == "gone" and there:
            cluster.delete("Pod", name, grace_s=0)
            cluster.settle()  # a budget remembers by name who was let go, until it has seen that he is gone
        elif what == "settle":
            cluster.settle()
        elif what == "evict" and there:
            cluster.settle()
            ready = [pod for pod in cluster.all("Pod") if "deletionTimestamp" not in pod["metadata"] and is_ready(pod)]
            goes = any(pod["metadata"]["name"] == name for pod in ready)
            reply = evict(cluster, name)
            if goes:
                assert isinstance(reply, Accepted if len(ready) > least else Refused)
    cluster.restart(DisruptionMachine())
    cluster.settle()
    left = [pod for pod in cluster.all("Pod") if "deletionTimestamp" not in pod["metadata"] and is_ready(pod)]
    assert counted(cluster)[1] == len(left)
