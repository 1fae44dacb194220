"""What nobody here serves is told so, once: by an event, and a pod by a condition as well."""

from __future__ import annotations

import pytest

from pumice.cluster.api.kinds import KINDS
from pumice.cluster.controllers.unserved import LEFT, UNSERVED, UnservedMachine, other_scheduler
from pumice.core.messages.commands import BindPod
from pumice.core.messages.replies import Accepted
from pumice.core.objects.metadata import Object
from pumice.storage.memory import MemoryJournal
from tests.actors.cluster import Cluster
from tests.actors.rig import idle, started
from tests.kit.certificates import certificate_request
from tests.kit.jobs import vcjob
from tests.kit.nodes import node
from tests.kit.pods import pod


def stranger(name: str = "p", scheduler: str = "mine") -> Object:
    made = pod(name)
    made["spec"]["schedulerName"] = scheduler
    return made


def autoscaler(version: str = "autoscaling/v2") -> Object:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    spec: Object = {"scaleTargetRef": target, "maxReplicas": 3}
    kind, metadata = "HorizontalPodAutoscaler", {"name": "h", "namespace": "default"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def events(cluster: Cluster) -> list[tuple[str, str, str]]:
    found = cluster.all("Event")
    return [(one["involvedObject"]["kind"], one["reason"], one["source"]["component"]) for one in found]


def scheduled(cluster: Cluster) -> list[Object]:
    conditions: list[Object] = cluster.get("Pod", "p")["status"].get("conditions") or []
    return [each for each in conditions if each["type"] == "PodScheduled"]


def test_a_pod_of_another_scheduler_is_told() -> None:
    cluster = Cluster(UnservedMachine())
    cluster.create(stranger())
    cluster.settle()
    assert events(cluster) == [("Pod", "NoScheduler", "unserved-controller")]
    [condition] = scheduled(cluster)
    text = "no scheduler named 'mine' runs here"
    assert (condition["status"], condition["reason"], condition["message"]) == ("False", "NoScheduler", text)
    assert cluster.get("Pod", "p")["status"]["phase"] == "Pending"
    assert cluster.all("Event")[0]["message"] == text


def test_a_long_name_is_no_hindrance() -> None:
    cluster = Cluster(UnservedMachine())
    cluster.create(stranger("p" * 253))
    cluster.settle()
    assert len(events(cluster)) == 1


def test_it_is_said_once_whoever_starts_anew() -> None:
    cluster = Cluster(UnservedMachine())
    cluster.create(stranger())
    cluster.settle()
    before = len(cluster.journal)
    cluster.machines[:] = [UnservedMachine()]
    cluster.patch("Pod", "p", {"metadata": {"labels": {"a": "b"}}})
    cluster.settle()
    assert len(cluster.journal) == before + 1
    assert len(events(cluster)) == 1


def test_somebody_may_come_and_place_it() -> None:
    cluster = Cluster(UnservedMachine())
    cluster.create(node("n1"))
    uid = cluster.create(stranger())["metadata"]["uid"]
    cluster.settle()
    cluster.ask(BindPod("default", "p", uid, "n1"))
    cluster.settle()
    assert [each["status"] for each in scheduled(cluster)] == ["True"]


def test_another_scheduler_may_be_at_work() -> None:
    cluster = Cluster(UnservedMachine(scheduler=False))
    cluster.create(stranger())
    cluster.create(autoscaler())
    cluster.settle()
    assert events(cluster) == [("HorizontalPodAutoscaler", "NoController", "unserved-controller")]


def test_a_kind_without_a_controller_is_told() -> None:
    cluster = Cluster(UnservedMachine())
    cluster.create(autoscaler())
    cluster.settle()
    [said] = cluster.all("Event")
    kind = "HorizontalPodAutoscaler"
    assert said["involvedObject"]["apiVersion"] == "autoscaling/v2"
    assert said["message"] == f"{kind} (autoscaling/v2): no controller for it runs here, so nothing comes of it"
    assert said["type"] == "Warning"


@pytest.mark.parametrize("kind", ["Job", "CronJob"])
def test_what_is_left_to_controllers_that_cannot_come_is_told(kind: str) -> None:
    job = vcjob("j")
    spec = job["spec"] if kind == "Job" else {"schedule": "* * * * *", "jobTemplate": {"spec": job["spec"]}}
    for left in ((), LEFT):
        cluster = Cluster(UnservedMachine(left=left))
        cluster.create({**job, "kind": kind, "spec": spec})
        cluster.settle()
        assert events(cluster) == [(kind, "NoController", "unserved-controller")][: len(left)]


def test_ours_are_not_told() -> None:
    cluster = Cluster(UnservedMachine())
    cluster.create(pod("ours"))
    cluster.settle()
    assert cluster.all("Event") == []
    assert other_scheduler(pod("ours")) == other_scheduler({**stranger(), "spec": {"nodeName": "n"}}) == ""


@pytest.mark.anyio
async def test_under_a_system_it_is_said() -> None:
    async with started(MemoryJournal()) as system:
        await system.submit([node("n0"), stranger(), autoscaler()])
        await idle(system)
        assert {each["reason"] for each in await system.listed("Event")} == {"NoScheduler", "NoController"}


TEMPLATE: Object = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"schedulerName": "volcano", "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
}
SELECTOR: Object = {"matchLabels": {"app": "a"}}


def of_kind(key: str) -> Object:
    """One that would soon become pods, or be signed, where somebody serves it."""
    row = KINDS[key]
    if key == "HorizontalPodAutoscaler":
        return autoscaler()
    if key == "CertificateSigningRequest":
        return certificate_request("x")
    spec: Object = {"template": TEMPLATE}
    if key in ("StatefulSet", "DaemonSet"):
        spec |= {"selector": SELECTOR, "serviceName": "s"} if key == "StatefulSet" else {"selector": SELECTOR}
        spec["template"] = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Always"}}
    if key == "JobFlow":
        spec = {"flows": [{"name": "a"}]}
    metadata = {"name": "x", "namespace": "default"}
    return {"apiVersion": row.api_version, "kind": row.kind, "metadata": metadata, "spec": spec}


@pytest.mark.anyio
async def test_nobody_serves_what_stands_in_the_table() -> None:
    """Where pods come of one, a controller has come: its kind is to be taken out of the table."""
    async with started(MemoryJournal()) as system:
        for answer in await system.submit([node("n0"), *map(of_kind, UNSERVED)]):
            assert isinstance(answer, Accepted), answer
        await idle(system)
        assert [pod["metadata"]["name"] for pod in await system.listed("Pod")] == []
        said = {each["involvedObject"]["kind"] for each in await system.listed("Event")}
        assert said == {KINDS[key].kind for key in UNSERVED}
