"""Sums over the jobs of each queue, for whatever tables, in whatever turn."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.session.jobs import ByQueue

if TYPE_CHECKING:
    from pumice.core.state.dimensions import FloatArray

QUEUES = 3
heights = st.lists(st.integers(1, 4), min_size=1, max_size=3)


def sums_one_by_one(table: FloatArray, order: list[int], queue: list[int]) -> list[list[float]]:
    """[line][queue], added job by job."""
    found = [[0.0] * QUEUES for _ in table]
    for line, amounts in zip(found, table.tolist(), strict=True):
        for row in order:
            line[queue[row]] += amounts[row]
    return found


@given(st.lists(st.integers(0, QUEUES - 1), max_size=8), st.lists(heights, min_size=1, max_size=3), st.randoms())
def test_each_line_is_summed_in_job_order(queue: list[int], asked: list[list[int]], random: Any) -> None:
    order = random.sample(range(len(queue)), random.randint(0, len(queue)))
    jobs = SimpleNamespace(order=np.array(order, dtype=np.intp), queue=np.array(queue, dtype=np.int32))
    snapshot: Any = SimpleNamespace(jobs=jobs, queues=[None] * QUEUES)
    by_queue = ByQueue(snapshot)
    assert by_queue.rows.tolist() == [queue[row] for row in order]
    for shape in asked:  # more lines than before, then fewer
        tables = [np.array([[random.random() for _ in queue] for _ in range(height)]) for height in shape]
        sums: list[list[float]] = by_queue.sums(*tables).tolist()
        assert sums == [line for table in tables for line in sums_one_by_one(table, order, queue)]


@pytest.mark.parametrize("part", [0.0, 0.1, 0.6, 1.0])
def test_jobs_that_have_nothing_change_no_sum(part: float) -> None:
    """To the last digit: they may be left out."""
    random, count = Random(7), 500
    order, queue = random.sample(range(count), count - 5), [random.randrange(QUEUES) for _ in range(count)]
    jobs = SimpleNamespace(order=np.array(order, dtype=np.intp), queue=np.array(queue, dtype=np.int32))
    snapshot: Any = SimpleNamespace(jobs=jobs, queues=[None] * QUEUES)
    held = [random.random() < part for _ in queue]
    tables = [np.array([[random.random() * each for each in held] for _ in range(2)]) for _ in range(2)]
    by_queue = ByQueue(snapshot)
    for _ in range(2):
        sums: list[list[float]] = by_queue.sums(*tables).tolist()
        assert sums == [line for table in tables for line in sums_one_by_one(table, order, queue)]
    some = jobs.order[np.array(held)[jobs.order]]
    for table in tables:
        assert by_queue.among(some, table.take(some, axis=1)).tolist() == sums_one_by_one(table, order, queue)


def test_where_there_is_no_queue_there_is_no_sum() -> None:
    jobs = SimpleNamespace(order=np.zeros(0, dtype=np.intp), queue=np.zeros(0, dtype=np.int32))
    snapshot: Any = SimpleNamespace(jobs=jobs, queues=[])
    sums = ByQueue(snapshot).sums(np.zeros((4, 0)))
    assert sums.shape == (4, 0)
    assert sums.dtype == np.float64
