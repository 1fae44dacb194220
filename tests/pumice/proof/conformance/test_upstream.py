"""The loose expectations of Volcano's own tests."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.proof.conformance.compare import binds_per_hyper_node, compare_expect

JOBS = {"a/p0": "a/j", "a/p1": "a/j", "a/p2": "a/k"}
OUTCOME: dict[str, Any] = {
    "binds": {"a/p0": "n0", "a/p1": "n1"},
    "evictions": ["a/v"],
    "pipelined": {"a/p2": "n0"},
    "phases": {"a/j": "Inqueue", "a/k": "Pending"},
    "taskStatus": {"a/j": {"Binding": 2}, "a/k": {"Pending": 1}},
}


@pytest.mark.parametrize(
    ("expect", "holds"),
    [
        ({}, True),
        ({"binds": {"a/p0": "n0", "a/p1": "n1"}}, True),
        ({"binds": {"a/p0": "n0"}}, False),
        ({"bindCount": 2}, True),
        ({"bindCount": 3}, False),
        ({"evictions": ["a/v"]}, True),
        ({"evictions": []}, False),
        ({"pipelined": {"a/k": ["n0", "n1"]}}, True),
        ({"pipelined": {"a/k": ["n1"]}}, False),
        ({"pipelined": {"a/j": ["n0"]}}, False),
        ({"phases": {"a/j": "Inqueue"}}, True),
        ({"phases": {"a/j": "Running"}}, False),
        ({"phases": {"a/gone": "Inqueue"}}, False),
        ({"taskStatus": {"a/j": {"Binding": 2}}}, True),
        ({"taskStatus": {"a/j": {"Binding": 1}}}, False),
    ],
)
def test_expectations(expect: dict[str, Any], holds: bool) -> None:
    assert (compare_expect({"expect": expect, "objects": []}, OUTCOME, JOBS) == []) is holds


def hyper_node(name: str, tier: int, *selectors: dict[str, Any], kind: str = "Node") -> dict[str, Any]:
    members = [{"type": kind, "selector": selector} for selector in selectors]
    return {"kind": "HyperNode", "metadata": {"name": name}, "spec": {"tier": tier, "members": members}}


def test_binds_are_counted_by_the_lowest_hyper_node() -> None:
    objects = [
        *({"kind": "Node", "metadata": {"name": f"n{index}"}} for index in range(4)),
        hyper_node("s0", 1, {"exactMatch": {"name": "n0"}}, {"exactMatch": {"name": "n1"}}),
        hyper_node("s1", 1, {"regexMatch": {"pattern": "n[23]"}}),
        hyper_node("top", 2, {"exactMatch": {"name": "s0"}}, {"exactMatch": {"name": "s1"}}, kind="HyperNode"),
        hyper_node("odd", 2, {"exactMatch": {"name": "n0"}}),
    ]
    binds = {"a": "n0", "b": "n1", "c": "n3"}
    assert binds_per_hyper_node({"objects": objects}, binds) == {"s0": 2, "s1": 1}
    case = {"expect": {"bindsPerHyperNode": [1, 2]}, "objects": objects}
    assert compare_expect(case, {**OUTCOME, "binds": binds}, JOBS) == []
    assert compare_expect(case, {**OUTCOME, "binds": {"a": "n0"}}, JOBS) != []
