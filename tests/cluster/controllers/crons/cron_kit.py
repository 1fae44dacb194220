"""CronJobs on a cluster without actors, whose jobs are ended by hand."""

from __future__ import annotations

from typing import Any

from pumice.cluster.controllers.crons import KUBERNETES, VOLCANO, CronRule, Dialect
from pumice.cluster.controllers.family import FamilyMachine
from pumice.cluster.kube.statuses import timestamp
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster

MINUTE = 60.0
KINDS = {"kubernetes": KUBERNETES, "volcano": VOLCANO}
POD: Object = {"schedulerName": "volcano", "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
JOBS: dict[str, Object] = {
    "Job.batch": {"template": {"spec": POD}},
    "Job": {"tasks": [{"replicas": 1, "template": {"spec": POD}}]},
}


def cron_job(dialect: Dialect, name: str = "c", schedule: str = "* * * * *", **spec: Any) -> Object:
    """One that runs every minute."""
    template = {"metadata": {"labels": {"app": name}, "annotations": {"a": "b"}}, "spec": JOBS[dialect.child]}
    return {
        "apiVersion": dialect.job_version,
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedule": schedule, "jobTemplate": template, **spec},
    }


def started(dialect: Dialect, **spec: Any) -> Cluster:
    """A cluster in which one was made twenty seconds after a full minute."""
    cluster = Cluster(FamilyMachine(CronRule(dialect)))
    cluster.create(cron_job(dialect, **spec))
    cluster.settle()
    return cluster


def jobs(cluster: Cluster, dialect: Dialect) -> list[str]:
    """Names."""
    return [each["metadata"]["name"] for each in cluster.all(dialect.child)]


def end(cluster: Cluster, dialect: Dialect, name: str, *, failed: bool = False) -> None:
    """The job ends now."""
    at = timestamp(cluster.now)
    how = "Failed" if failed else "Complete" if dialect is KUBERNETES else "Completed"
    if dialect is KUBERNETES:
        condition = {"type": how, "status": "True", "lastTransitionTime": at}
        cluster.status(dialect.child, name, {"conditions": [condition], **({} if failed else {"completionTime": at})})
    else:
        cluster.status(dialect.child, name, {"state": {"phase": how, "lastTransitionTime": at}})
    cluster.settle()


def status(cluster: Cluster, dialect: Dialect) -> Object:
    """Of the CronJob; of its active jobs the names."""
    found: Object = cluster.get(dialect.owner, "c").get("status") or {}
    active: list[Object] = found.get("active") or []
    return {**found, "active": [each["name"] for each in active]}


def said(cluster: Cluster) -> list[tuple[str, str]]:
    """Reasons and messages of events, in order of their coming."""
    events = sorted(cluster.all("Event"), key=lambda each: int(each["metadata"]["resourceVersion"]))
    return [(each["reason"], each["message"]) for each in events]
