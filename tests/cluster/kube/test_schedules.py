"""Cron schedules as robfig/cron's `ParseStandard` has them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.kube.schedules import ScheduleError, read_schedule

MINUTE = 60.0


def moment(text: str, zone: str = "") -> float:
    found = datetime.fromisoformat(text)
    return (found if found.tzinfo else found.replace(tzinfo=ZoneInfo(zone) if zone else UTC)).timestamp()


def shown(times: list[float], zone: str = "") -> list[str]:
    return [datetime.fromtimestamp(at, ZoneInfo(zone) if zone else UTC).strftime("%m-%d %H:%M %z") for at in times]


def following(text: str, since: str, count: int, zone: str = "") -> list[str]:
    schedule, at, found = read_schedule(text, zone), moment(since, zone), list[float]()
    for _ in range(count):
        after = schedule.after(at)
        assert after is not None
        at = after
        found.append(after)
    return shown(found, zone)


@pytest.mark.parametrize("text", ["0 0 31 2 *", "0 0 30 FEB *", "5 */2 31 4,6,9,11 *", "0 0 31 2 ?"])
def test_day_that_no_month_has_is_a_valid_schedule_that_never_comes(text: str) -> None:
    assert read_schedule(text).after(moment("2026-01-01T00:00:00")) is None


@pytest.mark.parametrize("text", ["0 0 32 2 *", "0 0 31 13 *", "60 0 31 2 *", "0 24 31 2 *", "0 0 31 2 8", "0 0 0 2 *"])
def test_field_out_of_range_is_refused_whatever_the_day(text: str) -> None:
    with pytest.raises(ScheduleError):
        read_schedule(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*/100 * * * *", ["01-01 01:00 +0000", "01-01 02:00 +0000"]),
        ("007 * * * *", ["01-01 00:07 +0000", "01-01 01:07 +0000"]),
        ("0 0 31 2 1", ["02-02 00:00 +0000", "02-09 00:00 +0000"]),
        ("*/20 * * * *", ["01-01 00:20 +0000", "01-01 00:40 +0000"]),
        ("5 4 * * *", ["01-01 04:05 +0000", "01-02 04:05 +0000"]),
        ("0 0 * JAN,feb MON-tue", ["01-05 00:00 +0000", "01-06 00:00 +0000"]),
        ("0 0 ? * 5", ["01-02 00:00 +0000", "01-09 00:00 +0000"]),
        ("10/30 0 * * *", ["01-01 00:10 +0000", "01-01 00:40 +0000"]),
        ("@hourly", ["01-01 01:00 +0000", "01-01 02:00 +0000"]),
        ("@monthly", ["02-01 00:00 +0000", "03-01 00:00 +0000"]),
        ("@every 90m", ["01-01 01:30 +0000", "01-01 03:00 +0000"]),
    ],
)
def test_times(text: str, expected: list[str]) -> None:
    assert following(text, "2026-01-01T00:00:00", 2) == expected


def test_days_of_month_and_week_are_joined_by_or_also_with_a_step() -> None:
    assert following("0 0 */10 * 1", "2026-01-01T00:00:00", 4) == [
        "01-05 00:00 +0000",
        "01-11 00:00 +0000",
        "01-12 00:00 +0000",
        "01-19 00:00 +0000",
    ]


def test_a_zone_that_skips_an_hour_skips_its_times() -> None:
    times = following("30 2 * * *", "2026-03-28T00:00:00", 2, "Europe/Berlin")
    assert times == ["03-28 02:30 +0100", "03-30 02:30 +0200"]


def test_a_zone_that_has_an_hour_twice_has_its_times_twice() -> None:
    times = following("30 2 * * *", "2026-10-25T00:00:00", 3, "Europe/Berlin")
    assert times == ["10-25 02:30 +0200", "10-25 02:30 +0100", "10-26 02:30 +0100"]


def _is_read(text: str) -> bool:
    try:
        read_schedule(text)
    except ScheduleError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "zone", "why"),
    [
        ("", "", "expected exactly 5 fields, found 0: []"),
        ("* * * *", "", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "", "bad minute"),
        ("* 24 * * *", "", "bad hour"),
        ("* * 0 * *", "", "bad day"),
        ("* * * 13 *", "", "bad month"),
        ("* * * * 7", "", "bad day of week"),
        ("* * L * *", "", "bad day of month"),
        ("* * * * 1#2", "", "bad day of week"),
        ("*/0 * * * *", "", "bad minute"),
        ("5-1 * * * *", "", "bad minute"),
        ("@sometimes", "", "unrecognized descriptor: @sometimes"),
        ("@every now", "", "failed to parse duration"),
        ("* * * * *", "Nowhere/City", "unknown time zone Nowhere/City"),
    ],
)
def test_what_is_no_schedule(text: str, zone: str, why: str) -> None:
    with pytest.raises(ScheduleError) as raised:
        read_schedule(text, zone)
    assert str(raised.value).startswith(why)


fields = st.one_of(st.just("*"), st.integers(2, 9).map("*/{}".format))


@given(
    st.tuples(
        st.one_of(fields, st.integers(0, 59).map(str)),
        st.one_of(fields, st.integers(0, 23).map(str)),
        st.one_of(fields, st.integers(1, 28).map(str)),
        st.one_of(st.just("*"), st.integers(1, 12).map(str)),
        st.one_of(fields.filter(lambda text: text < "*/7"), st.integers(0, 6).map(str)),
    ),
    st.integers(0, 500_000),
)
def test_the_next_time_is_one_and_there_is_none_between(parts: tuple[str, ...], minutes: int) -> None:
    since = moment("2024-02-20T00:00:00") + minutes * MINUTE
    after = read_schedule(" ".join(parts)).after(since)
    assert after is not None
    assert after > since
    assert _holds(parts, after)
    between = range(1, min(int((after - since) / MINUTE), 500))
    assert not [step for step in between if _holds(parts, since + step * MINUTE)]


def _holds(parts: tuple[str, ...], at: float) -> bool:
    shown_at = datetime.fromtimestamp(at, UTC)
    minute, hour, day, month, week = parts
    if not (_in(minute, shown_at.minute, 0) and _in(hour, shown_at.hour, 0) and _in(month, shown_at.month, 1)):
        return False
    days = (_in(day, shown_at.day, 1), _in(week, shown_at.isoweekday() % 7, 0))
    return all(days) if "*" in (day, week) else any(days)


def _in(text: str, value: int, least: int) -> bool:
    return text == "*" or ((value - least) % int(text[2:]) == 0 if text.startswith("*/") else int(text) == value)


@given(st.text(max_size=20))
def test_anything_is_read_or_refused(text: str) -> None:
    if _is_read(text):
        after = read_schedule(text).after(moment("2026-01-01T00:00:00"))
        assert after is None or after > moment("2026-01-01T00:00:00")


def test_the_distance_of_every_is_whole_seconds() -> None:
    assert read_schedule("@every 1500ms").after(10.0) == 11.0
    assert timedelta(seconds=read_schedule("@every 1ms").after(10.5) or 0) == timedelta(seconds=11)
