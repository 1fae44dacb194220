"""What Kubernetes puts into every namespace is there, comes back, and goes with it."""

from pumice.cluster.controllers.namespaces import EMPTIED_AFTER_S, NamespaceMachine
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster


def namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def test_a_namespace_gets_its_account_and_certificate() -> None:
    cluster = Cluster(NamespaceMachine())
    cluster.create(namespace("a"))
    cluster.settle()
    assert cluster.exists("ServiceAccount", "default", "a")
    assert "ca.crt" in cluster.get("ConfigMap", "kube-root-ca.crt", "a")["data"]


def test_what_is_taken_away_comes_back() -> None:
    cluster = Cluster(NamespaceMachine())
    cluster.create(namespace("a"))
    cluster.settle()
    before = cluster.get("ServiceAccount", "default", "a")["metadata"]["uid"]
    cluster.delete("ServiceAccount", "default", "a")
    cluster.settle()
    assert cluster.get("ServiceAccount", "default", "a")["metadata"]["uid"] != before


def test_one_that_is_there_stays_as_it_is_also_after_a_restart() -> None:
    cluster = Cluster(NamespaceMachine())
    cluster.create(namespace("a"))
    cluster.settle()
    cluster.patch("ConfigMap", "kube-root-ca.crt", {"data": {"ca.crt": "mine"}}, "a")
    cluster.restart(NamespaceMachine())
    cluster.settle()
    assert cluster.get("ConfigMap", "kube-root-ca.crt", "a")["data"] == {"ca.crt": "mine"}


def test_a_namespace_that_goes_is_left_alone() -> None:
    cluster = Cluster(NamespaceMachine())
    cluster.create(namespace("a"))
    cluster.settle()
    cluster.delete("Namespace", "a", "")
    cluster.settle()
    assert not cluster.exists("ServiceAccount", "default", "a")
    assert not cluster.exists("Namespace", "a", "")


def test_a_served_namespace_is_emptied_a_little_later() -> None:
    cluster = Cluster(NamespaceMachine())
    cluster.store.registry.served = True
    cluster.create(namespace("a"))
    cluster.settle()
    cluster.delete("Namespace", "a", "")
    assert cluster.exists("ServiceAccount", "default", "a"), "a client may delete it too"
    assert cluster.get("Namespace", "a", "")["status"]["phase"] == "Terminating"
    cluster.settle()
    cluster.advance(EMPTIED_AFTER_S)
    assert not cluster.exists("Namespace", "a", "")
