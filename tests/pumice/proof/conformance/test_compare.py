"""The comparer: equal is silent, and a planted difference is found wherever it is planted."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pumice.proof.conformance.compare import compare_outcome, compare_value

OUTCOME: dict[str, Any] = {
    "binds": {"a/p0": "n0", "a/p1": "n1"},
    "evictions": ["a/v0", "a/v1"],
    "pipelined": {"a/p2": "n0"},
    "uncommitted": {},
    "phases": {"a/j": "Inqueue"},
    "taskStatus": {"a/j": {"Pending": 2}},
    "nominated": {"a/p2": "n0"},
    "queueAllocated": {"q": {"cpu": "1500m"}},
    "conditions": {"a/j": [{"type": "Scheduled", "status": "True", "reason": "r", "message": "m"}]},
    "podConditions": {"a/p2": {"reason": "Unschedulable", "message": "no room"}},
}


def paths(expected: dict[str, Any], found: dict[str, Any]) -> list[str]:
    return [one.path for one in compare_outcome(expected, found)]


def test_an_outcome_equals_itself() -> None:
    assert compare_outcome(OUTCOME, copy.deepcopy(OUTCOME)) == []


@pytest.mark.parametrize(
    ("key", "value", "path", "group"),
    [
        ("binds", {"a/p0": "n1", "a/p1": "n1"}, "binds.a/p0", "decisions"),
        ("binds", {"a/p0": "n0"}, "binds.a/p1", "decisions"),
        ("binds", {"a/p0": "n0", "a/p1": "n1", "a/p9": "n1"}, "binds.a/p9", "decisions"),
        ("evictions", ["a/v0"], "evictions", "decisions"),
        ("evictions", ["a/v0", "a/v1", "a/v1"], "evictions", "decisions"),
        ("pipelined", {}, "pipelined.a/p2", "decisions"),
        ("uncommitted", {"a/p3": "n0"}, "uncommitted.a/p3", "decisions"),
        ("phases", {"a/j": "Running"}, "phases.a/j", "decisions"),
        ("taskStatus", {"a/j": {"Pending": 1, "Binding": 1}}, "taskStatus.a/j.Binding", "decisions"),
        ("nominated", {}, "nominated.a/p2", "decisions"),
        ("queueAllocated", {"q": {"cpu": "1.5"}}, "queueAllocated.q.cpu", "numbers"),
        ("conditions", {}, "conditions.a/j", "words"),
        (
            "podConditions",
            {"a/p2": {"reason": "Unschedulable", "message": "no Room"}},
            "podConditions.a/p2.message",
            "words",
        ),
    ],
)
def test_a_planted_difference_is_found(key: str, value: Any, path: str, group: str) -> None:
    differences = compare_outcome(OUTCOME, {**OUTCOME, key: value})
    assert path in [one.path for one in differences]
    assert {one.group for one in differences} == {group}


def test_the_order_of_evictions_does_not_count_and_their_number_does() -> None:
    assert paths({"evictions": ["b", "a"]}, {"evictions": ["a", "b"]}) == []
    assert paths({"evictions": ["a", "a"]}, {"evictions": ["a"]}) == ["evictions"]


def test_a_key_that_is_absent_is_not_checked_and_an_empty_one_is() -> None:
    assert paths({}, OUTCOME) == []
    assert paths({"binds": {}}, OUTCOME) == ["binds.a/p0", "binds.a/p1"]


@pytest.mark.parametrize(
    ("expected", "found", "same"),
    [
        (9223372036854775807, 9.223372036854775807e18, True),  # both are the same float64
        (3, 3.0, True),
        (0.1, 0.1, True),
        (0.30000000000000004, 0.3, False),
        (1, True, True),  # Python's own equality: no case has a truth value where a number stands
        (1, "1", False),
    ],
)
def test_numbers_are_float64(expected: Any, found: Any, same: bool) -> None:
    assert (compare_value("numbers", expected, found, "x") == []) is same


def test_a_difference_reads_as_a_sentence() -> None:
    (difference,) = compare_outcome({"binds": {"a/p": "n0"}}, {"binds": {}}, "cycle 2: ")
    assert str(difference) == "cycle 2: binds.a/p: expected 'n0', was nothing"
    (difference,) = compare_outcome({"conditions": OUTCOME["conditions"]}, {"conditions": {}})
    assert str(difference) == "conditions.a/j: expected Scheduled (r): m, was nothing"
