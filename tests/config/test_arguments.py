"""Arguments are read with Volcano's rules: of a value of the wrong type the loader warns, and the default stays."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.config.arguments import DURATION, INTEGER, NUMBER, SWITCH, TEXT, Argument, ArgumentKind, at_least
from pumice.config.durations import duration_s, format_duration, parse_duration, parse_duration_ns
from pumice.config.known import ACTION_ARGUMENTS
from pumice.core.configuration import parse_scheduler_config
from pumice.core.plugins import BUILT_IN

NONE = object()
"""The default stays."""


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        (INTEGER, 5, 5), (INTEGER, -1, -1), (INTEGER, 5.0, NONE), (INTEGER, "5", NONE), (INTEGER, True, NONE),
        (INTEGER, None, NONE), (INTEGER, 2**63, NONE), (NUMBER, 5, 5.0), (NUMBER, 1.5, 1.5), (NUMBER, "5", NONE),
        (NUMBER, True, NONE), (SWITCH, True, True), (SWITCH, "true", True), (SWITCH, "T", True), (SWITCH, "0", False),
        (SWITCH, "yes", NONE), (SWITCH, 1, NONE), (TEXT, "x", "x"), (TEXT, 5, NONE), (DURATION, "1h30m", 5400.0),
        (DURATION, "1x", NONE), (DURATION, 5, NONE), (DURATION, None, NONE), (at_least(INTEGER, 1), 1, 1),
        (at_least(INTEGER, 1), 0, NONE), (at_least(NUMBER, 0.5), 0.4, NONE), (at_least(NUMBER, 0.5), "1", NONE),
    ],
)  # fmt: skip
def test_value_of_another_kind_leaves_the_default(kind: ArgumentKind[Any], value: object, found: object) -> None:
    argument = Argument("k", kind, NONE, "")
    assert argument.of({"k": value}) == found
    assert kind.holds(value) == (found is not NONE)
    assert argument.of({}) is NONE
    assert Argument("k.*", kind, NONE, "").of({"k.x": value}, "x") == found


def test_name_with_any_ending_is_no_name_without_one() -> None:
    argument = Argument("k.*", INTEGER, 1, "")
    assert [name for name in ("k.", "k", "k.x", "k.x.y", "other.x") if argument.is_named(name)] == ["k.x", "k.x.y"]


def test_each_argument_has_a_purpose_and_a_name_of_its_own() -> None:
    records = [each.arguments for each in BUILT_IN.values()] + list(ACTION_ARGUMENTS.values())
    records += [section for each in BUILT_IN.values() for section in each.sections.values()]
    for arguments in records:
        assert all(each.what.endswith(".") and each.default_words for each in arguments)
        assert len({each.name for each in arguments}) == len(arguments)


@pytest.mark.parametrize(
    ("plugin", "argument", "value", "expected"),
    [
        ("nodeorder", "leastrequested.weight", "abc", "expected an integer, was 'abc'"),
        ("overcommit", "overcommit-factor", "[1]", "expected a number of at least 1 (which"),
        ("predicates", "predicate.CacheEnable", "7", "expected true or false, was 7"),
        ("sla", "sla-waiting-time", "soon", "was 'soon'"),
        ("usage", "thresholds", "80", "expected a mapping, was 80"),
        ("binpack", "binpack.resources.nvidia.com/gpu", "1.5", "expected an integer of at least 0, was 1.5"),
        ("deviceshare", "deviceshare.NodeLockEnable", "maybe", "expected true or false, was 'maybe'"),
        ("deviceshare", "deviceshare.ScheduleWeight", "x", "expected an integer, was 'x'"),
        ("deviceshare", "deviceshare.SchedulePolicy", "best", "expected binpack or spread, was 'best'"),
        ("deviceshare", "deviceshare.GPUExclusiveRules", "[{app: 5}]", "expected a list of rules"),
        ("extender", "extender.ignorable", "7", "expected true or false, was 7"),
        ("extender", "extender.managedResources", "x", "expected a list of texts, was 'x'"),
        ("extender", "extender.predicateVerb", "[a]", "expected a text, was a list"),
        ("overcommit", "overcommit-factor", "0.5", "expected a number of at least 1 (which admits no more than"),
        ("tdm", "tdm.revocable-zone.z", "9-17", "expected a window like 08:00-18:00"),
        ("capacity", "ancestorReclaimLevel", "-1", "expected an integer of at least 0, was -1"),
    ],
)
def test_an_argument_of_the_wrong_type_is_warned_about(plugin: str, argument: str, value: str, expected: str) -> None:
    plugins = f"tiers:\n- plugins:\n  - name: {plugin}\n    arguments:\n      {argument}: {value}\n"
    (warning,) = parse_scheduler_config(f'actions: "allocate"\n{plugins}', source="s.conf").warnings
    assert ":6: tiers[0].plugins[0].arguments" in warning
    assert argument in warning
    assert expected in warning
    assert warning.endswith("; the default stays")


def test_an_argument_of_an_action_too() -> None:
    said = "configurations:\n- name: preempt\n  arguments:\n    minCandidateNodesAbsolute: few\n"
    (warning,) = parse_scheduler_config(f'actions: "preempt"\n{said}', source="s.conf").warnings
    assert "configurations[0].arguments.minCandidateNodesAbsolute: expected an integer, was 'few'" in warning


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
