"""The Job controller against a store, without actors: what it makes, and the ordinary life of a Job."""

import pytest

from pumice.cluster.controllers.family import FamilyMachine
from pumice.cluster.controllers.jobs.rule import VolcanoJobRule
from pumice.cluster.kubelets.machine import NodeAgentsMachine
from pumice.core.messages.commands import Patch
from pumice.storage.codec import pack
from tests.actors.cluster import Cluster, enqueue_all
from tests.cluster.controllers.jobs.job_cluster import FOREVER, fail, job_cluster, phase, pods, run, schedule, status
from tests.kit.jobs import job_task, vcjob
from tests.kit.nodes import node
from tests.kit.priority_classes import priority_class

# --- PodGroup and pods


def test_a_job_gets_its_pod_group_and_waits_with_its_pods(cluster: Cluster) -> None:
    cluster.create(priority_class("high", 9))
    job = vcjob("j", job_task("a", replicas=2), job_task("b", cpu="2"), priority_class="high")
    job["metadata"] |= {"labels": {"l": "1"}, "annotations": {"volcano.sh/sla-waiting-time": "1h"}}
    uid = cluster.create(job)["metadata"]["uid"]
    cluster.settle()
    [group] = cluster.all("PodGroup")
    meta, spec = group["metadata"], group["spec"]
    assert (meta["name"], meta["labels"], meta["annotations"]) == (
        f"j-{uid}",
        {"l": "1"},
        {"volcano.sh/sla-waiting-time": "1h"},
    )
    assert meta["ownerReferences"][0]["uid"] == uid
    assert (spec["minMember"], spec["minTaskMember"], spec["queue"]) == (3, {"a": 2, "b": 1}, "default")
    assert (spec["priorityClassName"], spec["minResources"]["cpu"], spec["minResources"]["pods"]) == ("high", "4", "3")
    assert pods(cluster) == []
    assert (phase(cluster), status(cluster)["minAvailable"]) == ("Pending", 3)
    assert [each["status"] for each in status(cluster)["conditions"]] == ["Pending"]


def test_pods_come_once_the_pod_group_is_past_pending(cluster: Cluster) -> None:
    cluster.create(vcjob("j", job_task("a", replicas=2), job_task("b")))
    cluster.settle()
    enqueue_all(cluster)
    cluster.settle()
    assert pods(cluster) == ["j-a-0", "j-a-1", "j-b-0"]
    assert status(cluster)["pending"] == 3
    assert status(cluster)["taskStatusCount"] == {"a": {"phase": {"Pending": 2}}, "b": {"phase": {"Pending": 1}}}


def test_a_pod_says_where_it_belongs(cluster: Cluster) -> None:
    job = vcjob("j", job_task("a", replicas=2), priority_class="high")
    job["metadata"]["annotations"] = {"volcano.sh/preemptable": "true", "pumice.dev/duration": "7s"}
    job["spec"]["plugins"] = {"env": [], "svc": []}
    cluster.create(priority_class("high", 9))
    run(cluster, job)
    uid = cluster.get("Job", "j")["metadata"]["uid"]
    found = cluster.get("Pod", "j-a-1")
    assert found["metadata"]["annotations"] == {
        "scheduling.k8s.io/group-name": f"j-{uid}",
        "volcano.sh/task-spec": "a",
        "volcano.sh/task-index": "1",
        "volcano.sh/job-name": "j",
        "volcano.sh/queue-name": "default",
        "volcano.sh/job-version": "0",
        "volcano.sh/job-retry-count": "0",
        "volcano.sh/template-uid": "j-a",
        "volcano.sh/preemptable": "true",
        "pumice.dev/duration": "7s",
    }
    assert found["metadata"]["labels"] == {
        "volcano.sh/job-name": "j",
        "volcano.sh/job-namespace": "default",
        "volcano.sh/queue-name": "default",
        "volcano.sh/task-spec": "a",
        "volcano.sh/task-index": "1",
    }
    assert found["metadata"]["ownerReferences"][0] | {"uid": ""} == {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "j",
        "uid": "",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    spec = found["spec"]
    assert (spec["schedulerName"], spec["priorityClassName"], spec["priority"]) == ("volcano", "high", 9)
    assert (spec["hostname"], spec["subdomain"]) == ("j-a-1", "j")
    variables = [{"name": "VK_TASK_INDEX", "value": "1"}, {"name": "VC_TASK_INDEX", "value": "1"}]
    assert spec["containers"][0]["env"][:2] == variables


def test_partitions_mark_their_pods_and_make_subgroups(cluster: Cluster) -> None:
    policy = {
        "totalPartitions": 2,
        "partitionSize": 2,
        "minPartitions": 1,
        "networkTopology": {"highestTierAllowed": 2},
    }
    run(cluster, vcjob("j", job_task("a", replicas=4) | {"partitionPolicy": policy}, min_available=2))
    labels = [each["metadata"]["labels"]["volcano.sh/partition-id"] for each in cluster.all("Pod")]
    assert labels == ["0", "0", "1", "1"]
    assert cluster.all("PodGroup")[0]["spec"]["subGroupPolicy"] == [
        {
            "name": "a",
            "subGroupSize": 2,
            "minSubGroups": 1,
            "labelSelector": {"matchLabels": {"volcano.sh/task-spec": "a"}},
            "matchLabelKeys": ["volcano.sh/partition-id"],
            "networkTopology": {"mode": "hard", "highestTierAllowed": 2},
        }
    ]


def test_volumes_are_claimed_and_mounted(cluster: Cluster) -> None:
    job = vcjob("j", job_task("a"))
    claim = {"accessModes": ["ReadWriteOnce"]}
    job["spec"]["volumes"] = [
        {"mountPath": "/in", "volumeClaim": claim},
        {"mountPath": "/out", "volumeClaimName": "mine"},
    ]
    run(cluster, job)
    [made] = cluster.all("PersistentVolumeClaim")
    name = made["metadata"]["name"]
    assert made["spec"] == claim
    spec = cluster.get("Pod", "j-a-0")["spec"]
    assert [each["persistentVolumeClaim"]["claimName"] for each in spec["volumes"]] == [name, "mine"]
    assert [each["mountPath"] for each in spec["containers"][0]["volumeMounts"]] == ["/in", "/out"]


def test_claim_that_two_volumes_name_is_mounted_once(cluster: Cluster) -> None:
    job = vcjob("j", job_task("a"))
    job["spec"]["volumes"] = [{"mountPath": path, "volumeClaimName": "mine"} for path in ("/in", "/out")]
    run(cluster, job)
    spec = cluster.get("Pod", "j-a-0")["spec"]
    assert [each["persistentVolumeClaim"]["claimName"] for each in spec["volumes"]] == ["mine"]
    assert [each["mountPath"] for each in spec["containers"][0]["volumeMounts"]] == ["/in"]


# --- the ordinary life


def test_a_gang_runs_and_completes(cluster: Cluster) -> None:
    run(cluster, vcjob("j", job_task("a", replicas=3)))
    assert (phase(cluster), status(cluster)["running"]) == ("Running", 3)
    cluster.advance(5)
    found = status(cluster)
    assert (phase(cluster), found["succeeded"], found["runningDuration"]) == ("Completed", 3, "5s")
    assert [each["status"] for each in found["conditions"]] == ["Pending", "Running", "Completed"]
    assert cluster.all("PodGroup") == [], "its PodGroup goes when it ends"
    assert len(pods(cluster)) == 3, "its pods stay to be looked at"
    assert cluster.timers() == 0


def test_nothing_is_written_when_nothing_changes(cluster: Cluster) -> None:
    run(cluster, vcjob("j", FOREVER))
    before = cluster.store.revision
    cluster.advance(10**5)
    assert cluster.store.revision == before


def test_too_few_successes_fail_it(cluster: Cluster) -> None:
    run(cluster, vcjob("j", FOREVER))
    for pod in pods(cluster):
        fail(cluster, pod)
    assert (phase(cluster), status(cluster)["failed"]) == ("Failed", 3)


def test_enough_successes_end_it_early(cluster: Cluster) -> None:
    job = vcjob("j", job_task("a", replicas=2, duration="1s"), job_task("b", duration="0"), min_available=1)
    job["spec"]["minSuccess"] = 2
    run(cluster, job)
    cluster.advance(1)
    assert phase(cluster) == "Completed"
    cluster.advance(5)
    assert pods(cluster) == ["j-a-0", "j-a-1"], "who still ran is deleted"


def test_a_pod_that_vanishes_is_made_again(cluster: Cluster) -> None:
    run(cluster, vcjob("j", FOREVER, min_available=1))
    uid = cluster.get("Pod", "j-a-1")["metadata"]["uid"]
    cluster.delete("Pod", "j-a-1")
    cluster.advance(2)
    assert cluster.get("Pod", "j-a-1")["metadata"]["uid"] != uid


def test_it_can_be_scaled(cluster: Cluster) -> None:
    run(cluster, vcjob("j", FOREVER, min_available=1))
    tasks = cluster.get("Job", "j")["spec"]["tasks"]
    tasks[0] |= {"replicas": 5, "minAvailable": 2}
    cluster.patch("Job", "j", {"spec": {"tasks": tasks, "minAvailable": 2}})
    schedule(cluster)
    assert len(pods(cluster)) == 5
    [group] = cluster.all("PodGroup")
    assert (group["spec"]["minMember"], group["spec"]["minTaskMember"]) == (2, {"a": 2})
    assert group["spec"]["minResources"]["cpu"] == "2"
    tasks[0] |= {"replicas": 2, "minAvailable": 1}
    cluster.patch("Job", "j", {"spec": {"tasks": tasks, "minAvailable": 1}})
    cluster.advance(2)
    assert pods(cluster) == ["j-a-0", "j-a-1"]
    assert (phase(cluster), status(cluster)["running"]) == ("Running", 2)


def test_how_long_after_its_job_a_pod_was_made_is_kept_where_somebody_listens() -> None:
    loud, quiet = VolcanoJobRule(aloud=True), VolcanoJobRule()
    for rule, expected in ((loud, [(0.0, 0.0, 0.0), (8.0,), ()]), (quiet, [(), (), ()])):
        cluster = Cluster(FamilyMachine(rule), NodeAgentsMachine())
        cluster.create(node("n1"))
        run(cluster, vcjob("j", FOREVER, min_available=1))
        found = [rule.take_waits()]
        cluster.advance(7)
        cluster.delete("Pod", "j-a-1")
        cluster.advance(2)
        found += [rule.take_waits(), rule.take_waits()]
        assert found == expected


def test_deleting_it_takes_everything_with_it(cluster: Cluster) -> None:
    run(cluster, vcjob("j", FOREVER))
    cluster.delete("Job", "j")
    cluster.advance(2)
    assert (pods(cluster), cluster.all("PodGroup")) == ([], [])
    assert cluster.timers() == 0


def test_a_new_job_of_the_same_name_starts_anew(cluster: Cluster) -> None:
    run(cluster, vcjob("j", FOREVER))
    cluster.delete("Job", "j")
    run(cluster, vcjob("j", job_task("a", replicas=3)))
    cluster.advance(2)
    schedule(cluster)
    cluster.advance(5)
    assert (phase(cluster), status(cluster)["succeeded"]) == ("Completed", 3)


# --- dependencies between tasks


def test_a_task_waits_for_the_one_it_depends_on(cluster: Cluster) -> None:
    tasks = [job_task("a", replicas=2), job_task("b", depends_on=["a"]), job_task("c", depends_on=["b"])]
    cluster.create(vcjob("j", *tasks, min_available=1))
    cluster.settle()
    enqueue_all(cluster)
    cluster.settle()
    assert pods(cluster) == ["j-a-0", "j-a-1"]
    cluster.bind("j-a-0", "n1")
    cluster.settle()
    assert len(pods(cluster)) == 2, "both are needed"
    cluster.bind("j-a-1", "n1")
    cluster.settle()
    assert pods(cluster) == ["j-a-0", "j-a-1", "j-b-0"]
    schedule(cluster)
    assert pods(cluster)[-1] == "j-c-0"


@pytest.mark.parametrize(("iteration", "made"), [("any", True), ("all", False)])
def test_any_or_all_of_several(cluster: Cluster, iteration: str, made: bool) -> None:
    last = job_task("c", depends_on=["a", "b"])
    last["dependsOn"]["iteration"] = iteration
    cluster.create(vcjob("j", job_task("a"), job_task("b"), last, min_available=1))
    cluster.settle()
    enqueue_all(cluster)
    cluster.settle()
    cluster.bind("j-a-0", "n1")
    cluster.settle()
    assert cluster.exists("Pod", "j-c-0") is made


def test_a_job_made_again_has_a_pod_group_of_its_own() -> None:
    """The one of its namesake may still be there: a finalizer holds it."""
    cluster = job_cluster()
    run(cluster, vcjob("j", FOREVER))
    (old,) = cluster.all("PodGroup")
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    cluster.ask(Patch("PodGroup", "default", old["metadata"]["name"], pack(held)))
    cluster.settle()
    cluster.delete("Job", "j")
    cluster.settle()
    cluster.delete("PodGroup", old["metadata"]["name"])  # as its owner's end has it: it changes, and stays
    cluster.settle()
    run(cluster, vcjob("j", FOREVER))
    names = {each["metadata"]["name"] for each in cluster.all("PodGroup")}
    assert f"j-{cluster.get('Job', 'j')['metadata']['uid']}" in names
    assert len(names) == 2, names
