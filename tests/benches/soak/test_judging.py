"""What counts as flat, and that a table comes back from its file as it was."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.benches.soak.judging import Judged, SampleTable, compared, percentiles, read_table, table
from tests.benches.soak.trend import trend

MINUTES = 120
WARM_MINUTES = 10
CASES: list[tuple[Callable[[float], float], float, str]] = [
    (lambda minute: 300.0, 0.0, "flat"),
    (lambda minute: 300.0, 10.0, "flat"),
    (lambda minute: 300.0, 300.0, "unclear"),  # it may well have grown by a twentieth
    (lambda minute: 300 - minute, 5.0, "flat"),  # less is no growth
    (lambda minute: 300 + 0.5 * minute, 10.0, "GROWS"),  # a leak of 30 MB an hour
    (lambda minute: 300 + 0.1 * minute, 10.0, "flat"),  # 5.5 MB in the second half: less than a twentieth
    (lambda minute: 20 + 0.02 * minute, 0.1, "flat"),  # more than a twentieth, and less than the slack
    (lambda minute: 400 - 200 * math.exp(-minute / 20), 5.0, "flat"),  # it fills up to its bound
    (lambda minute: 300 + 2 * max(0, minute - 60), 5.0, "GROWS"),  # it begins late
    (lambda minute: 900.0 if 80 < minute < 88 else 300.0, 5.0, "flat"),  # a few minutes of something else
    (lambda minute: 300.0 if minute > WARM_MINUTES else 100.0, 0.0, "flat"),
]


def rows(value: Callable[[float], float], noise: float = 0.0, seed: int = 0) -> list[dict[str, float]]:
    """A sample each 6 s; `value` by minute."""
    chance = Random(seed)
    minutes = [each / 10 for each in range(1, MINUTES * 10 + 1)]
    return [{"t_s": 60 * each, "rss_mb": value(each) + chance.gauss(0, noise)} for each in minutes]


def word(value: Callable[[float], float], noise: float = 0.0, seed: int = 0) -> str:
    (verdict,) = compared(rows(value, noise, seed), 60.0 * WARM_MINUTES, [Judged("rss_mb", 2.0)])
    return verdict.word


@pytest.mark.parametrize(("value", "noise", "expected"), CASES)
def test_verdict_is_about_the_second_half(value: Callable[[float], float], noise: float, expected: str) -> None:
    assert word(value, noise) == expected


def test_verdict_on_noise_alone_is_seldom_growth() -> None:
    assert [word(lambda minute: 300.0, 30.0, seed) for seed in range(100)].count("GROWS") == 0


def test_verdict_on_a_leak_does_not_depend_on_the_noise() -> None:
    """37 MB in the second half, and noise of half as much."""
    assert {word(lambda minute: 300 + 40 * minute / 60, 18.0, seed) for seed in range(100)} == {"GROWS"}


def test_trend_bounds_hold_the_slope() -> None:
    held = 0
    for seed in range(200):
        chance = Random(seed)
        found = trend([(float(each), 2.0 * each + chance.gauss(0, 50)) for each in range(600)])
        assert found.low <= found.slope <= found.high
        held += found.low <= 2.0 <= found.high
    assert held >= 190  # each bound with 99 %


def test_trend_of_few_samples_has_no_bounds() -> None:
    assert trend([(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)]) == trend([(0.0, 1.0), (2.0, 3.0)])
    assert trend([(0.0, 1.0), (2.0, 3.0)]).high == math.inf
    with pytest.raises(ValueError, match="1 samples have no trend"):
        trend([(0.0, 1.0)])


def test_the_warm_up_counts_for_nothing() -> None:
    verdicts = compared(
        rows(lambda minute: 1.0 if minute <= WARM_MINUTES else 100.0),
        60.0 * WARM_MINUTES,
        [Judged("rss_mb"), Judged("absent")],
    )
    assert [(each.name, each.first, each.second, each.growth) for each in verdicts] == [("rss_mb", 100, 100, 0.0)]


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="3 samples after the warm-up are too few"):
        compared(rows(lambda minute: 1.0)[-3:], 0.0)


def test_what_grows_is_marked_in_the_text() -> None:
    text = table(compared(rows(lambda minute: 60 + minute), 60.0 * WARM_MINUTES, [Judged("rss_mb")]))
    cells = text.splitlines()[1].split()
    assert cells == ["rss_mb", "97.55", "152.55", "+60.00", "+60.00", "+60.00", "GROWS"]


def test_a_table_is_on_disk_row_by_row(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    written = SampleTable(path, ["t_s", "rss_mb", "lag_p50_ms"])
    written.add({"t_s": 5.0, "rss_mb": 321.5, "lag_p50_ms": 0.25})
    assert read_table(path) == [{"t_s": 5.0, "rss_mb": 321.5, "lag_p50_ms": 0.25}]
    written.add({"t_s": 10.0, "rss_mb": 1234567.0})
    assert read_table(path) == written.rows


def test_percentiles_are_of_values_that_were_there() -> None:
    assert percentiles([3.0, 1.0, 2.0]) == (2.0, 3.0)
    assert percentiles([float(each) for each in range(1, 1001)]) == (500.5, 991.0)
