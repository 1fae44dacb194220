"""Columns of queues' numbers, and the dictionaries they stand for."""

from __future__ import annotations

from math import nan

from hypothesis import given
from hypothesis import strategies as st

from pumice.core.messages.queue_tables import QueueColumns

Numbers = dict[str, dict[str, float]]

numbers = st.dictionaries(
    st.sampled_from("pqr"), st.dictionaries(st.sampled_from("abc"), st.floats(allow_nan=False)), max_size=3
)


def columns_of(of_queues: Numbers) -> QueueColumns:
    metrics = sorted({metric for of_queue in of_queues.values() for metric in of_queue})
    return QueueColumns(
        list(of_queues), {metric: [of_queue.get(metric, nan) for of_queue in of_queues.values()] for metric in metrics}
    )


@given(numbers)
def test_there_and_back(of_queues: Numbers) -> None:
    assert columns_of(of_queues).by_queue() == of_queues


@given(numbers, numbers)
def test_beside_each_other_the_other_counts(left: Numbers, right: Numbers) -> None:
    both = columns_of(left).beside(columns_of(right)).by_queue()
    assert both == {queue: {**left.get(queue, {}), **right.get(queue, {})} for queue in {**left, **right}}
