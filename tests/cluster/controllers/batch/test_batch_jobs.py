"""batch/v1 Jobs: pods until enough have succeeded, and what is said on the way."""

from __future__ import annotations

import pytest

from pumice.core.messages.commands import Delete
from tests.cluster.controllers.batch.job_kit import (
    COMPLETE,
    JOB,
    batch_job,
    conditions,
    end,
    job_cluster,
    pods,
    said,
    started,
    status,
)


def test_one_pod_by_default() -> None:
    cluster = started(batch_job())
    [pod] = pods(cluster)
    job = cluster.get(JOB, "j")
    labels = pod["metadata"]["labels"]
    assert labels["job-name"] == labels["batch.kubernetes.io/job-name"] == "j"
    assert labels["batch.kubernetes.io/controller-uid"] == job["metadata"]["uid"]
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": job["metadata"]["uid"]}}
    [owner] = pod["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"], owner["uid"]) == ("batch/v1", "Job", job["metadata"]["uid"])
    assert pod["metadata"]["name"].startswith("j-")
    assert status(cluster, "active", "ready", "startTime") == (1, 0, "2023-11-14T22:13:20Z")
    end(cluster, pod)
    assert conditions(cluster) == COMPLETE
    assert status(cluster, "active", "succeeded", "completionTime") == (None, 1, "2023-11-14T22:13:20Z")
    assert said(cluster)[-1] == ("Completed", "Job completed") or ("Completed", "Job completed") in said(cluster)


def test_so_many_at_a_time_until_all_have_succeeded() -> None:
    cluster = started(batch_job(completions=5, parallelism=2))
    for left in (5, 4, 3, 2, 1):
        assert len(pods(cluster, "Pending")) == min(left, 2)
        end(cluster, pods(cluster, "Pending")[0])
    assert status(cluster, "succeeded") == (5,)
    assert conditions(cluster) == COMPLETE
    assert len(pods(cluster)) == 5


def test_a_queue_of_work_is_done_when_one_has_succeeded_and_the_others_have_ended() -> None:
    cluster = started(batch_job(parallelism=3))
    first, second, third = pods(cluster)
    end(cluster, first)
    assert len(pods(cluster)) == 3
    assert conditions(cluster) == []
    end(cluster, second, 1)
    end(cluster, third)
    assert conditions(cluster) == COMPLETE
    assert status(cluster, "succeeded", "failed") == (2, 1)


def test_no_completions_are_reached_immediately() -> None:
    cluster = started(batch_job(completions=0))
    assert pods(cluster) == []
    assert conditions(cluster) == COMPLETE


def test_parallelism_may_change() -> None:
    cluster = started(batch_job(completions=5, parallelism=4))
    cluster.patch(JOB, "j", {"spec": {"parallelism": 1}})
    cluster.settle()
    assert len(pods(cluster)) == 1
    assert status(cluster, "failed") == (None,), "who is taken away has not failed"
    cluster.patch(JOB, "j", {"spec": {"parallelism": 3}})
    cluster.settle()
    assert len(pods(cluster)) == 3


# --- suspended, over and gone


def test_it_may_be_suspended_and_go_on() -> None:
    cluster = started(batch_job(suspend=True))
    assert (pods(cluster), status(cluster, "startTime")) == ([], (None,))
    assert conditions(cluster) == [("Suspended", "True", "JobSuspended")]
    cluster.advance(5)
    cluster.patch(JOB, "j", {"spec": {"suspend": False}})
    cluster.settle()
    assert conditions(cluster) == [("Suspended", "False", "JobResumed")]
    assert len(pods(cluster)) == 1
    assert status(cluster, "startTime") == ("2023-11-14T22:13:25Z",)
    cluster.patch(JOB, "j", {"spec": {"suspend": True}})
    cluster.settle()
    assert pods(cluster) == []
    assert status(cluster, "failed") == (None,)
    assert {("Suspended", "Job suspended"), ("Resumed", "Job resumed")} <= set(said(cluster))


def test_time_to_live_takes_it_away_with_its_pods() -> None:
    cluster = started(batch_job(ttlSecondsAfterFinished=100))
    end(cluster, pods(cluster)[0])
    assert cluster.timers() == 1
    cluster.advance(99)
    assert cluster.exists(JOB, "j")
    cluster.advance(1)
    assert not cluster.exists(JOB, "j")
    assert pods(cluster) == []


def test_pods_that_were_counted_may_go() -> None:
    cluster = started(batch_job(completions=3, parallelism=1))
    for _ in range(2):
        pod = pods(cluster, "Pending")[0]
        end(cluster, pod)
        cluster.delete("Pod", pod["metadata"]["name"])
        cluster.settle()
    assert status(cluster, "succeeded") == (2,)


@pytest.mark.parametrize("gone", [False, True])
def test_a_controller_that_starts_anew_knows_what_was(gone: bool) -> None:
    cluster = started(batch_job(completions=3, parallelism=1))
    pod = pods(cluster)[0]
    end(cluster, pod)
    if gone:
        cluster.delete("Pod", pod["metadata"]["name"])
        cluster.settle()
    cluster.restart(*job_cluster().machines)
    cluster.settle()
    assert (len(pods(cluster, "Pending")), status(cluster, "succeeded")) == (1, (1,))
    for _ in range(2):
        end(cluster, pods(cluster, "Pending")[0])
    assert conditions(cluster) == COMPLETE


@pytest.mark.parametrize(("propagation", "left"), [("Background", 0), ("Foreground", 0), ("Orphan", 1)])
def test_its_pods_go_with_it_or_stay(propagation: str, left: int) -> None:
    cluster = started(batch_job())
    cluster.ask(Delete(JOB, "default", "j", propagation=propagation))
    cluster.settle()
    assert (cluster.exists(JOB, "j"), len(pods(cluster))) == (False, left)


def test_refused_pods_are_tried_again_later_and_later() -> None:
    job = batch_job()
    job["spec"]["template"]["spec"]["priorityClassName"] = "late"
    cluster = started(job)
    assert pods(cluster) == []
    [reason] = {reason for reason, _ in said(cluster)}
    assert reason == "FailedCreate"
    assert cluster.timers() == 0, "nobody waits for it"
    cluster.create(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "late"}, "value": 1}
    )
    cluster.advance(1)
    assert len(pods(cluster)) == 1


def test_its_pods_are_told_by_their_labels() -> None:
    cluster = started(batch_job())
    [pod] = pods(cluster)
    name, labels = pod["metadata"]["name"], pod["metadata"]["labels"]
    cluster.patch("Pod", name, {"metadata": {"ownerReferences": None}})
    cluster.settle()
    assert "ownerReferences" in cluster.get("Pod", name)["metadata"]
    assert len(pods(cluster)) == 1
    cluster.patch("Pod", name, {"metadata": {"labels": dict.fromkeys(labels)}})
    cluster.settle()
    assert "ownerReferences" not in cluster.get("Pod", name)["metadata"]
    assert len(pods(cluster)) == 2


def test_another_controller_may_manage_it() -> None:
    cluster = started(batch_job(managedBy="example.com/mine"))
    assert (pods(cluster), cluster.get(JOB, "j").get("status")) == ([], None)
