"""Findings that are new in head."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.questions.gate.findings import CHECK, PolicyFinding, new_in


@pytest.mark.parametrize(
    ("base", "head", "is_new"),
    [
        ("preempt and reclaim make room", "preempt makes room", False),
        ("preempt makes room", "preempt and reclaim make room", True),
        ("preempt asks a, b", "preempt asks b, a", False),
        ("tiers[1]: plugin x", "tiers[0]: plugin x", False),
        ("the weight of x is 3", "the weight of x is 4", True),
    ],
)
def test_a_sentence_of_check_is_new_unless_base_says_as_much(base: str, head: str, is_new: bool) -> None:
    assert bool(new_in([PolicyFinding(head, CHECK, head)], [PolicyFinding(base, CHECK, base)])) is is_new


SMALL = PolicyFinding("capability of a is 1: x and y never start", "too small: cpu", "a", frozenset(("x", "y")))


@pytest.mark.parametrize(
    ("change", "is_new"),
    [
        ({"sentence": "capability of a is 2: x never starts", "jobs": frozenset(("x",))}, False),
        ({"jobs": frozenset(("x", "z"))}, True),
        ({"subject": "b"}, True),
        ({"rule": "too small: memory"}, True),
    ],
)
def test_a_finding_of_the_gate_is_new_by_rule_subject_and_jobs(change: dict[str, Any], is_new: bool) -> None:
    assert bool(new_in([SMALL._replace(**change)], [SMALL])) is is_new
