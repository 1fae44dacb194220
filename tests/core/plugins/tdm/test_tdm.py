"""tdm: filter and score, budgets, victims."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.plugins.tdm import MAX_UNAVAILABLE, MIN_AVAILABLE, amount_of, evictable_count
from pumice.core.session.carry import Carry
from pumice.core.session.reasons import Code
from pumice.core.session.session import Session
from tests.core.kube.sessions import scores, texts
from tests.core.plugins.world import configuration, evictable, job_of, names, open_world, task_of
from tests.kit import gang, node, pod, pod_group, queue

ZONE, PREEMPTABLE = "volcano.sh/revocable-zone", "volcano.sh/preemptable"


# --- filter and score
# -------------------------------------------------------------------------------------------------------


def world(*parts: Any, clock: str = "12:30:00", fix: tuple[str, ...] = (), carry: Carry | None = None) -> Session:
    arguments = {
        "tdm.revocable-zone.day": "12:00-13:00",
        "tdm.revocable-zone.night": "22:00-23:00",
        "tdm.evict.period": "1m",
    }
    config = configuration([{"name": "tdm", "arguments": arguments}], fix=fix)
    nodes = [
        node("n0"),
        node("n1", labels={ZONE: "day"}),
        node("n2", labels={ZONE: "night"}),
        node("n3", labels={ZONE: "x"}),
    ]
    return open_world(config, nodes, queue("q"), *parts, now=f"2026-01-01T{clock}Z", carry=carry)


def test_only_tasks_that_may_be_revoked_use_open_zones_and_prefer_them() -> None:
    session = world(
        pod_group("j", queue="q"),
        pod("fixed", group="j"),
        pod("free", group="j", annotations={ZONE: "*"}),
    )
    fixed, free = (session.search_for(task_of(session, name), room=False) for name in ("fixed", "free"))

    def texts(search: Any) -> list[str]:
        codes: list[int] = search.codes.tolist()
        return [", ".join(reason.text for reason in session.reasons.reasons(code)) for code in codes]

    closed = "current time beyond revocable zone night:22:00-23:00"
    unknown = "revocable zone x not support"
    assert texts(fixed) == ["", "not allow to dispatch to revocable node", closed, unknown]
    assert texts(free) == ["", "", closed, unknown]
    assert [r.code for c in fixed.codes.tolist() for r in session.reasons.reasons(c)] == [Code.UNRESOLVABLE] * 3
    rows: Any = [0, 1]
    assert free.scoring.totals(rows).tolist() == [0.0, 100.0]
    assert free.choose()[0] == 1


# --- budgets
# ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "amount"), [("3", 3), ("50%", 3), ("100%", 5), ("0", 0), ("-1", -1), ("x", 0), ("%", 0)]
)
def test_amounts(text: str, amount: int) -> None:
    assert amount_of(text, 5) == amount


@pytest.mark.parametrize(
    ("annotations", "running", "count"),
    [
        ({}, 4, 1),
        ({MIN_AVAILABLE: "3"}, 4, 1),
        ({MIN_AVAILABLE: "1"}, 4, 3),
        ({MIN_AVAILABLE: "50%"}, 4, 1),
        ({MIN_AVAILABLE: "4"}, 4, 0),
        ({MIN_AVAILABLE: "5"}, 4, 1),  # below its minimum already: one all the same
        ({MIN_AVAILABLE: ""}, 4, 1),
        ({MAX_UNAVAILABLE: "3"}, 4, 2),
        ({MAX_UNAVAILABLE: "1"}, 4, 0),
        ({MAX_UNAVAILABLE: "40%"}, 5, 2),
        ({MIN_AVAILABLE: "1", MAX_UNAVAILABLE: "0"}, 4, 3),
    ],
)
def test_how_many_may_go_together(annotations: dict[str, str], running: int, count: int) -> None:
    group = pod_group("j", queue="q", annotations=annotations)
    session = world(group, gang("j", queue="q", pods=5, nodes=["n0"] * running)[1:])
    assert evictable_count(session.jobs, job_of(session, "j")) == count


# --- victims
# ------------------------------------------------------------------------------------------------------------------


def tenants(**annotations: str) -> list[dict[str, Any]]:
    """Two preemptable pods in the closed zone, one in the open one, one outside."""
    group = pod_group("j", queue="q", phase="Running", annotations=annotations)
    return [group, *gang("j", queue="q", pods=4, nodes=["n2", "n2", "n1", "n0"])[1:]]


def test_closed_zones_are_emptied_once_a_period_within_the_budget() -> None:
    session = world(tenants())
    victims = session.points.victim_tasks([])
    assert names(victims) == ["j-0"]
    assert session.carry.plugins["tdm"]["last_eviction"] == session.clock.now
    assert session.wake_at == session.clock.now + 60
    again = world(tenants(), clock="12:30:59", carry=session.carry)
    assert again.points.victim_tasks([]) == []
    assert again.wake_at == session.clock.now + 60
    later = world(tenants(**{MAX_UNAVAILABLE: "9"}), clock="12:31:00", carry=session.carry)
    assert names(later.points.victim_tasks([])) == ["j-0", "j-1"]


def test_pods_that_may_not_be_preempted_stay() -> None:
    stays = gang("s", queue="q", pods=1, nodes=["n2"], annotations={PREEMPTABLE: "false"})
    assert world(stays).points.victim_tasks([]) == []


def test_who_may_not_be_preempted_takes_from_tasks_outside_of_zones() -> None:
    session = world(
        tenants(),
        gang("firm", queue="q", pods=1, annotations={PREEMPTABLE: "false"}),
        gang("soft", queue="q", pods=1),
    )
    pods = ["j-0", "j-2", "j-3"]
    assert evictable(session, "Preemptable", task_of(session, "firm-0"), *pods) == ["j-3"]
    assert evictable(session, "Preemptable", task_of(session, "soft-0"), *pods) == []


def test_orders_and_starvation() -> None:
    soft = pod_group("soft", queue="q", annotations={PREEMPTABLE: "true"})
    session = world(soft, gang("soft", queue="q", pods=1)[1:], gang("firm", queue="q", pods=1))
    firm, soft_job = job_of(session, "firm"), job_of(session, "soft")
    assert session.points.job_order(firm, soft_job) < 0
    assert session.points.job_starving(firm)
    assert not session.points.job_starving(soft_job)
    assert not session.points.job_pipelined(firm)
    assert session.statement().pipeline(task_of(session, "firm-0"), 0, evicted=False)
    assert session.points.job_pipelined(firm)


@given(
    zones=st.lists(st.sampled_from(["", "day", "night", "x"]), min_size=1, max_size=6),
    hour=st.integers(0, 23),
    revocable=st.booleans(),
)
def test_filter_and_score_are_the_slow_ones(zones: list[str], hour: int, revocable: bool) -> None:
    spans = {"day": (8, 20), "night": (21, 23)}
    arguments = {f"tdm.revocable-zone.{name}": f"{a:02d}:00-{b:02d}:00" for name, (a, b) in spans.items()}
    nodes = [node(f"n{i}", labels={ZONE: zone} if zone else {}) for i, zone in enumerate(zones)]
    task_marks = {ZONE: "*"} if revocable else {}
    session = open_world(
        configuration([{"name": "tdm", "arguments": arguments}]),
        nodes,
        queue("q"),
        gang("j", queue="q", pods=1, annotations=task_marks),
        now=f"2026-01-01T{hour:02d}:30:00Z",
    )
    task = task_of(session, "j-0")
    [[node_filter]], [[scorer]] = session.points.predicate.rules, session.points.node_order.rules

    def plain(zone: str) -> tuple[str, float]:
        if not zone:
            return "", 0.0
        if zone not in spans:
            return f"revocable zone {zone} not support", 0.0
        first, last = spans[zone]
        if not first <= hour < last:
            return f"current time beyond revocable zone {zone}:{first:02d}:00-{last:02d}:00", 0.0
        return ("", 100.0) if revocable else ("not allow to dispatch to revocable node", 0.0)

    expected = [plain(zone) for zone in zones]
    assert texts(session, node_filter.prepare(session, task)) == [refused for refused, _ in expected]
    rows = list(range(len(zones)))
    assert scores(session, scorer.prepare(session, task), rows) == [score for _, score in expected]
