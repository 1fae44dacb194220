"""tdm: hours, filter and score, budgets, victims, and the moment to wake."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.pumice_arguments import PumiceArguments
from config.time_zones import time_zone
from core.objects.metadata import parse_time
from core.plugins.tdm.budget import MAX_UNAVAILABLE, MIN_AVAILABLE, amount_of, evictable_count
from core.plugins.tdm.zones import ZoneError, Zones, parse_clock_time, parse_span
from core.session.carry import Carry
from core.session.reasons import Code
from core.session.session import Session
from tests.core.kube.sessions import scores, texts
from tests.core.plugins.world import configuration, evictable, job_of, names, open_world, task_of
from tests.kit import gang, node, pod, pod_group, queue

ZONE, PREEMPTABLE = "volcano.sh/revocable-zone", "volcano.sh/preemptable"


def at(clock: str) -> float:
    return parse_time(f"2026-01-01T{clock}Z")


# --- hours
# ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("span", "clock", "is_open"),
    [
        ("10:00-21:00", "09:59:59", False),
        ("10:00-21:00", "10:00:00", True),
        ("10:00-21:00", "21:00:00", True),
        ("10:00-21:00", "21:00:01", False),
        ("00:00-00:00", "13:37:00", True),
        ("22:00-06:00", "23:00:00", True),
        ("22:00-06:00", "05:00:00", False),  # begun yesterday: not seen, as in Volcano
        ("22:00-06:00", "12:00:00", False),
    ],
)
def test_when_a_zone_is_open(span: str, clock: str, is_open: bool) -> None:
    problem = Zones({"rz": span}, at(clock)).problem("rz")
    assert problem == ("" if is_open else f"current time beyond revocable zone rz:{span}")


@pytest.mark.parametrize(("clock", "is_open"), [("05:00:00", True), ("06:00:01", False), ("22:00:00", True)])
def test_mended_zones_last_past_midnight(clock: str, is_open: bool) -> None:
    assert (Zones({"rz": "22:00-06:00"}, at(clock), past_midnight=True).problem("rz") == "") is is_open


def test_a_zone_without_argument_is_closed() -> None:
    assert Zones({}, 0.0).problem("rz") == "revocable zone rz not support"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("9", 'parsing time "9" as "15:04": cannot parse "" as ":"'),
        ("x:00", 'parsing time "x:00" as "15:04": cannot parse "x:00" as "15"'),
        ("9:5", 'parsing time "9:5" as "15:04": cannot parse "5" as "04"'),
        ("25:00", 'parsing time "25:00": hour out of range'),
        ("10:60", 'parsing time "10:60": minute out of range'),
        ("10:00x", 'parsing time "10:00x": extra text: "x"'),
    ],
)
def test_times_that_are_none(text: str, words: str) -> None:
    with pytest.raises(ZoneError) as caught:
        parse_clock_time(text)
    assert str(caught.value) == words


def test_spans_that_are_none() -> None:
    with pytest.raises(ZoneError, match=r"^revocable zone 10:00 format error$"):
        parse_span("10:00")
    assert parse_span(" 1:00-2:30 ") == (3600, 9000)


@pytest.mark.parametrize(
    ("zone", "moment", "is_open"),
    [
        ("Asia/Shanghai", "2026-01-01T01:59:59Z", False),  # 09:59:59 there
        ("Asia/Shanghai", "2026-01-01T02:00:00Z", True),
        ("Asia/Shanghai", "2026-01-01T13:00:01Z", False),
        ("America/New_York", "2026-01-01T15:00:00Z", True),  # 10:00 there, five hours behind
        ("America/New_York", "2026-07-01T14:00:00Z", True),  # and four in summer
        ("America/New_York", "2026-07-01T13:59:59Z", False),
    ],
)
def test_hours_are_those_of_the_time_zone(zone: str, moment: str, is_open: bool) -> None:
    zones = Zones({"rz": "10:00-21:00"}, parse_time(moment), time_zone=time_zone(zone))
    assert (zones.problem("rz") == "") is is_open


def test_a_night_in_which_the_clocks_change() -> None:
    """Berlin, 29 March 2026: 02:00 becomes 03:00."""
    berlin = time_zone("Europe/Berlin")
    night = {"rz": "01:00-04:00"}
    closes = parse_time("2026-03-29T02:00:00Z")
    zones = Zones(night, parse_time("2026-03-29T00:30:00Z"), time_zone=berlin)
    assert zones.problem("rz") == ""
    assert zones.next_change() == closes + 1
    assert Zones(night, closes + 1, time_zone=berlin).problem("rz") != ""


clock_times = st.integers(0, 1439).map(lambda m: f"{m // 60:02d}:{m % 60:02d}")


@given(
    clock_times,
    clock_times,
    st.integers(1_774_600_000, 1_775_000_000),  # days around the change to summer time
    st.booleans(),
    st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"]),
)
def test_nothing_changes_before_the_moment_to_wake(
    first: str, last: str, now: int, past_midnight: bool, where: str
) -> None:
    def zones(moment: float) -> Zones:
        return Zones({"rz": f"{first}-{last}"}, moment, time_zone=time_zone(where), past_midnight=past_midnight)

    change = zones(now).next_change()
    assert change is not None
    assert change > now
    before = zones(now).problem("rz")
    assert {
        zones(moment).problem("rz") for moment in (now + 1, (now + change) // 2, change - 1) if moment < change
    } <= {before}


def test_the_configuration_says_whose_clock_it_is() -> None:
    arguments = {"tdm.revocable-zone.day": "12:00-13:00"}
    config = configuration([{"name": "tdm", "arguments": arguments}])
    config = msgspec.structs.replace(config, pumice=PumiceArguments(time_zone="Asia/Tokyo"))
    for clock, is_open in (("03:30:00", True), ("12:30:00", False)):
        session = open_world(config, node("n", labels={ZONE: "day"}), queue("q"), now=f"2026-01-01T{clock}Z")
        tdm: Any = session.plugins["tdm"]
        assert (tdm._zones.problem("day") == "") is is_open, clock


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
        ({MIN_AVAILABLE: "5"}, 4, 1),  # below its minimum already: one all the same
        ({MIN_AVAILABLE: ""}, 4, 1),
        ({MAX_UNAVAILABLE: "3"}, 4, 2),
        ({MAX_UNAVAILABLE: "1"}, 4, 0),
        ({MAX_UNAVAILABLE: "40%"}, 5, 2),
        ({MIN_AVAILABLE: "1", MAX_UNAVAILABLE: "0"}, 4, 3),
    ],
)
def test_how_many_may_go_at_once(annotations: dict[str, str], running: int, count: int) -> None:
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
    victims = session.points.first_tier_union("VictimTasks", [])
    assert names(victims) == ["j-0"]
    assert session.carry.plugins["tdm"]["last_eviction"] == session.clock.now
    assert session.wake_at == session.clock.now + 60
    again = world(tenants(), clock="12:30:59", carry=session.carry)
    assert again.points.first_tier_union("VictimTasks", []) == []
    assert again.wake_at == session.clock.now + 60
    later = world(tenants(**{MAX_UNAVAILABLE: "9"}), clock="12:31:00", carry=session.carry)
    assert names(later.points.first_tier_union("VictimTasks", [])) == ["j-0", "j-1"]


def test_pods_that_may_not_be_preempted_stay() -> None:
    stays = gang("s", queue="q", pods=1, nodes=["n2"], annotations={PREEMPTABLE: "false"})
    assert world(stays).points.first_tier_union("VictimTasks", []) == []


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
    assert session.points.first_nonzero("JobOrder", firm, soft_job) < 0
    assert session.points.first_tier_agrees("JobStarving", firm)
    assert not session.points.first_tier_agrees("JobStarving", soft_job)
    assert not session.points.vote("JobPipelined", firm)
    assert session.statement().pipeline(task_of(session, "firm-0"), 0, evicted=False)
    assert session.points.vote("JobPipelined", firm)


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
    [[node_filter]], [[scorer]] = session.points.flat("Predicate"), session.points.flat("NodeOrder")

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
