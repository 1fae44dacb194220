"""tdm: when a zone is open, on whose clock, and the moment to wake."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.config.pumice_arguments import PumiceArguments
from pumice.config.time_zones import time_zone
from pumice.core.objects.metadata import parse_time
from pumice.core.plugins.tdm import ZoneError, Zones, parse_clock_time, parse_span
from tests.core.plugins.world import configuration, open_world, task_of
from tests.kit import node, pod, pod_group, queue

MENDED = ("tdm-past-midnight",)
ZONE = "volcano.sh/revocable-zone"


def at(clock: str) -> float:
    return parse_time(f"2026-01-01T{clock}Z")


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


@pytest.mark.parametrize(("fix", "words"), [((), "current time beyond revocable zone rz:22:00-06:00"), (MENDED, "")])
def test_the_plugin_mends_its_zones(fix: tuple[str, ...], words: str) -> None:
    config = configuration([{"name": "tdm", "arguments": {"tdm.revocable-zone.rz": "22:00-06:00"}}], fix=fix)
    parts = (pod_group("j", queue="q"), pod("free", group="j", annotations={ZONE: "*"}))
    session = open_world(config, node("n", labels={ZONE: "rz"}), queue("q"), *parts, now="2026-01-01T05:00:00Z")
    search = session.search_for(task_of(session, "free"), room=False)
    code = int(search.codes[0])
    assert ", ".join(reason.text for reason in session.reasons.reasons(code)) == words


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


@pytest.mark.parametrize("spans", [{}, {"rz": "whenever"}])
def test_without_a_zone_that_can_be_read_there_is_no_moment_to_wake(spans: dict[str, str]) -> None:
    assert Zones(spans, parse_time("2026-07-01T12:00:00Z")).next_change() is None


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
