"""Arguments are read with Volcano's rules: the wrong type warns and the default stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.config.arguments import Arguments
from pumice.config.durations import duration_s, format_duration, parse_duration, parse_duration_ns


@pytest.mark.parametrize(
    ("value", "found", "warns"),
    [
        (5, 5, False),
        (-1, -1, False),
        (5.0, 1, True),
        ("5", 1, True),
        (True, 1, True),
        (None, 1, True),
        (2**63, 1, True),
    ],
)
def test_int(value: object, found: int, warns: bool) -> None:
    arguments = Arguments("nodeorder", {"weight": value})
    assert arguments.get_int("weight", 1) == found
    assert bool(arguments.warnings) is warns


@pytest.mark.parametrize(
    ("value", "found", "warns"), [(5, 5.0, False), (1.5, 1.5, False), ("5", 1.0, True), (True, 1.0, True)]
)
def test_float(value: object, found: float, warns: bool) -> None:
    arguments = Arguments("overcommit", {"factor": value})
    assert arguments.get_float("factor", 1.0) == found
    assert bool(arguments.warnings) is warns


@pytest.mark.parametrize(
    ("value", "found", "warns"),
    [
        (True, True, False),
        ("true", True, False),
        ("T", True, False),
        ("0", False, False),
        ("yes", False, True),
        (1, False, True),
    ],
)
def test_bool(value: object, found: bool, warns: bool) -> None:
    arguments = Arguments("predicates", {"on": value})
    assert arguments.get_bool("on", False) is found
    assert bool(arguments.warnings) is warns


def test_string_and_duration() -> None:
    arguments = Arguments("sla", {"text": "x", "number": 5, "wait": "1h30m", "bad": "1x", "seconds": 5})
    assert arguments.get_string("text", "y") == "x"
    assert arguments.get_duration_s("wait", 1.0) == 5400.0
    assert arguments.get_duration_s("absent", 1.0) == 1.0
    assert arguments.warnings == []
    assert arguments.get_string("number", "y") == "y"
    assert arguments.get_duration_s("bad", 1.0) == 1.0
    assert arguments.get_duration_s("seconds", 2.0) == 2.0
    assert arguments.warnings[0] == "sla: number: expected a text, was 5; 'y' stays"
    assert len(arguments.warnings) == 3


def test_absent_ones_are_silent() -> None:
    arguments = Arguments("gang", None)
    assert (arguments.get_int("a", 3), arguments.get_bool("b", True), arguments.get_string("c", "")) == (3, True, "")
    assert arguments.warnings == []
    assert "a" not in arguments


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0), ("+0", 0), ("5s", 5 * 10**9), ("100ms", 10**8), ("1h2m3.5s", 3723_500_000_000), ("-1.5us", -1500),
        ("1µs", 1000), ("1\u03bcs", 1000), (".5s", 5 * 10**8), ("1.s", 10**9), ("0.3ns", 0), ("1m1m", 120 * 10**9),
        ("2562047h47m16.854775807s", 2**63 - 1), ("-2562047h47m16.854775808s", -(2**63)),
        ("0.3333333333333333333h", 1200 * 10**9), ("0.100000000000000000000h", 360 * 10**9),
        ("0.9223372036854775808h", 3320413933267), ("-0.9ns", 0),
    ],
)  # fmt: skip
def test_durations_as_go(text: str, nanoseconds: int) -> None:
    assert parse_duration_ns(text) == nanoseconds
    assert parse_duration(text) == duration_s(text) == nanoseconds / 1e9


@pytest.mark.parametrize("text", ["", "5", "s", ".s", "-", "1d", "1 s", " 1s", "1s ", "--1s", "1e3s", "2562048h", "١s"])
def test_durations_go_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)
    assert duration_s(text) is None


@given(st.integers(0, 10**6), st.integers(0, 59), st.integers(0, 59999))
def test_parts_add_up(hours: int, minutes: int, milliseconds: int) -> None:
    expected = (hours * 3600 + minutes * 60) * 10**9 + milliseconds * 10**6
    assert parse_duration_ns(f"{hours}h{minutes}m{milliseconds}ms") == expected


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1_100, "1.1µs"),
        (250_000_000, "250ms"),
        (1_500_000_000, "1.5s"),
        (-1_500_000_000, "-1.5s"),
        (75 * 10**9, "1m15s"),
        (3_600 * 10**9, "1h0m0s"),
        (3_630 * 10**9 + 5, "1h0m30.000000005s"),
        (2**63 - 1, "2562047h47m16.854775807s"),
    ],
)
def test_durations_are_written_as_go_writes_them(nanoseconds: int, text: str) -> None:
    """Those of Go's own tests of Duration.String, among others."""
    assert format_duration(nanoseconds) == text


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_what_is_written_is_read_again(nanoseconds: int) -> None:
    assert parse_duration_ns(format_duration(nanoseconds)) == nanoseconds
