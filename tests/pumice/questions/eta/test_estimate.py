"""When jobs start: from runs that had ended by then, never from what pods say themselves."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from pumice.cluster.kernel.fork import Fork
from pumice.core.objects.metadata import Object, parse_time
from pumice.proof.bench.cycle import stock_config
from pumice.questions.eta import sampled
from pumice.questions.eta.estimate import Estimate, FutureSampling, estimates_of, likely_in, lived_s, range_in
from pumice.questions.eta.futures import without_the_past
from pumice.questions.eta.runs import EndedRun, GangFacts, RunBook, keys_of
from pumice.questions.eta.score import Scored, calibration_of, naive_of
from tests.kit.jobs import gang, job_task, vcjob
from tests.kit.nodes import nodes
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.queues import queue

BEGAN, NOW = parse_time("2026-01-01T00:00:00Z"), parse_time("2026-01-01T00:01:00Z")
FEW = FutureSampling(samples=10, horizon_s=3600.0)


def running(name: str, pods: int, **more: Any) -> list[Object]:
    """Since a minute, one on each node."""
    made = gang(name, pods=pods, cpu="3", phase="Running", nodes=[f"n{i}" for i in range(pods)], **more)
    for each in made:
        if each["kind"] == "Pod":
            each["status"]["startTime"] = "2026-01-01T00:00:00Z"
    return made


def cluster(*objects: Object) -> Fork:
    return Fork((*nodes(2, cpu="4"), queue("root"), queue("default"), *objects), NOW, stock_config())


def ended(*lasted: float, at: float = NOW - 1) -> list[EndedRun]:
    """Runs of pods like those of these tests."""
    made = gang("r", pods=1, cpu="3")[1]
    keys = keys_of("default", made["metadata"], made["spec"], GangFacts("default", 2))
    return [EndedRun(keys, each, at, f"default/e{number}") for number, each in enumerate(lasted)]


WAITING = gang("g", pods=2, cpu="3", phase="Inqueue", duration="5s")
BUSY = cluster(*running("r", 2, duration="600s"), *WAITING)


def test_estimates_are_the_same_by_several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    lone = estimates_of(BUSY, ended(100, 200, 300), FEW)
    monkeypatch.setattr(sampled, "PAYS", 0)
    monkeypatch.setattr(sampled, "cores", lambda: 3)
    told = list[int]()
    assert estimates_of(BUSY, ended(100, 200, 300), FEW, None, told.append, alone=False) == lone
    assert sum(told) == lived_s(FEW)


def test_a_range_from_earlier_runs_and_apart_from_it_what_the_pods_say() -> None:
    found = estimates_of(BUSY, ended(100, 200, 300, 400, 500), FEW)
    assert list(found) == ["default/g"]
    told = found["default/g"]
    assert told.known
    low, median, high = told.low_s or 0.0, told.likely_s or 0.0, told.high_s or math.inf
    assert {low, median} <= {40.0, 140.0, 240.0, 340.0, 440.0}
    assert low < median < high
    assert (told.said_s, told.basis) == (540.0, {"job": 2})


def test_what_the_pods_say_does_not_move_the_range() -> None:
    other = cluster(*running("r", 2, duration="70s"), *WAITING)
    runs = ended(100, 200, 300, 400, 500)
    one, two = (estimates_of(each, runs, FEW)["default/g"] for each in (BUSY, other))
    assert (one.said_s, two.said_s) == (540.0, 10.0)
    assert structs.replace(one, said_s=None) == structs.replace(two, said_s=None)


def test_only_what_had_ended_by_then_is_seen() -> None:
    late = ended(100, 200, 300, at=NOW + 1)
    told = estimates_of(BUSY, late, FEW)["default/g"]
    assert told == estimates_of(BUSY, [], FEW)["default/g"]
    assert not told.known
    assert (told.low_s, told.likely_s, told.high_s) == (None, None, None)
    assert "2 running pods" in told.why
    assert told.basis == {"nothing": 2}


def test_a_deadline_is_a_bound_when_nothing_else_is_known() -> None:
    made = running("r", 2)
    for each in made[1:]:
        each["spec"]["activeDeadlineSeconds"] = 360
    told = estimates_of(cluster(*made, *WAITING), [], FEW)["default/g"]
    assert told.known
    assert told.basis == {"activeDeadlineSeconds": 2}
    assert 0 < (told.low_s or 0.0) < (told.high_s or 0.0) <= 300.0
    assert told.said_s is None


def test_the_likely_start_is_that_of_pods_which_run_as_long_as_half_of_their_like() -> None:
    """One long run among many short ones: half of the futures draw it late, and the middle one does not."""
    runs = ended(*[100] * 6, 3000, 3000, 3000)
    told = estimates_of(BUSY, runs, replace(FEW, samples=40))["default/g"]
    assert (told.low_s, told.likely_s) == (40.0, 40.0)
    assert (told.high_s or math.inf) > 2900.0
    lone = cluster(*running("r", 1), *WAITING)
    assert estimates_of(lone, ended(100, 100, 200, 300, 300), FEW)["default/g"].likely_s == 140.0


@pytest.mark.parametrize(
    ("middle", "high", "likely"),
    [(7.0, 9.0, 7.0), (1.0, 9.0, 2.0), (99.0, 9.0, 9.0), (None, 9.0, 9.0), (None, None, 5.0), (99.0, None, 99.0)],
)
def test_the_likely_start_is_within_the_range(middle: float | None, high: float | None, likely: float) -> None:
    assert likely_in(middle, 2.0, 5.0, high) == likely


def test_a_pod_that_does_not_say_since_when_it_runs_is_one_that_runs() -> None:
    made = running("r", 2)
    for each in made[1:]:
        del each["status"]["startTime"]
    told = estimates_of(cluster(*made, *WAITING), [], FEW)["default/g"]
    assert told.basis == {"nothing": 2}
    assert "2 running pods" in told.why


def test_jobs_before_it_take_their_time_too() -> None:
    later = gang("h", pods=2, cpu="3", phase="Inqueue", created="2026-01-01T00:00:30Z")
    found = estimates_of(cluster(*running("r", 2), *WAITING, *later), ended(100, 100, 100, 100, 100), FEW)
    assert found["default/g"].likely_s == 40.0
    assert found["default/h"].likely_s == pytest.approx(140.0, abs=2.0)


def test_a_job_whose_pods_are_still_to_be_made() -> None:
    job = vcjob("train", job_task(replicas=2, cpu="3"))
    told = estimates_of(cluster(*running("r", 2), job), ended(100, 100, 100, 100, 100), FEW)
    assert told["default/train"].likely_s == pytest.approx(40.0, abs=2.0)


def test_what_never_starts_is_said_to_be_unknown() -> None:
    told = estimates_of(cluster(*gang("g", pods=1, cpu="9", phase="Inqueue")), [], FEW)["default/g"]
    assert (told.known, told.why) == (False, "in half of the sampled futures it does not start within 3600 s")


def test_the_same_question_gives_the_same_answer_and_another_seed_other_futures() -> None:
    runs = ended(*range(100, 1100, 7))
    assert estimates_of(BUSY, runs, FEW) == estimates_of(BUSY, runs, FEW)
    assert estimates_of(BUSY, runs, FEW) != estimates_of(BUSY, runs, replace(FEW, seed=1))


def test_only_who_is_asked_for() -> None:
    fork = cluster(*running("r", 2), *WAITING, *gang("h", pods=1, cpu="9", phase="Inqueue"))
    assert list(estimates_of(fork, ended(100, 100, 100, 100, 100), FEW, frozenset(["default/g"]))) == ["default/g"]


def test_jobs_that_are_over_change_nothing_and_are_left_out() -> None:
    done = vcjob("done", job_task(replicas=1))
    done["status"] = {"state": {"phase": "Completed"}}
    ended_pod = pod("done-worker-0", annotations={"volcano.sh/job-name": "done"}, node="n0", phase="Succeeded")
    failed_once = pod("g-x", annotations={"volcano.sh/job-name": "going"}, node="n0", phase="Failed")
    going = vcjob("going", job_task(replicas=1))
    fork = cluster(done, ended_pod, going, failed_once)
    kept = {obj["metadata"]["name"] for obj in without_the_past(fork).objects}
    assert kept == {"n0", "n1", "root", "default", "going", "g-x"}
    assert without_the_past(cluster(going)) == cluster(going)


def test_a_job_that_has_just_ended_does_not_wait_though_its_group_is_still_there() -> None:
    done = vcjob("done", job_task(replicas=1))
    done["status"] = {"state": {"phase": "Completed"}}
    group = pod_group("done-1", phase="Running")
    owner = {"kind": "Job", "name": "done", "uid": "u", "controller": True}
    owned = {**group, "metadata": {**group["metadata"], "ownerReferences": [owner]}}
    ended_pod = pod(
        "done-worker-0", group="done-1", annotations={"volcano.sh/job-name": "done"}, node="n0", phase="Succeeded"
    )
    fork = cluster(done, owned, ended_pod)
    assert estimates_of(fork, [], FEW) == {}
    other = cluster(done, pod_group("done", phase="Pending"))
    assert [obj for obj in without_the_past(other).objects if obj["kind"] == "PodGroup"]


@pytest.mark.parametrize(
    ("number", "said"), [(9, (1, 5, 9)), (10, (1, 5, 10)), (19, (2, 10, 18)), (20, (2, 10, 19)), (99, (10, 50, 90))]
)
def test_the_range_holds_eight_in_ten_of_what_comes_next(number: int, said: tuple[int, int, int]) -> None:
    """Of n + 1 alike one is as likely as any to be the next; where they do not part evenly it holds more."""
    assert range_in([float(each) for each in range(number, 0, -1)]) == said
    assert (said[2] - said[0]) / (number + 1) == pytest.approx(0.8, abs=0.03)


def test_later_than_all_is_beyond_every_other() -> None:
    assert range_in([5.0, None, 1.0, 3.0, 2.0, 4.0, 6.0, 7.0, 8.0]) == (1.0, 5.0, None)
    assert range_in([None, 2.0, None]) == (2.0, None, None)


def test_coverage_widths_and_errors() -> None:
    def one(low: float, median: float, high: float | None, came: float, naive: float | None) -> Scored:
        return Scored("j", 0.0, Estimate(True, low, median, high), came, naive)

    scored = [
        one(0.0, 10.0, 20.0, 12.0, 40.0), one(0.0, 10.0, 40.0, 50.0, 50.0), one(5.0, 10.0, None, 900.0, None),
        Scored("k", 0.0, Estimate(known=False), 3.0, 3.0),
    ]  # fmt: skip
    found = calibration_of(scored)
    assert (found.asked, found.known, found.width_s, found.endless) == (4, 3, 30.0, 1)
    assert found.coverage == pytest.approx(2 / 3)
    assert (found.compared, found.error_s, found.naive_error_s) == (2, 21.0, 14.0)
    assert calibration_of([]).coverage is None


def test_what_came_to_the_millisecond_is_in_the_range() -> None:
    exact = Estimate(True, 10.0, 10.0, 10.0)
    scored = [Scored(f"j{off}", 0.0, exact, 10.0 + off, None) for off in (-9.5e-8, 9.5e-8, -0.1, 0.1)]
    found = calibration_of(scored)
    assert (found.coverage, found.earlier, found.later) == (0.5, 1, 1)


def test_the_naive_estimate_is_the_work_before_it() -> None:
    book = RunBook(ended=ended(100, 100, 100, 100, 100), asked={"default/g": 0.0, "default/h": 1.0, "default/i": 2.0})
    later = gang("h", pods=2, cpu="3", phase="Inqueue", created="2026-01-01T00:00:30Z")
    made_later = vcjob("i", job_task(replicas=2, cpu="3"))
    naive = naive_of(cluster(*running("r", 2), *WAITING, *later, made_later), book)
    assert naive == {
        job: pytest.approx(at) for job, at in (("default/g", 30.0), ("default/h", 105.0), ("default/i", 180.0))
    }
    assert naive_of(cluster(*running("r", 2), *WAITING), RunBook())["default/g"] is None
