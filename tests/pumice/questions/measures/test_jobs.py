"""A job's row says what became of it, from the api's changes and the scheduler's decisions alone."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.cluster.kube.statuses import timestamp
from pumice.core.messages.decisions import Evict
from pumice.core.messages.events import Evicted, EvictRefused
from pumice.core.objects.metadata import Object
from tests.kit import gang, job_task, node, pod, pod_group, vcjob
from tests.pumice.questions.measures.told import BEGAN, Told, on


def one_pod(bound_at: float | None = None) -> tuple[Told, Object, Object]:
    """Tell of a PodGroup and its only pod at 0; the pod is bound at `bound_at`."""
    told = Told()
    group, only = gang("g", pods=1)
    told(0, group, "ADDED")
    told(0, only, "ADDED")
    if bound_at is not None:
        told(bound_at, on(only, "n0"))
    return told, group, only


def evicts(obj: dict[str, Any], by: str) -> Evict:
    meta = obj["metadata"]
    return Evict(meta["namespace"], meta["name"], meta["uid"], "n0", "", "", by, "preempt")


def answer(obj: dict[str, Any], kind: Any) -> Any:
    meta = obj["metadata"]
    return kind("1/u", 1, meta["namespace"], meta["name"], meta["uid"])


@pytest.mark.parametrize(
    ("name", "amount", "cards"), [("nvidia.com/gpu", "2", 2.0), ("alibabacloud.com/gpu-milli", "1500", 1.5)]
)
def test_cards_are_counted_in_whole_ones(name: str, amount: str, cards: float) -> None:
    told = Told()
    group, only = gang("g", pods=1, extra={name: amount})
    for obj in (group, only):
        told(0, obj, "ADDED")
    told.end(1)
    (row,) = told.rows
    assert row.gpu == cards


def test_a_gang_has_started_when_as_many_run_as_it_needs() -> None:
    told = Told()
    group, first, second = gang("g", pods=2)
    told(0, group, "ADDED")
    told(1, first, "ADDED")
    told(1, second, "ADDED")
    told(2, {**group, "status": {"phase": "Inqueue"}})
    told(5, on(first, "n0", "Pending"))
    told(6, on(first, "n0"))
    told(8, on(second, "n0"))
    told(28, on(first, "n0", "Succeeded"))
    told(30, on(second, "n0", "Succeeded"))
    told.end(40)
    (row,) = told.rows
    assert (row.submitted, row.admitted, row.first_bound, row.last_bound, row.started, row.ended) == (0, 2, 5, 8, 8, 30)
    assert (row.wait_s, row.run_s, row.response_s, row.bounded_slowdown) == (8, 22, 30, 1.3636)
    assert (row.state, row.pods, row.attempts, row.evictions, row.lost_pod_s) == ("Completed", 2, 2, 0, 0)


def test_job_whose_pods_run_one_after_the_other_has_not_started() -> None:
    told = Told()
    group, first, second = gang("g", pods=2)
    for obj in (group, first, second):
        told(0, obj, "ADDED")
    told(1, on(first, "n0"))
    told(5, on(first, "n0", "Failed"))
    told(6, on(second, "n0"))
    told(9, on(second, "n0", "Succeeded"))
    told.end(10)
    (row,) = told.rows
    assert (row.started, row.wait_s, row.ended, row.bounded_slowdown, row.state) == (None, None, 9.0, None, "Failed")
    assert row.lost_pod_s == 4.0


def test_job_that_starts_before_its_group_is_let_in_waits_for_admission_until_then() -> None:
    told, group, only = one_pod()
    told(3, on(only, "n0"))
    told(7, {**group, "status": {"phase": "Running"}})
    told.end(10)
    (row,) = told.rows
    assert (row.admitted, row.wait_s, row.admission_s, row.scheduling_s) == (7.0, 3.0, 3.0, 0.0)


def test_what_an_evicted_pod_had_done_is_lost() -> None:
    told, _, only = one_pod(bound_at=2)
    told.decides(12, evicts(only, "ns/other"))
    told.decides(12, answer(only, Evicted))
    told(14, on(only, "n0"), "DELETED")
    again = {**only, "metadata": {**only["metadata"], "uid": "another"}}
    told(15, again, "ADDED")
    told(20, on(again, "n0"))
    told.end(30)
    (row,) = told.rows
    cpu = only["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    assert (row.evictions, row.pods, row.attempts, row.state) == (1, 1, 2, "Running")
    assert (row.lost_pod_s, row.lost_cpu_s) == (12.0, 12.0 * int(cpu))
    assert (row.started, row.ended) == (2.0, None)


def test_an_eviction_that_was_refused_is_none() -> None:
    told, _, only = one_pod(bound_at=2)
    told.decides(12, evicts(only, "ns/other"))
    told.decides(12, answer(only, EvictRefused))
    told(14, on(only, "n0"), "DELETED")
    told.end(30)
    (row,) = told.rows
    assert (row.evictions, row.lost_pod_s) == (0, 0.0)


def test_a_deletion_may_be_written_before_the_answer_to_the_eviction() -> None:
    told, _, only = one_pod(bound_at=2)
    told.decides(12, evicts(only, "ns/other"))
    told(12, on(only, "n0"), "DELETED")
    told.decides(12, answer(only, Evicted))
    told.end(30)
    assert [row.evictions for row in told.rows] == [1]


def test_a_job_of_which_nothing_is_left_is_handed_on_and_forgotten() -> None:
    told, group, only = one_pod(bound_at=2)
    told(3, on(only, "n0", "Succeeded"))
    told(4, group, "DELETED")
    assert told.rows == []
    told(5, only, "DELETED")
    assert [row.job for row in told.rows] == [f"{only['metadata']['namespace']}/g"]
    assert not told.lives.pods
    told.end(10)
    assert len(told.rows) == 1


def test_a_plain_pod_is_counted_with_the_group_that_it_gets() -> None:
    told = Told()
    alone = pod("p")
    told(0, alone, "ADDED")
    group = pod_group("podgroup-1", queue="research")
    told(1, group, "ADDED")
    grouped = {
        **alone,
        "metadata": {**alone["metadata"], "annotations": {"scheduling.k8s.io/group-name": "podgroup-1"}},
    }
    told(2, grouped)
    told(3, on(grouped, "n0"))
    found = told.end(10)
    (row,) = told.rows
    assert (row.job.split("/")[1], row.queue, row.submitted, row.wait_s) == ("podgroup-1", "research", 0.0, 3.0)
    (queue,) = found.queues
    assert queue.queue == "research"
    assert queue.resources["cpu"]["requested_s"] == 10.0
    assert queue.resources["cpu"]["held_s"] == 7.0


def test_what_is_free_beside_somebody_is_torn() -> None:
    told = Told()
    told(0, node("n0"), "ADDED")
    told(0, node("n1"), "ADDED")
    group, only = gang("g", pods=1)
    told(0, group, "ADDED")
    told(0, only, "ADDED")
    before = told.measuring.usage.fragmentation("cpu", BEGAN + 4)
    told(4, on(only, "n0"))
    found = told.end(8)
    whole = found.summary["resources"]["cpu"]["capacity_s"] / 8 / 2
    held = found.summary["resources"]["cpu"]["held_s"] / 4
    assert set(before) == {0.0}
    after = next(one for one in found.series if (one.what, one.resource) == ("fragmentation", "cpu")).values
    assert after[5] == float(f"{(whole - held) / (2 * whole - held):.12g}")


def test_a_job_that_makes_its_pods_again_has_not_ended() -> None:
    told, train, one = Told(), vcjob("train", job_task()), pod("train-0", annotations={"volcano.sh/job-name": "train"})
    told(0, train)
    told(1, one)
    told(2, on(one, "n0"))
    told(3, one, "DELETED")
    told(3, {**train, "status": {"state": {"phase": "Restarting"}}})
    told.end(9)
    assert [(row.state, row.ended) for row in told.rows] == [("Restarting", None)]


def test_pods_that_a_restart_kills_have_worked_in_vain() -> None:
    """One is evicted, and RestartJob takes the others, one of which had succeeded. All ran before the journal."""
    told = Told()
    group, *pods = gang("g", pods=3)
    job = {"kind": "Job", "metadata": {**group["metadata"]}, "spec": {"minAvailable": 3}}
    group["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "g", "controller": True}]
    told(0, {**job, "status": {"state": {"phase": "Running"}}}, "ADDED")
    told(0, group, "ADDED")
    for each in pods:
        running = on(each, "n0")
        running["status"]["startTime"] = timestamp(BEGAN - 88)
        told(0, running, "ADDED")
    told(2, on(pods[2], "n0", "Succeeded"))
    told.decides(10, evicts(pods[0], "ns/other"))
    told.decides(10, answer(pods[0], Evicted))
    for second, each in enumerate(pods, start=12):
        told(second, on(each, "n0", "Succeeded" if each is pods[2] else "Running"), "DELETED")
    told(15, {**job, "status": {"state": {"phase": "Restarting"}, "retryCount": 1}})
    for each in pods:
        told(16, {**each, "metadata": {**each["metadata"], "uid": f"{each['metadata']['uid']}-2"}}, "ADDED")
    found = told.end(30)
    (row,) = told.rows
    assert (row.evictions, row.killed, row.restarts) == (1, 2, 1)
    assert row.lost_pod_s == (12 + 88) + (13 + 88) + (2 + 88)
    (queue,) = found.queues
    assert (queue.killed, queue.restarts, found.summary["killed"], found.summary["restarts"]) == (2, 1, 2, 1)


def test_waits_count_jobs_that_never_start_until_the_end() -> None:
    told = Told()
    for number in range(4):
        group, only = gang(f"g{number}", pods=1)
        told(number, group, "ADDED")
        told(number, only, "ADDED")
        if number == 0:
            told(5, on(only, "n0"))
    found = told.end(103)
    (queue,) = found.queues
    waits = [5.0, 102.0, 101.0, 100.0]
    assert (queue.jobs, queue.unstarted, queue.mean_wait_s) == (4, 3, sum(waits) / 4)
    assert (found.summary["unstarted"], found.summary["mean_wait_s"]) == (3, sum(waits) / 4)
    assert (found.summary["p95_wait_s"] or 0.0) > 100
    assert [row.wait_s for row in told.rows] == [5.0, None, None, None]


def test_the_class_of_who_names_none_is_the_global_default() -> None:
    told = Told()
    for name, value, default in (("high", 10, True), ("low", 5, True), ("lower", 1, False)):
        told(
            0, {"kind": "PriorityClass", "metadata": {"name": name}, "value": value, "globalDefault": default}, "ADDED"
        )
    unnamed, named = gang("a", pods=1), gang("b", pods=1)
    named[0]["spec"]["priorityClassName"] = "lower"
    for obj in (*unnamed, *named, pod("alone")):
        told(1, obj, "ADDED")
    told.end(2)
    assert {row.job.partition("/")[2]: row.priority_class for row in told.rows} == {
        "a": "low",
        "b": "lower",
        "alone": "low",
    }


def test_utilisation_begins_with_the_first_job() -> None:
    told = Told()
    told(0, node("n0", cpu="4"), "ADDED")
    group, only = gang("g", pods=1, cpu="4")
    told(900, group, "ADDED")
    told(900, only, "ADDED")
    told(900, on(only, "n0"))
    cpu = told.end(1000).summary["resources"]["cpu"]
    assert (cpu["utilisation"], cpu["capacity_s"], cpu["held_s"]) == (1.0, 400.0, 400.0)
