"""sla: deadlines, votes, and the moment to wake."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.core.objects.metadata import parse_time
from pumice.core.plugins.sla import WAITING_TIME
from pumice.core.session.session import Session
from tests.core.plugins.world import configuration, job_of, open_world
from tests.kit import gang, node, pod_group, queue

NOON = "2026-01-01T12:00:00Z"


def world(*parts: Any, waiting: Any = None, now: str = NOON) -> Session:
    entry = {"name": "sla", "arguments": {} if waiting is None else {"sla-waiting-time": waiting}}
    return open_world(configuration([entry]), node("n"), queue("q"), *parts, now=now)


def waits(name: str, created: str = "2026-01-01T11:00:00Z", **annotations: str) -> dict[str, Any]:
    marks = {
        "volcano.sh/sla-waiting-time" if key == "own" else WAITING_TIME.name: value
        for key, value in annotations.items()
    }
    return pod_group(name, queue="q", created=created, annotations=marks)


@pytest.mark.parametrize(
    ("waiting", "votes"),
    [("1h", [1]), ("59m", [1]), ("1h0m1s", [0]), (None, [0]), ("soon", [0]), ("-1h", [0]), ("0s", [0]), (3600, [0])],
)
def test_permits_once_the_agreed_time_is_over(waiting: Any, votes: list[int]) -> None:
    session = world(waits("j"), waiting=waiting)
    for point in (session.points.job_enqueueable, session.points.job_pipelined):
        assert [ask(job_of(session, "j")) for ask in point.rules] == votes


def test_a_jobs_own_agreement_goes_first() -> None:
    session = world(waits("a", own="10m"), waits("b", own="junk", plain="10m"), waits("c"), waiting="5h")
    (ask,) = session.points.job_enqueueable.rules
    assert [ask(job_of(session, name)) for name in ("a", "b", "c")] == [1, 1, 0]


def test_the_earlier_deadline_goes_first() -> None:
    session = world(waits("late", own="3h"), waits("soon", own="2h"), waits("same", own="2h"), waits("never"))
    late, soon, same, never = (job_of(session, name) for name in ("late", "soon", "same", "never"))
    assert session.points.job_order(soon, late) < 0 < session.points.job_order(late, soon)
    assert session.points.job_order(late, never) < 0 < session.points.job_order(never, late)
    assert session.points.job_order(soon, same) == session.points.job_order(never, never) == 0


def test_a_deadline_later_than_can_be_told_comes_before_none() -> None:
    session = world(waits("late", own="2562047h"), waits("never"), waits("soon", own="2h"))
    late, never, soon = (job_of(session, name) for name in ("late", "never", "soon"))
    assert session.points.job_order(late, never) < 0 < session.points.job_order(late, soon)


def test_nanoseconds_count() -> None:
    session = world(waits("a", own="1000h0.000000002s"), waits("b", own="1000h0.000000001s"))
    assert session.points.job_order(job_of(session, "b"), job_of(session, "a")) < 0


def test_wakes_at_the_next_deadline_of_a_job_that_waits() -> None:
    running = gang("r", queue="q", pods=1, nodes=["n"], phase="Running", created="2026-01-01T11:00:00Z")
    session = world(waits("later", own="3h"), waits("next", own="2h"), waits("over", own="1m"), running, waiting="90m")
    assert session.wake_at == parse_time("2026-01-01T13:00:00Z")
    assert world(running, waiting="90m").wake_at is None


def test_at_the_moment_it_woke_for_it_permits() -> None:
    first = world(waits("j", own="3h0.3s"))
    assert first.wake_at is not None
    moment = first.wake_at
    again = world(waits("j", own="3h0.3s"))
    (plugin,) = again.plugins.values()
    plugin._now = moment  # type: ignore[attr-defined]
    (ask,) = again.points.job_enqueueable.rules
    assert ask(job_of(again, "j")) == 1
