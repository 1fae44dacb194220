"""What is known of durations: survival of runs like a pod, the nearest of which there are enough."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.questions.eta.durations import Knowledge, Survival
from pumice.questions.eta.runs import EndedRun, RunKeys

KEYS = RunKeys("default/train/worker", "2×t1", "t1", "q1")
SECONDS = st.floats(0.1, 1e6)
PARTS = st.floats(0.0, 0.999)


def runs(keys: RunKeys, *lasted: float) -> list[EndedRun]:
    """Each of a job of its own."""
    return [EndedRun(keys, each, 0.0, f"{keys.job}-{number}") for number, each in enumerate(lasted)]


def survival_of(ended: list[float], going_on: list[float]) -> Survival:
    return Survival.of([*ended, *going_on], [True] * len(ended) + [False] * len(going_on))


def test_without_runs_that_go_on_the_quantiles_are_those_of_the_runs() -> None:
    survival = survival_of([100.0, 200.0, 300.0, 400.0, 500.0], [])
    assert [survival.quantile(part) for part in (0.1, 0.2, 0.5, 0.9, 0.999)] == [100.0, 100.0, 300.0, 500.0, 500.0]


def test_who_has_run_for_long_is_none_of_the_short_ones() -> None:
    survival = survival_of([100.0, 200.0, 300.0, 400.0, 500.0], [])
    assert [survival.quantile(part, 250.0) for part in (0.0, 0.3, 0.5, 0.9)] == [300.0, 300.0, 400.0, 500.0]


def test_beyond_the_longest_run_twice_as_long_is_half_as_likely() -> None:
    survival = survival_of([100.0], [])
    assert survival.quantile(0.5, 300.0) == 600.0
    assert survival.quantile(0.999, 300.0) == pytest.approx(30_000.0)


def test_runs_that_go_on_count_as_longer_than_they_have_lasted() -> None:
    """Only short ones have ended yet: half of all are still running after 1,000 s."""
    ended, going_on = [10.0, 20.0], [1000.0, 1000.0]
    assert survival_of(ended, []).quantile(0.75) == 20.0
    assert survival_of(ended, going_on).quantile(0.75) == pytest.approx(40.0)
    assert survival_of(ended, going_on).quantile(0.25) == 10.0


@given(st.lists(SECONDS, min_size=1, max_size=30), st.lists(SECONDS, max_size=30), SECONDS, PARTS, PARTS)
def test_a_quantile_is_no_shorter_than_what_has_passed_and_rises_with_the_chance(
    ended: list[float], going_on: list[float], elapsed: float, one: float, other: float
) -> None:
    survival = survival_of(ended, going_on)
    low, high = (survival.quantile(part, elapsed) for part in sorted((one, other)))
    assert elapsed <= low <= high <= 100.001 * max(elapsed, *ended)


@given(st.lists(SECONDS, min_size=1, max_size=30), PARTS)
def test_so_many_of_the_runs_are_shorter(ended: list[float], part: float) -> None:
    found = survival_of(ended, []).quantile(part)
    assert sum(each < found for each in ended) <= min(part, 0.99) * len(ended) + 1e-6 * len(ended)
    assert sum(each <= found for each in ended) >= min(part, 0.99) * len(ended) - 1e-6 * len(ended)


def test_the_nearest_kind_of_which_there_are_enough() -> None:
    of_job, of_template, of_queue = (
        runs(KEYS, 1, 1, 1),
        runs(RunKeys("default/other/worker", "4×t1", "t1", "q2"), 5, 5, 5, 5, 5),
        runs(RunKeys("default/x/", "1×t9", "t9", "q1"), *[9.0] * 10),
    )
    knows = Knowledge([*of_job, *of_template, *of_queue], [])
    assert (knows.source(KEYS), knows.drawn().lasts(KEYS, 0.5)) == ("job", 1.0)
    assert Knowledge([*of_job[1:], *of_template, *of_queue], []).source(KEYS) == "template"
    queue = Knowledge([*of_job[1:], *of_template[3:], *of_queue], [])
    assert (queue.source(KEYS), queue.drawn().lasts(KEYS, 0.5)) == ("queue", 9.0)
    cluster = Knowledge([*of_job[1:], *of_queue], [])
    assert cluster.source(KEYS._replace(queue="q9")) == "cluster"
    nothing = Knowledge([*of_job[1:], *of_queue[3:]], [])
    assert (nothing.source(KEYS), nothing.drawn().lasts(KEYS, 0.5)) == ("", None)


def test_pods_of_one_job_are_one_run_for_they_end_together() -> None:
    alike = [EndedRun(KEYS, each, 0.0, "default/train") for each in (10.0, 20.0, 30.0)]
    assert Knowledge(alike, []).source(KEYS) == ""
    three = Knowledge([run._replace(whose=f"{run.whose}-{n}") for n in range(3) for run in alike], [])
    assert (three.source(KEYS), three.drawn().lasts(KEYS, 0.5)) == ("job", 20.0)


def test_few_runs_may_mean_many_things_and_many_hardly_more_than_one() -> None:
    def spread(runs_of: list[EndedRun]) -> float:
        medians = [Knowledge(runs_of, []).drawn(seed).lasts(KEYS, 0.5) or 0.0 for seed in range(40)]
        return max(medians) - min(medians)

    assert spread(runs(KEYS, *range(100, 1000, 300))) > 3 * spread(runs(KEYS, *range(100, 1000, 3)))
    knows = Knowledge(runs(KEYS, *range(100, 1000, 300)), [])
    assert [knows.drawn(7).lasts(KEYS, 0.5) for _ in range(2)] == [knows.drawn(7).lasts(KEYS, 0.5)] * 2


def test_a_template_without_runs_may_be_like_any_one_of_the_others() -> None:
    short, long = (RunKeys(f"default/{name}/", f"1×{name}", name, "q1") for name in ("short", "long"))
    knows = Knowledge([*runs(short, *[10.0] * 20), *runs(long, *[1000.0] * 20)], [])
    asked = RunKeys("default/new/", "1×new", "new", "q1")
    parts = [sum(knows.drawn(seed).lasts(asked, part / 20) == 10.0 for part in range(20)) / 20 for seed in range(40)]
    assert min(parts) < 0.2
    assert max(parts) > 0.8


def test_the_next_run_may_be_the_longest_of_all() -> None:
    """Of nine runs one in ten is longer than all of them."""
    drawn = Knowledge(runs(KEYS, *range(10, 100, 10)), []).drawn()
    assert [drawn.lasts(KEYS, part) for part in (0.05, 0.55, 0.89)] == [10.0, 60.0, 90.0]
    assert (drawn.lasts(KEYS, 0.95) or 0.0) == pytest.approx(180.0)


def test_who_has_long_outlived_all_that_ended_says_that_runs_are_long() -> None:
    """Two that go on, a thousand times as long as any that has ended: who has come so far goes on longer."""
    short = runs(KEYS, 10, 10, 10, 10)
    longer = [EndedRun(KEYS, 10_000.0, 0.0, f"long-{number}") for number in range(2)]

    def expected(knows: Knowledge) -> float:
        return statistics.median(knows.drawn(seed).lasts(KEYS, 0.5, 20_000.0) or 0.0 for seed in range(60))

    assert expected(Knowledge(short, [])) == pytest.approx(42_000.0, rel=0.15)
    assert expected(Knowledge(short, longer)) > 200_000.0
    assert Knowledge(short, longer).drawn().lasts(KEYS, 0.5, 20_000.0) == 40_000.0


def test_how_runs_become_fewer_beyond_the_longest_is_not_certain() -> None:
    knows = Knowledge(runs(KEYS, *[10.0] * 200), [])
    drawn = [knows.drawn(seed).lasts(KEYS, 0.5, 100.0) or 0.0 for seed in range(200)]
    assert sum(each < 200.0 for each in drawn) == pytest.approx(100, abs=45)
    assert min(drawn) < 160.0
    assert max(drawn) > 300.0


def test_runs_that_began_together_weigh_together() -> None:
    """An hour of long runs among hours of short ones: some futures are like that hour."""

    def at(began: float, lasted: float, number: int) -> EndedRun:
        return EndedRun(KEYS, lasted, began + lasted, f"default/{number}")

    mixed = [
        at(3600.0 * hour + place, 1000.0 if hour == 4 else 10.0, 10 * hour + place)
        for hour in range(10)
        for place in range(10)
    ]
    apart = [
        at(3600.0 * (number // 10) + number % 10, 1000.0 if number % 10 == 4 else 10.0, number) for number in range(100)
    ]

    def share(knows: Knowledge, seed: int) -> float:
        drawn = [knows.drawn(seed).lasts(KEYS, place / 50) for place in range(50)]
        return drawn.count(1000.0) / (drawn.count(10.0) + drawn.count(1000.0))

    def spread(known: list[EndedRun]) -> float:
        return statistics.stdev(share(Knowledge(known, []), seed) for seed in range(60))

    assert spread(mixed) > 1.3 * spread(apart)


def test_a_deadline_bounds_what_is_known_and_is_all_that_is_known_else() -> None:
    knows = Knowledge(runs(KEYS, 100, 100, 100), [])
    assert knows.drawn().lasts(KEYS, 0.5, 0.0, 60.0) == 60.0
    assert knows.drawn().lasts(KEYS, 0.5, 80.0, 60.0) == 80.0
    nobody = Knowledge([], [])
    assert nobody.source(KEYS, 60.0) == "activeDeadlineSeconds"
    assert nobody.drawn().lasts(KEYS, 0.25, 20.0, 60.0) == 30.0
