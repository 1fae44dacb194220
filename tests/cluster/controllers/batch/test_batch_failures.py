"""batch/v1 Jobs whose pods fail: how often, how long until the next, and when it is over."""

from __future__ import annotations

import pytest

from tests.actors.cluster import bind_all
from tests.cluster.controllers.batch.job_kit import (
    batch_job,
    conditions,
    end,
    failed_for,
    on_exit,
    pods,
    rules,
    said,
    started,
    status,
)


def test_it_waits_longer_after_each_failure() -> None:
    cluster = started(batch_job(backoffLimit=3))
    for wait in (10, 20, 40):
        end(cluster, pods(cluster, "Pending")[0], 1)
        cluster.advance(wait - 1)
        assert pods(cluster, "Pending") == []
        assert cluster.timers() == 1
        cluster.advance(1)
        assert len(pods(cluster, "Pending")) == 1
    end(cluster, pods(cluster, "Pending")[0], 1)
    assert conditions(cluster) == failed_for("BackoffLimitExceeded")
    assert status(cluster, "failed", "active", "completionTime") == (4, None, None)
    assert ("BackoffLimitExceeded", "Job has reached the specified backoff limit") in said(cluster)
    assert cluster.timers() == 0


def test_restarts_of_containers_count_under_on_failure() -> None:
    cluster = started(batch_job(restart="OnFailure", backoffLimit=2))
    [pod] = pods(cluster)
    name = pod["metadata"]["name"]
    for restarts, after in ((1, []), (2, failed_for("BackoffLimitExceeded"))):
        containers = [{"name": "c", "restartCount": restarts}]
        cluster.status("Pod", name, {"phase": "Running", "containerStatuses": containers})
        cluster.settle()
        assert conditions(cluster) == after
    assert pods(cluster) == []
    assert status(cluster, "failed") == (1,)


def test_a_failed_job_is_not_over_before_its_pods_have_gone() -> None:
    cluster = started(batch_job(completions=2, parallelism=2, backoffLimit=0), agents=True)
    bind_all(cluster)
    cluster.settle()
    end(cluster, pods(cluster)[0], 1)
    assert conditions(cluster) == failed_for("BackoffLimitExceeded")[:1]
    assert status(cluster, "terminating") == (1,)
    cluster.advance(30)
    assert conditions(cluster) == failed_for("BackoffLimitExceeded")
    assert status(cluster, "failed", "terminating") == (2, 0)


def test_a_job_may_be_active_for_so_long() -> None:
    cluster = started(batch_job(activeDeadlineSeconds=60))
    cluster.advance(59)
    assert conditions(cluster) == []
    cluster.advance(1)
    assert conditions(cluster) == failed_for("DeadlineExceeded")
    assert pods(cluster) == []
    assert ("DeadlineExceeded", "Job was active longer than specified deadline") in said(cluster)


def test_a_pod_that_somebody_deletes_has_failed_and_is_replaced() -> None:
    cluster = started(batch_job())
    cluster.delete("Pod", pods(cluster)[0]["metadata"]["name"])
    cluster.settle()
    assert len(pods(cluster)) == 1
    assert status(cluster, "failed") == (1,)


@pytest.mark.parametrize("policy", ["Failed", "TerminatingOrFailed"])
def test_who_is_on_the_way_out_is_has_failed_or_does_not_count(policy: str) -> None:
    cluster = started(batch_job(podReplacementPolicy=policy), agents=True)
    [name] = bind_all(cluster)
    cluster.settle()
    cluster.delete("Pod", name)
    cluster.settle()
    assert status(cluster, "failed", "terminating") == ((None, 1) if policy == "Failed" else (1, 1))
    cluster.advance(30)
    assert [pod["metadata"]["name"] == name for pod in pods(cluster)] == [False]


def test_a_code_may_end_the_job() -> None:
    cluster = started(batch_job(**rules(on_exit("FailJob", "In", 42))))
    [pod] = pods(cluster)
    end(cluster, pod, 42)
    assert conditions(cluster) == failed_for("PodFailurePolicy")
    name = f"default/{pod['metadata']['name']}"
    why = f"Container c for pod {name} failed with exit code 42 matching FailJob rule at index 0"
    assert ("PodFailurePolicy", why) in said(cluster)


def test_a_failure_may_count_for_nothing() -> None:
    condition = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    cluster = started(batch_job(backoffLimit=0, **rules(condition, on_exit("Count", "NotIn", 1))))
    [pod] = pods(cluster)
    disrupted = [{"type": "DisruptionTarget", "status": "True"}]
    cluster.status("Pod", pod["metadata"]["name"], {"conditions": disrupted})
    end(cluster, pod, 1)
    assert (conditions(cluster), status(cluster, "failed")) == ([], (None,))
    cluster.advance(10)
    end(cluster, pods(cluster, "Pending")[0], 2)
    assert conditions(cluster) == failed_for("BackoffLimitExceeded")


def test_a_pod_that_is_evicted_while_it_runs_may_count_for_nothing() -> None:
    ignored = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    cluster = started(batch_job(backoffLimit=0, **rules(ignored)), agents=True)
    [pod] = pods(cluster)
    cluster.bind(pod["metadata"]["name"], "n1")
    cluster.settle()
    assert pods(cluster, "Running")
    cluster.evict(pod["metadata"]["name"])
    cluster.advance(40)
    assert (conditions(cluster), status(cluster, "failed")) == ([], (None,))
    [another] = pods(cluster)
    assert another["metadata"]["uid"] != pod["metadata"]["uid"]
    cluster.bind(another["metadata"]["name"], "n1")
    cluster.settle()
    cluster.delete("Pod", another["metadata"]["name"])
    cluster.advance(40)
    assert conditions(cluster) == failed_for("BackoffLimitExceeded")
