"""Namespaces: how they begin, what they take, and how they go with all that is in them."""

import pytest

from pumice.cluster.api.admission.namespaces import new_namespace
from pumice.cluster.api.store import Store
from pumice.core.messages.commands import Create, Delete, Update
from pumice.core.messages.replies import Accepted, Refused
from pumice.storage.codec import pack, unpack
from tests.actors.cluster import START, Cluster
from tests.kit.nodes import node
from tests.kit.pods import pod


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster()
    found.create(new_namespace("team"))
    return found


def test_a_new_one_is_active_and_labelled(cluster: Cluster) -> None:
    found = cluster.get("Namespace", "team", "")
    assert found["status"] == {"phase": "Active"}
    assert found["spec"] == {"finalizers": ["kubernetes"]}
    assert found["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}


def test_an_empty_one_goes_immediately(cluster: Cluster) -> None:
    assert isinstance(cluster.delete("Namespace", "team", ""), Accepted)
    assert not cluster.exists("Namespace", "team", "")


def test_its_objects_go_with_it(cluster: Cluster) -> None:
    for name in ("a", "b"):
        cluster.create(pod(name, namespace="team"))
    cluster.create(pod("elsewhere"))
    cluster.delete("Namespace", "team", "")
    assert not cluster.exists("Namespace", "team", "")
    assert [found["metadata"]["name"] for found in cluster.all("Pod")] == ["elsewhere"]


def test_it_waits_for_what_ends_gracefully(cluster: Cluster) -> None:
    cluster.create(node("n1"))
    cluster.create(pod("p", namespace="team"))
    cluster.bind("p", "n1", "team")
    reply = cluster.delete("Namespace", "team", "")
    assert isinstance(reply, Accepted)
    assert unpack(reply.blob)["status"]["phase"] == "Terminating"
    assert "deletionTimestamp" in cluster.get("Pod", "p", "team")["metadata"]
    cluster.delete("Pod", "p", "team", 0)
    assert not cluster.exists("Pod", "p", "team")
    assert not cluster.exists("Namespace", "team", "")


def test_one_that_waits_says_for_what_and_lets_its_pods_end_first(cluster: Cluster) -> None:
    held = pod("p", namespace="team")
    held["metadata"]["finalizers"] = ["example.com/wait"]
    cluster.create(held)
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "team"}}
    cluster.create(settings)
    cluster.delete("Namespace", "team", "")
    assert "deletionTimestamp" not in cluster.get("ConfigMap", "c", "team")["metadata"]
    told = {each["type"]: each for each in cluster.get("Namespace", "team", "")["status"]["conditions"]}
    assert told["NamespaceDeletionContentFailure"]["status"] == "False"
    remaining = told["NamespaceContentRemaining"]
    assert (remaining["status"], remaining["message"]) == (
        "True",
        "Some resources are remaining: configmaps. has 1 resource instances, pods. has 1 resource instances",
    )
    assert told["NamespaceFinalizersRemaining"]["message"].endswith("example.com/wait in 1 resource instances")
    cluster.patch("Pod", "p", {"metadata": {"finalizers": []}}, "team")
    assert not cluster.exists("ConfigMap", "c", "team")
    assert not cluster.exists("Namespace", "team", "")


def test_pods_that_end_by_themselves_keep_nothing_else(cluster: Cluster) -> None:
    cluster.create(node("n1"))
    for name in ("a", "b"):
        cluster.create(pod(name, namespace="team"))
        cluster.bind(name, "n1", "team")
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "team"}})
    cluster.delete("Namespace", "team", "")
    assert not cluster.exists("ConfigMap", "c", "team")
    cluster.delete("Pod", "a", "team", 0)
    assert cluster.exists("Namespace", "team", "")
    cluster.delete("Pod", "b", "team", 0)
    assert not cluster.exists("Namespace", "team", "")


def test_after_a_restart_the_rest_still_goes_with_the_last_kept_pod(cluster: Cluster) -> None:
    held = pod("p", namespace="team")
    held["metadata"]["finalizers"] = ["example.com/wait"]
    cluster.create(held)
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "team"}})
    cluster.delete("Namespace", "team", "")
    cluster.restart()
    cluster.patch("Pod", "p", {"metadata": {"finalizers": []}}, "team")
    assert not cluster.exists("Namespace", "team", "")


def test_a_finalizer_in_the_spec_is_written_apart_and_waited_for(cluster: Cluster) -> None:
    namespace = cluster.get("Namespace", "team", "")
    namespace["spec"]["finalizers"] = ["kubernetes", "example.com/wait"]
    namespace["metadata"]["labels"]["more"] = "no"
    plain = cluster.ask(Update(pack(namespace), dry_run=True))
    assert isinstance(plain, Accepted)
    assert unpack(plain.blob)["spec"]["finalizers"] == ["kubernetes"]
    assert isinstance(cluster.ask(Update(pack(namespace), subresource="finalize")), Accepted)
    found = cluster.get("Namespace", "team", "")
    assert found["spec"]["finalizers"] == ["kubernetes", "example.com/wait"]
    assert "more" not in found["metadata"]["labels"]
    cluster.delete("Namespace", "team", "")
    waiting = cluster.get("Namespace", "team", "")
    assert waiting["status"]["phase"] == "Terminating"
    waiting["spec"]["finalizers"] = []
    cluster.ask(Update(pack(waiting), subresource="finalize"))
    assert not cluster.exists("Namespace", "team", "")


def test_nothing_new_comes_into_one_that_goes(cluster: Cluster) -> None:
    held = pod("p", namespace="team")
    held["metadata"]["finalizers"] = ["example.com/wait"]
    cluster.create(held)
    cluster.delete("Namespace", "team", "")
    reply = cluster.refused(pod("late", namespace="team"))
    assert (reply.code, reply.reason) == (403, "Forbidden")
    assert reply.message == (
        'pods "late" is forbidden: unable to create new content in namespace team because it is being terminated'
    )
    assert reply.details["causes"][0]["reason"] == "NamespaceTerminating"
    cluster.patch("Pod", "p", {"metadata": {"finalizers": []}}, "team")
    assert not cluster.exists("Namespace", "team", "")


def test_the_clusters_own_stay() -> None:
    cluster = Cluster()
    cluster.create(new_namespace("kube-system"))
    reply = cluster.delete("Namespace", "kube-system", "")
    assert isinstance(reply, Refused)
    assert reply.message == 'namespaces "kube-system" is forbidden: this namespace may not be deleted'


def test_a_missing_one_is_refused_only_where_it_is_asked_for() -> None:
    strict, lenient = Store(served=True), Store()
    assert isinstance(lenient.create(pack(pod("p")), START), Accepted)
    reply = strict.apply(Create(pack(pod("p", namespace="nowhere"))), START)
    assert isinstance(reply, Refused)
    assert (reply.code, reply.message) == (404, 'namespaces "nowhere" not found')
    assert strict.revision == 0


def test_what_a_run_starts_with_brings_its_namespaces() -> None:
    store = Store(served=True)
    assert isinstance(store.apply(Create(pack(pod("p", namespace="team")), user="submit"), START), Accepted)
    assert isinstance(store.get("Namespace", "", "team"), Accepted)
    assert isinstance(store.apply(Delete("Namespace", "", "team"), START), Accepted)


def test_a_restart_knows_what_is_in_them(cluster: Cluster) -> None:
    cluster.create(pod("p", namespace="team"))
    cluster.restart()
    cluster.delete("Namespace", "team", "")
    assert not cluster.exists("Pod", "p", "team")
    assert not cluster.exists("Namespace", "team", "")
