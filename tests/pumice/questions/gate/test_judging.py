"""Verdicts: each pair of what base and head come to, with and without noise."""

from __future__ import annotations

import msgspec
import pytest

from pumice.questions.gate.defaults import AGAIN, EQUAL, LOOPS, REFUSED, SYSTEM_PODS, UNSTARTED, defaults
from pumice.questions.gate.expectations import Expectation, expectation_of
from pumice.questions.gate.judging import Judgement, Pair, judge
from pumice.questions.gate.policy import DefaultLimits
from pumice.questions.gate.record import RecordedEviction, RecordedJob, RecordedLoop, RunRecord

LIMIT = expectation_of("in time", "wait.max", "<=", 10)
NO_WORSE = expectation_of("no worse", "wait.mean", "<=", "base + 10%")


def run(wait_s: float, **more: object) -> RunRecord:
    job = RecordedJob("default/j", submitted=0.0, started=wait_s, ended=wait_s + 1)
    return RunRecord(100.0, (job,), **{"idle": True, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        (5, 6, Judgement.OK),
        (5, 20, Judgement.FAILS),
        (20, 5, Judgement.FIXED),
        (20, 30, Judgement.BOTH),
        (0.1, 0.1, Judgement.EMPTY),
    ],
)
def test_a_bound_is_judged_on_both_sides(base: float, head: float, verdict: Judgement) -> None:
    assert judge(LIMIT, "w", [Pair(run(base), run(head))]).verdict is verdict


@pytest.mark.parametrize(
    ("bases", "heads", "verdict"),
    [
        ([5, 5, 5], [20, 20, 5], Judgement.FAILS),
        ([5, 5, 5], [20, 5, 5], Judgement.OK),
        ([5, 20, 5], [20, 20, 5], Judgement.UNDECIDED),
        ([20, 20, 5], [5, 5, 5], Judgement.FIXED),
    ],
)
def test_draws_decide_by_their_majority(bases: list[float], heads: list[float], verdict: Judgement) -> None:
    pairs = [Pair(run(one), run(other)) for one, other in zip(bases, heads, strict=True)]
    assert judge(LIMIT, "w", pairs).verdict is verdict


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [([8, 8, 8, 9], Judgement.FAILS), ([0, 0, 0, 0], Judgement.OK), ([-20, 30, -20, 30], Judgement.OK)],
)
def test_a_bound_of_base_is_judged_in_pairs(differences: list[float], verdict: Judgement) -> None:
    pairs = [Pair(run(40), run(40 + each)) for each in differences]
    assert judge(NO_WORSE, "w", pairs).verdict is verdict


def test_a_bound_of_base_does_not_judge_base() -> None:
    better = expectation_of("better", "wait.mean", "<", "base - 50%")
    found = judge(better, "w", [Pair(run(40), run(30))])
    assert (found.verdict, found.base_failed) == (Judgement.FAILS, 0)
    assert judge(better, "w", [Pair(run(40), run(10))]).verdict is Judgement.OK


@pytest.mark.parametrize(
    ("op", "differences", "verdict"),
    [
        ("<", [0, 0, 0], Judgement.FAILS),
        ("<", [-9, 2, -9], Judgement.OK),
        (">", [0, 0, 0], Judgement.FAILS),
        (">", [9, -2, 9], Judgement.OK),
        (">=", [-9, -9, -8], Judgement.FAILS),
        (">=", [-9, 9, -1], Judgement.OK),
    ],
)
def test_a_strict_bound_of_base_asks_for_a_difference(op: str, differences: list[float], verdict: Judgement) -> None:
    pairs = [Pair(run(40), run(40 + each)) for each in differences]
    assert judge(expectation_of("", "wait.mean", op, "base"), "w", pairs).verdict is verdict


@pytest.mark.parametrize(
    ("expectation", "base", "head", "verdict"),
    [
        (LIMIT, run(5), run(20, stopped="loop"), Judgement.FAILS),
        (LIMIT, run(5), run(5, stopped="loop"), Judgement.UNDECIDED),
        (LIMIT, run(20), run(20, stopped="loop"), Judgement.BOTH),
        (LIMIT, run(20), run(5, stopped="loop"), Judgement.BASE_FAILS),
        (LIMIT, run(20, stopped="loop"), run(5), Judgement.FIXED),
        (LIMIT, run(5, stopped="loop"), run(6), Judgement.OK),
        (LIMIT, run(5, stopped="loop"), run(20), Judgement.UNDECIDED),
        (LIMIT, run(20, stopped="loop"), run(20), Judgement.BOTH),
        (NO_WORSE, run(5, foreseen=True), run(20, stopped="limit"), Judgement.FAILS),
        (NO_WORSE, run(5), run(20, stopped="limit"), Judgement.UNDECIDED),
        (NO_WORSE, run(5, foreseen=True, stopped="loop"), run(20), Judgement.UNDECIDED),
    ],
)
def test_a_run_that_ended_early_decides_what_is_broken_for_good(
    expectation: Expectation, base: RunRecord, head: RunRecord, verdict: Judgement
) -> None:
    assert judge(expectation, "w", [Pair(base, head)]).verdict is verdict


@pytest.mark.parametrize(("op", "verdict"), [("==", Judgement.UNDECIDED), ("<=", Judgement.UNDECIDED)])
def test_a_count_that_may_still_come_is_not_broken(op: str, verdict: Judgement) -> None:
    few = tuple(msgspec.structs.replace(eviction(at), job="default/j") for at in range(100))
    expected = expectation_of("", "evictions", op, 400)
    pair = Pair(run(1, evictions=few * 4), run(1, evictions=few, stopped="loop"))
    assert judge(expected, "w", [pair]).verdict is verdict


def test_stakes_are_those_of_all_draws() -> None:
    found = judge(LIMIT, "w", [Pair(run(1), run(1)), Pair(run(1), run(9))])
    assert (found.verdict, found.stakes.waited) == (Judgement.OK, 1)


def test_a_scope_without_jobs_is_empty() -> None:
    nobody = expectation_of("", "wait.max[queue=none]", "<=", 10)
    found = judge(nobody, "w", [Pair(run(50), run(50))])
    assert (found.verdict, found.stakes.jobs) == (Judgement.EMPTY, 0)


def eviction(at: float, pod: str = "default/a-0", **more: object) -> RecordedEviction:
    usual = {"queue": "q", "priority": 5, "action": "preempt", "by": "default/b", "by_queue": "q", "by_priority": 9}
    return RecordedEviction(at, pod, "default/a", **{**usual, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        (EQUAL, run(1, evictions=(eviction(1, by_priority=5),))),
        (AGAIN, run(1, evictions=(eviction(1), eviction(300)))),
        (SYSTEM_PODS, run(1, evictions=(eviction(1, "kube-system/dns"),))),
        (LOOPS, run(1, loops=(RecordedLoop(("default/a",), 30),))),
        (REFUSED, run(1, refused=("Job default/x: not valid",))),
        (UNSTARTED, RunRecord(100.0, (RecordedJob("default/j"),), idle=True)),
    ],
)
def test_a_default_fails_where_only_head_breaks_it(name: str, broken: RunRecord) -> None:
    def verdict_of(base: RunRecord, head: RunRecord) -> Judgement:
        found = {each.name: each.verdict for each in defaults(DefaultLimits(), "w", Pair(base, head))}
        return found[name]

    assert verdict_of(run(1), broken) is Judgement.FAILS
    assert verdict_of(broken, run(1)) is Judgement.FIXED
    assert verdict_of(run(1), run(1)) is Judgement.OK
    assert name not in {each.name for each in defaults(DefaultLimits(off=(name,)), "w", Pair(run(1), broken))}


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        (EQUAL, (eviction(1, by_priority=5, by_queue="other"),)),
        (EQUAL, (eviction(1, by_priority=6),)),
        (AGAIN, (eviction(1), eviction(700))),
        (AGAIN, (eviction(1), eviction(2, "default/a-1"))),
    ],
)
def test_a_default_lets_what_is_meant_pass(name: str, kept: tuple[RecordedEviction, ...]) -> None:
    pair = Pair(run(1), run(1, evictions=kept))
    assert {each.name: each.verdict for each in defaults(DefaultLimits(), "w", pair)}[name] is Judgement.OK


def test_a_late_start_is_no_loss_where_a_horizon_cuts_it_off() -> None:
    late = RunRecord(1000.0, (RecordedJob("default/j", started=980.0),))
    never = RunRecord(1000.0, (RecordedJob("default/j"),))
    found = {each.name: each.verdict for each in defaults(DefaultLimits(), "w", Pair(late, never))}
    assert found[UNSTARTED] is Judgement.OK
