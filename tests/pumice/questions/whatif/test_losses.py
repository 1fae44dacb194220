"""What preemption costs a job: pods that its policies kill besides, restarts, and the time that all had run."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.cluster.kernel.fork import Fork
from pumice.cluster.kernel.life import Life
from pumice.cluster.kube.statuses import timestamp
from pumice.questions.whatif import changes
from pumice.questions.whatif.ask import what_if
from pumice.questions.whatif.difference import ChangeCode
from pumice.questions.whatif.future import Future, JobFuture
from tests.kit.jobs import job_task, vcjob
from tests.kit.nodes import node
from tests.pumice.questions.whatif.clusters import BEGAN, parsed, priority_class

HOUR = 3600.0
CONFIG = """\
actions: "allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}, {name: predicates}]
"""
RESTARTS = [{"event": "PodEvicted", "action": "RestartJob"}]


def dumped(policies: list[dict[str, str]], max_retry: int) -> tuple[dict[str, Any], ...]:
    """A cluster that a job of four has run in for an hour; it had restarted twice before."""
    objects = (node("n0", cpu="4"), priority_class("low", 1), priority_class("high", 9))
    job = vcjob("victim", job_task(replicas=4, cpu="1", duration="5h"), priority_class="low", policies=policies)
    job["spec"]["maxRetry"] = max_retry
    job["spec"]["tasks"][0]["template"]["metadata"]["annotations"]["volcano.sh/preemptable"] = "true"
    life = Life(
        Fork((*objects, job), BEGAN - HOUR, parsed(CONFIG)), 0, lambda mutation, at: None, lambda result, at: None
    )
    life.run(10.0)
    there = life.fork().objects
    for obj in there:
        if obj["kind"] == "Pod":
            obj["status"]["startTime"] = timestamp(BEGAN - HOUR)
        elif obj["kind"] == "Job":
            obj["status"]["retryCount"] = 2
    return there


def asked(urgent_runs: str, policies: list[dict[str, str]], max_retry: int = 30) -> tuple[Any, Future]:
    urgent = vcjob("urgent", job_task(cpu="1", duration=urgent_runs), priority_class="high")
    fork = Fork(dumped(policies, max_retry), BEGAN, parsed(CONFIG))
    found = what_if(fork, [changes.submit([urgent], "urgent")], 100.0)
    return found.jobs["default/victim"], found.after


def losses(job: JobFuture) -> tuple[int, int, int]:
    return job.evictions, job.killed, job.restarts


@pytest.mark.parametrize("urgent_runs", ["20s", "2h"], ids=["made again", "not made again in time"])
def test_pods_that_a_policy_kills_are_counted_with_their_hours(urgent_runs: str) -> None:
    change, after = asked(urgent_runs, RESTARTS)
    assert change.code is ChangeCode.EVICTED_MORE
    assert losses(change.before) == (0, 0, 0)
    assert losses(change.after) == (1, 3, 1)
    assert change.after.lost_pod_s == pytest.approx(4 * HOUR, abs=200)
    (evicted,) = after.evictions
    assert evicted.ran_s == pytest.approx(HOUR, abs=10)
    queue = after.queues["default"]
    assert (queue.evicted, queue.killed, queue.restarts, queue.lost_pod_s) == (1, 3, 1, change.after.lost_pod_s)


def test_a_job_without_policies_loses_the_evicted_pod_alone() -> None:
    change, _ = asked("20s", [])
    assert losses(change.after) == (1, 0, 0)
    assert change.after.lost_pod_s == pytest.approx(HOUR, abs=10)


def test_a_job_that_fails_at_its_last_restart_loses_the_same() -> None:
    change, _ = asked("20s", RESTARTS, max_retry=3)
    assert losses(change.after) == (1, 3, 1)
    assert change.after.lost_pod_s == pytest.approx(4 * HOUR, abs=30)


def test_a_node_that_goes_takes_the_work_of_its_pods_along() -> None:
    fork = Fork((*dumped(RESTARTS, 30), node("n1", cpu="8")), BEGAN, parsed(CONFIG))
    found = what_if(fork, [changes.remove_node("n0")], 100.0)
    after = found.jobs["default/victim"].after
    assert after is not None
    assert (after.evictions, after.killed) == (4, 0)
    assert after.lost_pod_s == pytest.approx(4 * HOUR, abs=200)
