"""A series in stretches holds the same amount × time as the steps it was made of, however long the run."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.questions.measures.over_time import BINS, Grid, Steps

times = st.floats(0, 1e6, allow_nan=False).map(lambda at: round(at, 3))
steps = st.lists(st.tuples(times, st.integers(-50, 50)), max_size=30).map(sorted)


@given(steps, times)
def test_no_amount_is_lost_by_widening(changes: list[tuple[float, int]], more: float) -> None:
    series = Steps(Grid(100.0))
    for at, change in changes:
        series.add(change, 100.0 + at)
    end = (changes[-1][0] if changes else 0.0) + more + 1.0
    means = series.means(100.0 + end)
    level, exact = 0, 0.0
    for (at, change), (after, _) in pairwise([*changes, (end, 0)]):
        level += change
        exact += level * (after - at)
    width = series.grid.width
    lengths = [min(width, end - index * width) for index in range(len(means))]
    assert sum(mean * length for mean, length in zip(means, lengths, strict=True)) == pytest.approx(exact, abs=1e-3)
    assert series.total == pytest.approx(exact, abs=1e-3)
    assert len(means) <= BINS


def test_a_stretch_has_the_mean_of_what_was_in_it() -> None:
    series = Steps(Grid(0.0))
    series.set(4.0, 0.5)
    series.set(2.0, 2.0)
    assert series.means(3.5) == [2.0, 4.0, 2.0, 2.0]


def test_series_that_were_quiet_when_others_widened_them_all_have_as_many_stretches() -> None:
    grid = Grid(0.0)
    quiet, busy = Steps(grid), Steps(grid)
    quiet.set(1.0, 0.0)
    for at in range(5000):
        busy.add(1.0, float(at))
    assert len(quiet.means(5000.0)) == len(busy.means(5000.0)) <= BINS
    assert set(quiet.means(5000.0)) == {1.0}
