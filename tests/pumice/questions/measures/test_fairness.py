"""Figures of fairness stay in their bounds and are what their sources say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.questions.measures.fairness import bounded_slowdown, jain, quantile

amounts = st.floats(0, 1e6, allow_subnormal=False).map(lambda value: round(value, 3))


@given(st.lists(amounts, min_size=1, max_size=20))
def test_jains_index_lies_between_one_for_all_and_all_for_one(shares: list[float]) -> None:
    index = jain(shares)
    if not any(shares):
        assert index is None
    else:
        assert index is not None
        assert 1 / len(shares) - 1e-9 <= index <= 1 + 1e-9


@pytest.mark.parametrize(("shares", "index"), [([3, 3, 3], 1.0), ([5, 0, 0, 0], 0.25), ([1, 3], 0.8), ([], None)])
def test_jains_index(shares: list[float], index: float | None) -> None:
    assert jain(shares) == index


@pytest.mark.parametrize(("wait", "run", "slowdown"), [(0, 1, 1), (9, 1, 1), (20, 1, 2.1), (100, 100, 2), (0, 0, 1)])
def test_short_jobs_do_not_seem_slow(wait: float, run: float, slowdown: float) -> None:
    assert bounded_slowdown(wait, run) == pytest.approx(slowdown)


@given(st.lists(amounts, min_size=1, max_size=20).map(sorted), st.floats(0, 1))
def test_a_quantile_lies_among_the_values(values: list[float], part: float) -> None:
    found = quantile(values, part)
    assert found is not None
    assert values[0] <= found <= values[-1] or found == pytest.approx(values[0]) or found == pytest.approx(values[-1])
    assert quantile(values, 0.0) == values[0]
    assert quantile(values, 1.0) == values[-1]
