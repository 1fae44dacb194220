"""What else it takes beside objects that are named and not there: nothing is hidden behind them."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from pumice.core.configuration import parse_scheduler_config
from pumice.core.objects.metadata import Object
from pumice.core.session.carry import Carry, CycleClock
from pumice.questions.explain.advice.advise import Advice, advise, candidates, search_on
from pumice.questions.explain.advice.search import AdviceSearch
from pumice.questions.explain.advice.trial import Bench, budget
from pumice.questions.explain.scene import Scene
from pumice.questions.oneshot.cycles import fill
from pumice.questions.oneshot.expand import expanded
from pumice.work import WorkBudget, WorkOverError
from tests.kit.jobs import gang, job_task, vcjob
from tests.kit.nodes import node, taint
from tests.kit.priority_classes import priority_class
from tests.kit.queues import queue

NOW = 1_800_000_000.0
CONFIG = """\
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""
CLAIM = "create PersistentVolumeClaim lost, bound to a volume that all nodes reach"
CLASS = "create PriorityClass lost (value 0)"
TAINT = taint("a", "1")
FULL = [
    priority_class("middle", 5),
    *gang("r", pods=2, min_member=1, phase="Running", nodes=["n0", "n0"], priority_class="middle"),
]


def cordoned(name: str) -> Object:
    found = node(name)
    found.setdefault("spec", {})["unschedulable"] = True
    return found


def job(*, claims: tuple[str, ...] = (), **more: Any) -> Object:
    made = vcjob("j", job_task(replicas=2, cpu="1"), min_available=2, **more)
    volumes = [{"name": f"v-{claim}", "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    made["spec"]["tasks"][0]["template"]["spec"]["volumes"] = volumes
    made["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    return made


def scene(*objects: Object) -> Scene:
    given = expanded([queue("root"), queue("default"), *objects], NOW).objects
    config = parse_scheduler_config(CONFIG, source="test")
    return Scene(fill(given), config, CycleClock(1, NOW, 0), Carry(), objects=lambda: given)


def advised(*objects: Object) -> Advice:
    return advise(scene(*objects), "job", "default/j", 30.0)


HIDDEN = {
    "claim-taint": (
        [node("n0", taints=[TAINT]), job(claims=("lost",))],
        f"{CLAIM}; also tolerate taint a=1:NoSchedule",
    ),
    "claim-cordon": ([cordoned("n0"), job(claims=("lost",))], f"{CLAIM}; also uncordon node n0"),
    "claim-room": ([node("n0", cpu="1"), job(claims=("lost",))], f"{CLAIM}; also 1 cpu more on node n0"),
    "claims": (
        [node("n0"), job(claims=("lost", "gone"))],
        f"{CLAIM}; also create PersistentVolumeClaim gone, bound to a volume that all nodes reach",
    ),
    "class-cordon": ([cordoned("n0"), job(priority_class="lost")], f"{CLASS}; also uncordon node n0"),
    "class-claim": ([node("n0"), job(priority_class="lost", claims=("lost",))], f"{CLASS}; also {CLAIM}"),
    "class-room": ([node("n0", cpu="1"), job(priority_class="lost")], f"{CLASS}; also 1 cpu more on node n0"),
    "class-admission": (
        [node("n0"), queue("q", capability={"cpu": "1"}), job(priority_class="lost", queue="q")],
        f"{CLASS}; also queue q: capability cpu 2 instead of 1",
    ),
    "scheduler-room": (
        [node("n0", cpu="1"), job(scheduler="other")],
        "schedulerName volcano instead of other; also 1 cpu more on node n0",
    ),
    "class-worth": (
        [node("n0", cpu="3"), *FULL, job(priority_class="lost", claims=("lost",))],
        f"create PriorityClass lost (value 6); also {CLAIM}",
    ),
}


@pytest.mark.parametrize("case", HIDDEN)
def test_what_is_refused_next_is_found_behind_what_is_missing(case: str) -> None:
    objects, with_what = HIDDEN[case]
    said = advised(*objects)
    assert [each for each in said.sentences if each.startswith("2 of 2 fit") and each.endswith(f"with: {with_what}")]
    assert said.remark == ""


def test_what_is_missing_and_not_needed_is_not_asked_for() -> None:
    """Pods that are there do not wait for the class that their PodGroup names."""
    whole = gang("j", pods=2, priority_class="lost", phase="Inqueue")
    for obj in whole:
        if obj["kind"] == "Pod":
            obj["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "lost"}}]
    found = advise(scene(cordoned("n0"), *whole), "podgroup", "default/j", 30.0)
    assert found.sentences == [f"2 of 2 fit with: {CLAIM}; also uncordon node n0"]


def test_how_far_each_comes_by_itself_is_said_also_of_what_is_there_only_with_another() -> None:
    found = advised(node("n0", taints=[TAINT]), job(priority_class="lost"))
    assert [each["alone"] for each in found.data] == [[0, 0], [0, 0]]


@pytest.mark.parametrize("looks", range(0, 60, 4))
def test_time_that_is_over_anywhere_is_said_and_what_was_found_is_kept(looks: int) -> None:
    left = [10**9]

    class Looks(WorkBudget):
        def demand(self, units: float = 0.0) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise WorkOverError

    here = scene(cordoned("n0"), job(priority_class="lost"))
    bench = Bench.of(here, next(key for key, one in here.view.jobs.by_key.items() if one.spec), Looks(inf))
    search = AdviceSearch(bench, bench.attempt())
    left[0] = looks
    search_on(bench, search, candidates)
    over = left[0] < 0
    assert over == (search.tried < search.known or any(not one.least or not one.alone for one in search.found))
    assert here.view.check() == bench.view.check() == []


def test_nothing_is_looked_for_behind_what_is_there() -> None:
    here = scene(cordoned("n0"), job())
    bench = Bench.of(here, next(key for key, one in here.view.jobs.by_key.items() if one.spec), budget(30.0))
    search = AdviceSearch(bench, bench.attempt())
    search_on(bench, search, candidates)
    assert (search.tried, search.known, search.found) == (0, 0, [])
