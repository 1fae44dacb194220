"""What an image says of a container without a command: servers stay, shells end."""

import pytest

from pumice.cluster.kubelets.machine import NodeAgentsMachine
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster
from tests.kit.nodes import node
from tests.kit.pods import pod


def after(seconds: float, policy: str, *containers: Object) -> str:
    """The phase of a pod of these containers so long after it was bound."""
    cluster = Cluster(NodeAgentsMachine())
    cluster.create(node("n1"))
    made = pod("p")
    named = [{"name": f"c{number}", **each} for number, each in enumerate(containers)]
    made["spec"] |= {"containers": named, "restartPolicy": policy}
    cluster.create(made)
    cluster.bind("p", "n1")
    cluster.advance(seconds)
    return str(cluster.get("Pod", "p")["status"]["phase"])


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
@pytest.mark.parametrize(
    "container",
    [
        {"image": "nginx"},
        {"image": "docker.io/bitnami/redis:7.2@sha256:00"},
        {"image": "registry.k8s.io/e2e-test-images/agnhost:2.53"},
        {"image": "x", "command": ["nginx", "-g", "daemon off;"]},
        {"image": "x", "command": ["/usr/sbin/sshd", "-D"]},
        {"image": "x", "command": ["sh", "-c", "mkdir -p /run/sshd; /usr/sbin/sshd -D"]},
        {"image": "x", "args": ["redis-server", "--port", "7000"]},
        {"image": "busybox", "stdin": True},
    ],
)
def test_server_runs_whatever_the_restart_policy_says(policy: str, container: Object) -> None:
    assert after(86_400, policy, container) == "Running"


@pytest.mark.parametrize(
    "container",
    [
        {"image": "busybox:1.36"},
        {"image": "docker.io/library/alpine"},
        {"image": "ubuntu:24.04"},
        {"image": "x", "command": ["/bin/bash"]},
        {"image": "x", "command": ["sh", "-l"]},
        {"image": "nginx", "command": ["nginx"]},
    ],
)
@pytest.mark.parametrize("policy", ["OnFailure", "Never"])
def test_shell_without_a_command_ends_immediately(policy: str, container: Object) -> None:
    assert after(0, policy, container) == "Succeeded"


def test_shell_that_is_kept_up_is_started_again() -> None:
    cluster = Cluster(NodeAgentsMachine())
    cluster.create(node("n1"))
    made = pod("p")
    made["spec"] |= {"containers": [{"name": "c", "image": "busybox"}], "restartPolicy": "Always"}
    cluster.create(made)
    cluster.bind("p", "n1")
    cluster.advance(5)
    assert cluster.get("Pod", "p")["status"]["containerStatuses"][0]["restartCount"] == 1


def test_image_that_nobody_knows_runs_for_the_default_duration() -> None:
    assert after(4.9, "Never", {"image": "acme/train"}) == "Running"
    assert after(5, "Never", {"image": "acme/train"}) == "Succeeded"


def test_annotation_comes_before_the_image() -> None:
    cluster = Cluster(NodeAgentsMachine())
    cluster.create(node("n1"))
    made = pod("p", duration="3s")
    made["spec"] |= {"containers": [{"name": "c", "image": "nginx"}], "restartPolicy": "Never"}
    cluster.create(made)
    cluster.bind("p", "n1")
    cluster.advance(3)
    assert cluster.get("Pod", "p")["status"]["phase"] == "Succeeded"
