"""The kinds of arguments: every argument that plugins read with a typed reader has one, and they agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pumice.config.argument_types import DURATION, INTEGER, KINDS, NUMBER, SWITCH, TEXT, ArgumentKind, kind_of
from pumice.config.arguments import Arguments
from pumice.config.known import ACTION_ARGUMENTS, PLUGIN_ARGUMENTS, is_argument
from pumice.config.load import parse_scheduler_config

VALUES: tuple[Any, ...] = (0, 1, -1, 2**63, 1.0, 1.5, True, False, "true", "T", "yes", "1", "1h", "h", "", None, [], {})


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize("kind", [INTEGER, NUMBER, SWITCH, TEXT, DURATION], ids=lambda kind: kind.expected)
def test_a_kind_holds_what_its_reader_takes(kind: ArgumentKind, value: Any) -> None:
    read = Arguments("x", {"k": value})
    readers: dict[ArgumentKind, Callable[[], object]] = {
        INTEGER: lambda: read.get_int("k", 3),
        NUMBER: lambda: read.get_float("k", 3.0),
        SWITCH: lambda: read.get_bool("k", default=True),
        TEXT: lambda: read.get_string("k", "x"),
        DURATION: lambda: read.get_duration_s("k", 3.0),
    }
    if kind is DURATION and value is None:
        return
    readers[kind]()
    assert kind.holds(value) == (not read.warnings)


def test_every_kind_is_of_an_argument_that_exists() -> None:
    known = {key for keys in (*ACTION_ARGUMENTS.values(), *PLUGIN_ARGUMENTS.values()) for key in keys}
    assert set(KINDS) <= known


def test_weights_are_integers() -> None:
    weights = [key for key in PLUGIN_ARGUMENTS["nodeorder"] if is_argument(key, PLUGIN_ARGUMENTS["nodeorder"])]
    assert {kind_of(key) for key in weights} == {INTEGER}


@pytest.mark.parametrize(
    ("plugin", "argument", "value", "expected"),
    [
        ("nodeorder", "leastrequested.weight", "abc", "expected an integer, was 'abc'"),
        ("overcommit", "overcommit-factor", "[1]", "expected a number, was a list"),
        ("predicates", "predicate.CacheEnable", "7", "expected true or false, was 7"),
        ("sla", "sla-waiting-time", "soon", "was 'soon'"),
        ("usage", "thresholds", "80", "expected a mapping, was 80"),
        ("binpack", "binpack.resources.nvidia.com/gpu", "1.5", "expected an integer, was 1.5"),
        ("deviceshare", "deviceshare.NodeLockEnable", "maybe", "expected true or false, was 'maybe'"),
        ("deviceshare", "deviceshare.ScheduleWeight", "x", "expected an integer, was 'x'"),
        ("deviceshare", "deviceshare.SchedulePolicy", "best", "expected binpack or spread, was 'best'"),
        ("deviceshare", "deviceshare.GPUExclusiveRules", "[{app: 5}]", "expected a list of rules"),
        ("extender", "extender.ignorable", "7", "expected true or false, was 7"),
        ("extender", "extender.managedResources", "x", "expected a list of texts, was 'x'"),
        ("extender", "extender.predicateVerb", "[a]", "expected a text, was a list"),
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
