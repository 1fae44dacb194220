"""Jobs in a cluster without a scheduler: helpers to place their pods and to look at what became of them."""

from typing import Any

from pumice.cluster.controllers.family import FamilyMachine
from pumice.cluster.controllers.jobs.rule import VolcanoJobRule
from pumice.cluster.kubelets.machine import NodeAgentsMachine
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster, bind_all, enqueue_all
from tests.kit.jobs import job_task
from tests.kit.nodes import node

FOREVER = job_task("a", replicas=3, duration="0")


def job_cluster() -> Cluster:
    """One node, the Job controller, node agents."""
    found = Cluster(FamilyMachine(VolcanoJobRule()), NodeAgentsMachine())
    found.create(node("n1"))
    return found


def schedule(cluster: Cluster) -> None:
    """What the scheduler would do with enough room, until nothing is left to place."""
    for _ in range(10):
        cluster.settle()
        enqueue_all(cluster)
        cluster.settle()
        if not bind_all(cluster):
            break
    cluster.settle()


def run(cluster: Cluster, job: Object) -> None:
    cluster.create(job)
    schedule(cluster)


def status(cluster: Cluster, name: str = "j") -> Object:
    found: Object = cluster.get("Job", name)["status"]
    return found


def phase(cluster: Cluster, name: str = "j") -> str:
    return str(status(cluster, name)["state"]["phase"])


def pods(cluster: Cluster) -> list[str]:
    return [each["metadata"]["name"] for each in cluster.all("Pod")]


def fail(cluster: Cluster, pod: str, exit_code: int = 1) -> None:
    ended = [{"name": "main", "state": {"terminated": {"exitCode": exit_code}}}]
    cluster.status("Pod", pod, {"phase": "Failed", "containerStatuses": ended})
    cluster.settle()


def policy(event: str, action: str, **more: Any) -> Object:
    return {"event": event, "action": action, **more}
