"""The water-fill: equal to the plain one to the last bit, and what every fair division must satisfy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.plugins.proportion import Basin, fill
from pumice.core.resources import Resource
from tests.core.plugins.proportion.plain_fill import PlainQueue, plain_fill

if TYPE_CHECKING:
    from pumice.core.state.dimensions import FloatArray

NAMES = ("cpu", "memory", "pods", "nvidia.com/gpu")
GIB = 1024.0**3
amounts = st.integers(0, 40).map(float)
maybe = st.none() | amounts


def resource(values: list[float | None]) -> Resource:
    """From amounts by dimension; None: not named."""
    scalars = {name: v for name, v in zip(NAMES[2:], values[2:], strict=True) if v is not None}
    return Resource((values[0] or 0.0) * 250, (values[1] or 0.0) * GIB, scalars or None)


resources = st.lists(maybe, min_size=4, max_size=4).map(resource)


@st.composite
def plain_queues(draw: Any) -> PlainQueue:
    request, guarantee = draw(resources), draw(st.just(Resource()) | resources)
    real = draw(resources)
    if draw(st.booleans()):
        real.milli_cpu = real.memory = 1e18
    return PlainQueue(draw(st.integers(0, 9)), request, real, guarantee)


def column(value: Resource, absent: float) -> list[float]:
    """float by dimension."""
    scalars = value.scalars or {}
    return [value.milli_cpu, value.memory, *(scalars.get(name, absent) for name in NAMES[2:])]


def basin_of(total: Resource, queues: list[PlainQueue]) -> Basin:
    def columns(which: str, absent: float) -> FloatArray:
        lines = [column(getattr(queue, which), absent) for queue in queues]
        return np.array(lines, dtype=np.float64).reshape(len(queues), len(NAMES)).T.copy()

    return Basin(
        total=np.array(column(total, 0.0)),
        weight=np.array([queue.weight for queue in queues], dtype=np.int64),
        request=columns("request", 0.0),
        real=columns("real", np.inf),
        guarantee=columns("guarantee", 0.0),
        names_scalars=np.array([bool(total.scalars or queue.guarantee.scalars) for queue in queues], dtype=np.bool_),
        has_zero_scalar=0.0 in (total.scalars or {}).values(),
    )


@given(resources, st.lists(plain_queues(), max_size=6))
def test_equals_the_plain_one_bit_by_bit(total: Resource, queues: list[PlainQueue]) -> None:
    poured, filled = fill(basin_of(total, queues))
    assert plain_fill(total, queues) == filled
    for row, queue in enumerate(queues):
        assert poured[:, row].tolist() == column(queue.deserved, 0.0)


def test_a_queue_that_can_have_nothing_still_counts_in_the_second_pass() -> None:
    """In the first pass its deserved comes to name the cluster's scalars, which is a change."""
    total = Resource(25.0, 0.0, {"pods": 0.0})
    queues = [
        PlainQueue(5, Resource(5000.0), Resource(0.0, 0.0), Resource()),
        PlainQueue(1, Resource(5000.0), Resource(1e18, 1e18), Resource()),
    ]
    poured, _ = fill(basin_of(total, queues))
    plain_fill(total, queues)
    assert poured[0].tolist() == [queue.deserved.milli_cpu for queue in queues]
    assert poured[0, 1] == 25.000000000000004  # two passes would give 25, to the last bit


def test_what_weights_below_zero_give_back_is_poured_again() -> None:
    """When the last queue has what it asks for, the sum of weights is no longer below 0, and the second shrinks."""
    endless = Resource(1e18, 1e18)
    queues = [
        PlainQueue(4, Resource(20_000.0), endless, Resource(100.0)),
        PlainQueue(-3, Resource(50_000.0), endless, Resource()),
        PlainQueue(-5, Resource(100.0), endless, Resource()),
    ]
    total = Resource(10_000.0)
    poured, _ = fill(basin_of(total, queues))
    plain_fill(total, queues)
    assert poured[0].tolist() == [queue.deserved.milli_cpu for queue in queues]
    assert poured[0, 1] < 7_500.0  # three quarters of all, which it had at first


def test_what_a_guarantee_below_zero_gives_back_is_poured_again() -> None:
    """What the first queue gives back is added before the others' shares are taken off: to the last bit."""
    endless = Resource(1e18, 1e18)
    queues = [
        PlainQueue(4, Resource(4750.0), Resource(-110.0, 1e18), Resource(-100.0)),
        PlainQueue(3, Resource(9000.0), endless, Resource()),
        PlainQueue(4, Resource(9000.0), endless, Resource(-200.0)),
    ]
    total = Resource(1750.0)
    poured, _ = fill(basin_of(total, queues))
    plain_fill(total, queues)
    assert poured[0].tolist() == [queue.deserved.milli_cpu for queue in queues]


def deserved(total: float, queues: list[tuple[int, float]]) -> list[float]:
    """cpu of each queue given (weight, request) and nothing that limits it."""
    plain = [PlainQueue(weight, Resource(request), Resource(1e18, 1e18), Resource()) for weight, request in queues]
    poured: list[float] = fill(basin_of(Resource(total), plain))[0][0].tolist()
    return poured


totals = st.integers(1, 10_000).map(float)
wishes = st.lists(st.tuples(st.integers(1, 20), st.integers(0, 5_000).map(float)), min_size=1, max_size=8)


@given(totals, wishes)
def test_queues_deserve_at_most_the_total_and_at_most_what_they_ask_for(
    total: float, queues: list[tuple[int, float]]
) -> None:
    found = deserved(total, queues)
    assert sum(found) <= total * (1 + 1e-12)
    assert all(amount <= request for amount, (_, request) in zip(found, queues, strict=True))


@given(totals, wishes)
def test_nothing_is_left_while_somebody_wants_more(total: float, queues: list[tuple[int, float]]) -> None:
    found = deserved(total, queues)
    if any(request - amount > 1 for amount, (_, request) in zip(found, queues, strict=True)):
        assert sum(found) > total - 1


@given(totals, wishes, st.integers(1, 20))
def test_more_weight_is_never_less(total: float, queues: list[tuple[int, float]], extra: int) -> None:
    (weight, request), *others = queues
    before = deserved(total, queues)[0]
    assert deserved(total, [(weight + extra, request), *others])[0] >= before - 0.5


@given(totals, wishes, st.randoms(use_true_random=False))
def test_the_order_of_queues_has_no_say(total: float, queues: list[tuple[int, float]], random: Any) -> None:
    order = list(range(len(queues)))
    random.shuffle(order)
    found = deserved(total, queues)
    shuffled = deserved(total, [queues[i] for i in order])
    assert np.allclose(shuffled, [found[i] for i in order], rtol=1e-12, atol=1e-6)


def test_a_guarantee_is_kept_even_by_who_asks_for_nothing() -> None:
    idle = PlainQueue(1, Resource(), Resource(1e18, 1e18), Resource(4000.0))
    busy = PlainQueue(1, Resource(20_000.0), Resource(6000.0, 1e18), Resource())
    poured, _ = fill(basin_of(Resource(10_000.0), [idle, busy]))
    assert poured[0].tolist() == [4000.0, 6000.0]


def test_weights_of_zero_pour_nothing() -> None:
    queue = PlainQueue(0, Resource(1000.0), Resource(1e18, 1e18), Resource(500.0))
    poured, filled = fill(basin_of(Resource(10_000.0), [queue]))
    assert not filled
    assert not poured.any()
