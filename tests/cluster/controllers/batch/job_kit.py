"""batch/v1 Jobs on a cluster without actors, whose pods are bound and ended by hand."""

from __future__ import annotations

from typing import Any

from pumice.cluster.controllers.batch.rule import JobRule
from pumice.cluster.controllers.family import FamilyMachine
from pumice.cluster.kube.statuses import timestamp
from pumice.cluster.kubelets.machine import NodeAgentsMachine
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster
from tests.kit.nodes import node

JOB = "Job.batch"


def job_cluster(*, agents: bool = False) -> Cluster:
    """With node agents pods run once they are bound; without, they do what a test says."""
    more = [NodeAgentsMachine(default_duration_s=0.0)] if agents else []
    cluster = Cluster(FamilyMachine(JobRule()), *more)
    cluster.create(node("n1"))
    return cluster


def batch_job(name: str = "j", restart: str = "Never", **spec: Any) -> Object:
    """A Job of one container."""
    pod: Object = {
        "schedulerName": "volcano",
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
    }
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"template": {"metadata": {"labels": {"app": name}}, "spec": pod}, **spec},
    }


def pods(cluster: Cluster, *phases: str) -> list[Object]:
    """Pods in one of these phases (all), by name."""
    return [each for each in cluster.all("Pod") if not phases or each["status"]["phase"] in phases]


def end(cluster: Cluster, pod: Object, exit_code: int = 0) -> None:
    """The pod has run and ended now."""
    ended = {"terminated": {"exitCode": exit_code, "finishedAt": stamp(cluster.now)}}
    status = {
        "phase": "Failed" if exit_code else "Succeeded",
        "containerStatuses": [{"name": "c", "restartCount": 0, "ready": False, "state": ended}],
    }
    cluster.status("Pod", pod["metadata"]["name"], status)
    cluster.settle()


def stamp(now: float) -> str:
    """As Kubernetes writes times."""
    return timestamp(now)


def conditions(cluster: Cluster, name: str = "j") -> list[tuple[str, str, str]]:
    """Type, status and reason of each."""
    listed: list[Object] = cluster.get(JOB, name)["status"].get("conditions") or []
    return [(each["type"], each["status"], each["reason"]) for each in listed]


def said(cluster: Cluster) -> list[tuple[str, str]]:
    """Reasons and messages of events."""
    return [(each["reason"], each["message"]) for each in cluster.all("Event")]


COMPLETE = [("SuccessCriteriaMet", "True", "CompletionsReached"), ("Complete", "True", "CompletionsReached")]


def failed_for(reason: str) -> list[tuple[str, str, str]]:
    return [("FailureTarget", "True", reason), ("Failed", "True", reason)]


def started(job: Object, *, agents: bool = False) -> Cluster:
    cluster = job_cluster(agents=agents)
    cluster.create(job)
    cluster.settle()
    return cluster


def status(cluster: Cluster, *names: str) -> tuple[Any, ...]:
    found = cluster.get(JOB, "j")["status"]
    return tuple(found.get(name) for name in names)


def rules(*listed: Object) -> Object:
    return {"podFailurePolicy": {"rules": list(listed)}}


def on_exit(action: str, operator: str, *values: int) -> Object:
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(values)}}
