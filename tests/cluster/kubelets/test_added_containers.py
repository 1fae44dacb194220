"""Containers that are added to a pod that runs."""

from pumice.cluster.kubelets.added_containers import AddedContainersMachine
from pumice.cluster.kubelets.machine import NodeAgentsMachine
from pumice.cluster.kubelets.node_reports import ClusterAddresses, OtherAgents
from pumice.core.messages.commands import Patch
from pumice.core.messages.replies import Accepted
from pumice.core.objects.metadata import Object
from pumice.storage.codec import pack
from tests.actors.cluster import Cluster
from tests.kit.nodes import node
from tests.kit.pods import pod


def a_cluster(**annotations: str) -> Cluster:
    others = OtherAgents()
    agents = NodeAgentsMachine(default_duration_s=0.0, addresses=ClusterAddresses(), others=others)
    cluster = Cluster(agents, AddedContainersMachine(others))
    made = node("n1")
    made["metadata"]["annotations"] = annotations
    cluster.create(made)
    cluster.create(pod("p", node="n1"))
    cluster.settle()
    return cluster


def add(cluster: Cluster, name: str, *command: str) -> None:
    container = {"name": name, "image": "busybox", "command": list(command)}
    patch = pack({"spec": {"ephemeralContainers": [container]}})
    reply = cluster.ask(Patch("Pod", "default", "p", patch, form="strategic", subresource="ephemeralcontainers"))
    assert isinstance(reply, Accepted), reply
    cluster.settle()


def states(cluster: Cluster) -> dict[str, Object]:
    said = cluster.get("Pod", "p")["status"].get("ephemeralContainerStatuses") or ()
    return {each["name"]: each["state"] for each in said}


def test_they_do_what_their_command_says() -> None:
    cluster = a_cluster()
    add(cluster, "short", "sh", "-c", "sleep 5; exit 3")
    assert "running" in states(cluster)["short"]
    add(cluster, "long", "something")
    cluster.advance(6)
    found = states(cluster)
    assert found["short"]["terminated"]["exitCode"] == 3
    assert "running" in found["long"]
    cluster.advance(3600)
    assert (states(cluster), cluster.get("Pod", "p")["status"]["phase"]) == (found, "Running")


def test_one_that_is_added_later_starts_none_again() -> None:
    cluster = a_cluster()
    add(cluster, "first", "sleep", "1")
    cluster.advance(2)
    ended = states(cluster)["first"]
    add(cluster, "second", "sleep", "5")
    found = states(cluster)
    assert found["first"] == ended
    assert "running" in found["second"]
    cluster.advance(5)
    assert "terminated" in states(cluster)["second"]


def test_after_a_restart_they_go_on() -> None:
    cluster = a_cluster()
    add(cluster, "a", "sleep", "60")
    before = states(cluster)
    again = Cluster(AddedContainersMachine(OtherAgents()))
    for mutation in cluster.journal:
        again.store.restore(mutation)
    again.now = cluster.now + 30
    again.settle()
    assert states(again) == before
    again.advance(31)
    assert "terminated" in states(again)["a"]


def test_on_a_node_of_others_nothing_is_said() -> None:
    cluster = a_cluster(**{"kwok.x-k8s.io/node": "fake"})
    cluster.status("Pod", "p", {"phase": "Running"})
    add(cluster, "a", "sleep", "1")
    assert states(cluster) == {}
