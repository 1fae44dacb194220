"""A container that gets another image is started again, whatever the restart policy; others of its pod go on."""

import pytest

from pumice.cluster.kubelets.machine import NodeAgentsMachine
from pumice.cluster.kubelets.node_reports import ClusterAddresses
from pumice.core.messages.commands import Patch, UpdateStatus
from pumice.core.messages.replies import Accepted
from pumice.core.objects.metadata import Object
from pumice.storage.codec import pack, unpack
from tests.actors.cluster import Cluster
from tests.kit.nodes import node
from tests.kit.pods import pod

COMMANDS = [["sh", "-c", "sleep 60"], None]


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster(NodeAgentsMachine(default_duration_s=60.0, addresses=ClusterAddresses()))
    found.create(node("n1"))
    return found


def bound(cluster: Cluster, command: list[str] | None, policy: str = "Never") -> None:
    made = pod("p")
    made["metadata"].pop("annotations", None)
    program: Object = {} if command is None else {"command": command}
    made["spec"] |= {
        "restartPolicy": policy,
        "containers": [{"name": name, "image": "tool:1", **program} for name in ("a", "b")],
    }
    cluster.create(made)
    cluster.bind("p", "n1")
    cluster.settle()


def give(cluster: Cluster, image: str, name: str = "a") -> None:
    patch = {"spec": {"containers": [{"name": name, "image": image}]}}
    assert isinstance(cluster.ask(Patch("Pod", "default", "p", pack(patch), form="strategic")), Accepted)
    cluster.settle()


def containers(cluster: Cluster) -> list[Object]:
    found: list[Object] = cluster.get("Pod", "p")["status"]["containerStatuses"]
    return found


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("policy", ["Never", "Always"])
def test_a_new_image_restarts_its_container_alone(cluster: Cluster, command: list[str] | None, policy: str) -> None:
    bound(cluster, command, policy)
    before, other = containers(cluster)
    cluster.advance(20)
    give(cluster, "tool:2")
    after, still = containers(cluster)
    assert (after["image"], after["restartCount"], after["state"]) == (
        "tool:2",
        1,
        {"running": {"startedAt": "2023-11-14T22:13:40Z"}},
    )
    ended = after["lastState"]["terminated"]
    assert (ended["exitCode"], ended["startedAt"], ended["finishedAt"]) == (
        143 if command is None else 137,
        "2023-11-14T22:13:20Z",
        "2023-11-14T22:13:40Z",
    )
    assert (ended["containerID"], after["containerID"] != ended["containerID"]) == (before["containerID"], True)
    assert (still["restartCount"], still["state"], still["containerID"]) == (0, other["state"], other["containerID"])
    give(cluster, "tool:3")
    assert [each["restartCount"] for each in containers(cluster)] == [2, 0]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_restarted_container_takes_its_time_anew(cluster: Cluster, command: list[str] | None) -> None:
    bound(cluster, command)
    cluster.advance(20)
    give(cluster, "tool:2")
    cluster.advance(59)
    assert cluster.get("Pod", "p")["status"]["phase"] == "Running"
    cluster.advance(1)
    assert cluster.get("Pod", "p")["status"]["phase"] == "Succeeded"
    assert [each["restartCount"] for each in containers(cluster)] == [1, 0]


def test_the_new_image_says_how_long_it_runs(cluster: Cluster) -> None:
    bound(cluster, None)
    give(cluster, "nginx")
    cluster.advance(86_400)
    assert cluster.get("Pod", "p")["status"]["phase"] == "Running"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_same_image_and_an_ended_pod_restart_nothing(cluster: Cluster, command: list[str] | None) -> None:
    bound(cluster, command)
    give(cluster, "tool:1")
    assert [each["restartCount"] for each in containers(cluster)] == [0, 0]
    cluster.advance(60)
    give(cluster, "tool:2")
    assert [each["restartCount"] for each in containers(cluster)] == [0, 0]
    assert cluster.get("Pod", "p")["status"]["phase"] == "Succeeded"


@pytest.mark.parametrize("command", COMMANDS)
def test_an_agent_that_starts_anew_goes_on_counting(command: list[str] | None) -> None:
    cluster = Cluster(NodeAgentsMachine(default_duration_s=60.0, addresses=ClusterAddresses()))
    cluster.create(node("n1"))
    bound(cluster, command)
    give(cluster, "tool:2")
    machine = NodeAgentsMachine(default_duration_s=60.0, addresses=ClusterAddresses())
    machine.observe("Node", cluster.get("Node", "n1"), 1)
    found = cluster.get("Pod", "p")
    machine.observe("Pod", found, int(found["metadata"]["resourceVersion"]))
    assert list(machine.step(cluster.now)) == []
    found["spec"]["containers"][0]["image"] = "tool:3"
    machine.observe("Pod", found, int(found["metadata"]["resourceVersion"]) + 1)
    (told,) = machine.step(cluster.now)
    assert isinstance(told, UpdateStatus)
    assert [each["restartCount"] for each in unpack(told.blob)["containerStatuses"]] == [2, 0]
