"""Defects of Volcano's Job controller, and the switches that mend them."""

import pytest

from pumice.cluster.controllers.family import FamilyMachine
from pumice.cluster.controllers.jobs.rule import VolcanoJobRule
from pumice.cluster.kubelets.machine import NodeAgentsMachine
from tests.actors.cluster import Cluster
from tests.cluster.controllers.jobs.job_cluster import FOREVER, fail, phase, policy, run, schedule, status
from tests.kit.jobs import job_task, vcjob
from tests.kit.nodes import node


def cluster_with(*fixes: str) -> Cluster:
    found = Cluster(FamilyMachine(VolcanoJobRule(fixes=lambda: fixes)), NodeAgentsMachine())
    found.create(node("n1"))
    return found


@pytest.mark.parametrize(("fixes", "retries"), [((), 1), (("scaling-is-no-eviction",), 0)])
@pytest.mark.parametrize("event", ["PodEvicted", "PodFailed"])
def test_scaling_down_fires_policies_unless_mended(fixes: tuple[str, ...], retries: int, event: str) -> None:
    cluster = cluster_with(*fixes)
    task = job_task("a", replicas=3, min_available=1, duration="0")
    run(cluster, vcjob("j", task, min_available=1, policies=[policy(event, "RestartJob")]))
    tasks = cluster.get("Job", "j")["spec"]["tasks"]
    cluster.patch("Job", "j", {"spec": {"tasks": [{**tasks[0], "replicas": 1}]}})
    cluster.advance(3)
    schedule(cluster)
    assert status(cluster).get("retryCount", 0) == retries
    assert (phase(cluster), len(cluster.all("Pod"))) == ("Running", 1)


@pytest.mark.parametrize(("fixes", "retries"), [((), 1), (("ended-pods-are-not-evicted",), 0)])
def test_deleting_an_ended_pod_evicts_it_unless_mended(fixes: tuple[str, ...], retries: int) -> None:
    cluster = cluster_with(*fixes)
    short, long = job_task("a", duration="1s", restart_policy="Never"), job_task("b", duration="0")
    run(cluster, vcjob("j", short, long, policies=[policy("PodEvicted", "RestartJob")]))
    cluster.advance(2)
    assert cluster.get("Pod", "j-a-0")["status"]["phase"] == "Succeeded"
    cluster.delete("Pod", "j-a-0")
    cluster.advance(0.1)
    assert status(cluster).get("retryCount", 0) == retries
    assert cluster.exists("Pod", "j-b-0")


def test_running_pod_is_evicted_whatever_is_mended() -> None:
    cluster = cluster_with("ended-pods-are-not-evicted")
    run(cluster, vcjob("j", FOREVER, policies=[policy("PodEvicted", "RestartJob")]))
    cluster.evict("j-a-0")
    cluster.advance(1)
    assert status(cluster)["retryCount"] == 1


@pytest.mark.parametrize(("fixes", "retries"), [((), 1), (("restarted-jobs-hear-unknown",), 2)])
def test_unknown_group_restarts_job_only_once_unless_mended(fixes: tuple[str, ...], retries: int) -> None:
    cluster = cluster_with(*fixes)
    run(cluster, vcjob("j", FOREVER, policies=[policy("Unknown", "RestartJob")]))
    for _ in range(2):
        [group] = cluster.all("PodGroup")
        cluster.status("PodGroup", group["metadata"]["name"], {"phase": "Unknown"})
        cluster.advance(3)
        schedule(cluster)
    assert (phase(cluster), status(cluster)["retryCount"]) == ("Running", retries)


@pytest.mark.parametrize(("fixes", "left"), [((), True), (("aborted-jobs-expire",), False)])
def test_aborted_job_stays_unless_mended(fixes: tuple[str, ...], left: bool) -> None:
    cluster = cluster_with(*fixes)
    job = vcjob("j", FOREVER, policies=[policy("PodEvicted", "AbortJob")])
    job["spec"]["ttlSecondsAfterFinished"] = 3
    run(cluster, job)
    cluster.evict("j-a-0")
    cluster.advance(3)
    assert phase(cluster) == "Aborted"
    cluster.advance(60)
    assert cluster.exists("Job", "j") is left


def test_resumed_job_does_not_expire() -> None:
    cluster = cluster_with("aborted-jobs-expire")
    job = vcjob("j", FOREVER, policies=[policy("PodEvicted", "AbortJob")])
    job["spec"]["ttlSecondsAfterFinished"] = 30
    run(cluster, job)
    cluster.evict("j-a-0")
    cluster.advance(3)
    command = {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"name": "go", "namespace": "default"},
        "action": "ResumeJob",
        "target": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j"},
    }
    cluster.create(command)
    schedule(cluster)
    cluster.advance(60)
    assert phase(cluster) == "Running"


@pytest.mark.parametrize(("fixes", "kept"), [((), False), (("restarts-keep-the-pod-group",), True)])
def test_restart_of_a_pod_deletes_the_pod_group_unless_mended(fixes: tuple[str, ...], kept: bool) -> None:
    cluster = cluster_with(*fixes)
    run(cluster, vcjob("j", FOREVER, policies=[policy("PodFailed", "RestartPod")]))
    [before] = cluster.all("PodGroup")
    fail(cluster, "j-a-1")
    cluster.advance(2)
    schedule(cluster)
    [after] = cluster.all("PodGroup")
    assert (before["metadata"]["uid"] == after["metadata"]["uid"]) is kept
    assert phase(cluster) == "Running"


def test_restart_of_the_job_deletes_the_pod_group_all_the_same() -> None:
    cluster = cluster_with("restarts-keep-the-pod-group")
    run(cluster, vcjob("j", FOREVER, policies=[policy("PodFailed", "RestartJob")]))
    [before] = cluster.all("PodGroup")
    fail(cluster, "j-a-1")
    cluster.advance(2)
    schedule(cluster)
    assert before["metadata"]["uid"] not in {each["metadata"]["uid"] for each in cluster.all("PodGroup")}
