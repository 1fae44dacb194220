"""Requests a second, in the long run and in a burst; and who goes first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.actors.real_clusters.scheduled.client import TokenBucket
from pumice.actors.real_clusters.scheduled.cluster_api import MOST_EVENTS, Line, Urgency, Work


@given(st.floats(1.0, 1000.0), st.integers(1, 50), st.lists(st.floats(0.0, 1.0), max_size=60))
def test_no_more_come_through_than_the_burst_and_what_time_gives(qps: float, burst: int, waits: list[float]) -> None:
    bucket, now, through = TokenBucket(qps, burst), 0.0, list[float]()
    for wait in waits:
        now += wait
        through.append(now + bucket.delay_s(now))
    for last, at in enumerate(through):
        assert last + 1 <= burst + at * qps + 1e-6


def test_a_burst_goes_immediately_and_the_next_waits() -> None:
    bucket = TokenBucket(10.0, 3)
    assert [bucket.delay_s(0.0) for _ in range(4)] == [0.0, 0.0, 0.0, pytest.approx(0.1)]


def test_without_a_limit_nobody_waits() -> None:
    bucket = TokenBucket(0.0, 1)
    assert {bucket.delay_s(0.0) for _ in range(100)} == {0.0}


@pytest.mark.anyio
async def test_the_most_urgent_goes_first_and_events_are_bounded() -> None:
    line, done = Line(), list[str]()

    def noted(what: str) -> Work:
        async def work() -> None:
            done.append(what)

        return work

    line.put(Urgency.EVENTS, noted("event"))
    line.put(Urgency.STATUSES, noted("status"))
    line.put(Urgency.DECISIONS, noted("first"))
    line.put(Urgency.DECISIONS, noted("second"))
    for _ in range(4):
        await (await line.get())()
    assert done == ["first", "second", "status", "event"]
    for _ in range(MOST_EVENTS):
        assert line.put(Urgency.EVENTS, noted(""))
    assert not line.put(Urgency.EVENTS, noted(""))
