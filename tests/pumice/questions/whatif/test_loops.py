"""Jobs that take each other's places are named: who, how often, and what the plugins said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pumice.cluster.kernel.fork import Fork
from pumice.questions.whatif.ask import live
from pumice.questions.whatif.future import EvictedPod
from pumice.questions.whatif.loops import EvictionLoop, loops_of
from tests.kit.jobs import job_task, vcjob
from tests.kit.nodes import node
from tests.kit.queues import queue
from tests.pumice.questions.whatif.clusters import BEGAN, parsed

RECLAIM = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
SHAPES = ((3, "2", "q1"), (4, "2", "q2"), (4, "2", "q1"), (3, "1", "q2"))


def eviction(at_s: float, job: str, by: str, pod: str = "") -> EvictedPod:
    return EvictedPod(at_s, pod or f"{job}-0", job, by, f"{by}-0", "reclaim", "", "n0")


def rings_in(pairs: Sequence[tuple[str, str]]) -> tuple[EvictionLoop, ...]:
    """Of evictions one second after the other."""
    return loops_of([eviction(at, *pair) for at, pair in enumerate(pairs)], {})


def test_two_jobs_that_evict_each_other_again_and_again_are_a_loop() -> None:
    (loop,) = rings_in([("a", "b"), ("b", "a")] * 3)
    assert (loop.jobs, loop.times, loop.period_s) == (("a", "b"), 6, 2.0)
    assert loop.pods == ("a-0", "b-0")


def test_for_whom_a_ring_loses_pods_besides_is_told_apart() -> None:
    (loop,) = rings_in([("a", "b"), ("b", "a"), ("a", "c"), ("b", "d"), ("a", "b"), ("b", "a"), ("b", "c")])
    assert (loop.jobs, loop.times, loop.by) == (("a", "b"), 4, ("c",))


def test_three_jobs_in_a_ring_are_one_loop() -> None:
    ring = [("c", "a"), ("a", "b"), ("b", "c")] * 2
    (loop,) = rings_in(ring)
    assert loop.jobs == ("a", "b", "c")


@pytest.mark.parametrize(
    "pairs",
    [
        [("a", "b"), ("b", "a")],
        [("a", "b")] * 4,
        [("a", "b"), ("b", "a"), ("a", "b"), ("b", "c"), ("b", "c")],
        [("a", ""), ("b", "")] * 3,
        [],
    ],
    ids=["once", "one way", "back once", "nobody", "none"],
)
def test_what_does_not_come_round_is_no_loop(pairs: list[tuple[str, str]]) -> None:
    assert rings_in(pairs) == ()


def test_five_jobs_in_a_ring_are_one_loop() -> None:
    ring = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "a")] * 2
    (loop,) = rings_in(ring)
    assert (loop.jobs, loop.period_s, loop.rounds) == (("a", "b", "c", "d", "e"), 5.0, 0)


def coming_back(*at_s: float, by: Sequence[str]) -> list[EvictedPod]:
    """Job a, evicted at these moments, back after a second."""
    return [replace(eviction(at, "a", who), returns_s=at + 1) for at, who in zip(at_s, by, strict=True)]


def test_a_job_that_comes_back_to_be_evicted_again_by_others_is_named() -> None:
    (loop,) = loops_of(coming_back(0, 10, 20, 35, by=["b", "c", "d", "b"]), {})
    assert (loop.jobs, loop.rounds, loop.times, loop.period_s, loop.by) == (("a",), 4, 4, 10.0, ("b", "c", "d"))
    (loop,) = loops_of(coming_back(0, 10, 20, by=["", "", ""]), {})
    assert (loop.rounds, loop.by, loop.actions) == (3, (), ("reclaim",))


def test_who_is_there_again_immediately_has_come_back() -> None:
    """But not by that for who was evicted together with it, nor by who came back then from an eviction before."""
    first, again = coming_back(0, 10, by=["", "b"])
    third = replace(again, at_s=20.0, returns_s=None)
    (loop,) = loops_of([replace(first, returns_s=0.0), again, third], {})
    assert (loop.rounds, loop.by) == (3, ("b",))
    assert loops_of([replace(first, returns_s=0.0), replace(first, returns_s=None), again], {}) == ()
    stays_away = replace(again, returns_s=None)
    assert loops_of([replace(first, returns_s=10.0), stays_away, third], {}) == ()


def test_who_only_shrinks_or_was_evicted_twice_does_not_come_round() -> None:
    shrinking = [eviction(at, "a", "b", f"a-{at}") for at in range(6)]
    assert loops_of(shrinking, {}) == loops_of(coming_back(0, 10, by=["b", "c"]), {}) == ()
    assert loops_of([eviction(at, "a", "b") for at in (0, 0.5, 1)], {}) == ()


def test_who_is_in_a_ring_is_not_named_twice() -> None:
    ring = [replace(eviction(at, *pair), returns_s=at + 1) for at, pair in enumerate([("a", "b"), ("b", "a")] * 4)]
    (loop,) = loops_of(ring, {})
    assert loop.jobs == ("a", "b")


def test_queues_that_reclaim_from_each_other_by_different_jobs_are_a_loop() -> None:
    """Of each queue one job loses pods for another one of the other queue: no job takes back what it lost."""
    where = {"a": "q1", "b": "q2", "c": "q1", "d": "q2", "e": "q3"}
    found = [eviction(at, *pair) for at, pair in enumerate([("a", "b"), ("d", "c"), ("e", "a")] * 4)]
    (loop,) = loops_of(found, where)
    assert (loop.queues, loop.jobs, loop.rounds) == (("q1", "q2"), ("a", "d"), 0)
    assert (loop.times, loop.period_s, loop.pods) == (8, 3.0, ("a-0", "d-0"))
    assert loops_of(found, {**where, "d": "q1"}) == loops_of(found[:3], where) == ()


def test_a_reclaiming_loop_is_found_with_its_votes() -> None:
    later: list[tuple[float, dict[str, Any]]] = []
    for place, (size, cpu, where) in enumerate(SHAPES):
        task = job_task(replicas=size, cpu=cpu, duration="0")
        marks = task["template"]["metadata"]["annotations"]
        marks["volcano.sh/preemptable"] = "true"
        later.append((place * 2.05, vcjob(f"j{place}", task, queue=where, min_available=1)))
    queues = [queue("q1", weight=2, deserved={"cpu": "3"}), queue("q2", deserved={"cpu": "3"})]
    nodes = [node("n0", cpu="3"), node("n1", cpu="3")]
    future = live(Fork((*nodes, *queues), BEGAN, parsed(RECLAIM), later=tuple(later)), 20.0)
    (loop,) = loops_of(future.evictions, {job: found.queue for job, found in future.jobs.items()})
    assert (loop.queues, loop.jobs) == (("q1", "q2"), ("default/j0", "default/j1"))
    assert (loop.times, loop.period_s) == (len(future.evictions), 1.1)
    assert loop.actions == ("reclaim",)
    assert any("conformance gave" in vote for votes in loop.votes.values() for vote in votes)
    assert any(each.returns_s is not None for each in future.evictions)
