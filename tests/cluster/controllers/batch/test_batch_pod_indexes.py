"""batch/v1 Jobs whose pods have indexes."""

from __future__ import annotations

from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object
from tests.cluster.controllers.batch.job_kit import (
    COMPLETE,
    JOB,
    batch_job,
    conditions,
    end,
    failed_for,
    pods,
    started,
    status,
)


def index_of(pod: Object) -> str:
    return str(pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"])


def test_pods_have_indexes() -> None:
    cluster = started(batch_job(completions=4, parallelism=2, completionMode="Indexed"))
    first, second = pods(cluster)
    assert [index_of(first), index_of(second)] == ["0", "1"]
    assert first["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "0"
    assert first["metadata"]["name"].startswith("j-0-")
    assert first["spec"]["hostname"] == "j-0"
    [told] = first["spec"]["containers"][0]["env"]
    path = "metadata.labels['batch.kubernetes.io/job-completion-index']"
    assert told == {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": path}}}
    end(cluster, second)
    assert [index_of(pod) for pod in pods(cluster, "Pending")] == ["0", "2"]
    assert status(cluster, "succeeded", "completedIndexes") == (1, "1")
    for pod in pods(cluster, "Pending"):
        end(cluster, pod)
    end(cluster, pods(cluster, "Pending")[0])
    assert status(cluster, "succeeded", "completedIndexes") == (4, "0-3")
    assert conditions(cluster) == COMPLETE


def test_an_index_comes_again_until_it_succeeds() -> None:
    cluster = started(batch_job(completions=2, parallelism=2, completionMode="Indexed"))
    end(cluster, pods(cluster)[1], 1)
    cluster.advance(10)
    assert [index_of(pod) for pod in pods(cluster, "Pending")] == ["0", "1"]


def test_an_indexed_job_grows_with_its_completions() -> None:
    cluster = started(batch_job(completions=2, parallelism=2, completionMode="Indexed"))
    cluster.patch(JOB, "j", {"spec": {"parallelism": 3, "completions": 3}})
    cluster.settle()
    assert [index_of(pod) for pod in pods(cluster)] == ["0", "1", "2"]
    answer = cluster.patch(JOB, "j", {"spec": {"completions": 4}})
    assert isinstance(answer, Refused)


def test_each_index_may_have_its_own_limit() -> None:
    spec: Object = {"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 1}
    cluster = started(batch_job(**spec))
    end(cluster, pods(cluster)[0], 1)
    cluster.advance(10)
    again = next(pod for pod in pods(cluster, "Pending") if index_of(pod) == "0")
    assert again["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] == "1"
    end(cluster, again, 1)
    assert status(cluster, "failedIndexes") == ("0",)
    end(cluster, pods(cluster, "Pending")[0])
    assert conditions(cluster) == failed_for("FailedIndexes")


def test_too_many_indexes_may_have_failed() -> None:
    spec: Object = {"completions": 3, "parallelism": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 0}
    cluster = started(batch_job(**spec, maxFailedIndexes=0))
    end(cluster, pods(cluster)[0], 1)
    assert conditions(cluster) == failed_for("MaxFailedIndexesExceeded")
    assert pods(cluster, "Pending") == []


def test_some_indexes_may_be_enough() -> None:
    policy = {"rules": [{"succeededIndexes": "0,2", "succeededCount": 1}]}
    spec: Object = {"completions": 3, "parallelism": 3, "completionMode": "Indexed", "successPolicy": policy}
    cluster = started(batch_job(**spec))
    end(cluster, pods(cluster)[1])
    assert conditions(cluster) == []
    end(cluster, pods(cluster, "Pending")[1])
    assert conditions(cluster) == [
        ("SuccessCriteriaMet", "True", "SuccessPolicy"),
        ("Complete", "True", "SuccessPolicy"),
    ]
    assert status(cluster, "succeeded", "failed", "completedIndexes") == (2, None, "1,2")
