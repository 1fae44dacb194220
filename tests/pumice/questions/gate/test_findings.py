"""Findings that are new in head."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pumice.lab.builders import gang
from pumice.questions.gate.findings import CHECK, PolicyFinding, findings, new_in
from pumice.questions.gate.sides import read_side
from tests.quality.gate.parts import conf, policy
from tests.quality.gate.test_changes import written


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


def test_a_tier_that_is_missing_is_found_once_for_all_its_jobs(tmp_path: Path) -> None:
    written(tmp_path / "head", policy(conf(second=("network-topology-aware", "predicates", "proportion"))))
    jobs = [gang(f"j-{n}", 2) for n in range(4)]
    for number, job in enumerate(jobs):
        asked = {"highestTierAllowed": 1} if number < 3 else {"highestTierName": "rack"}
        job["spec"]["networkTopology"] = {"mode": "hard", **asked}
    found = [each for each in findings(read_side("head", tmp_path / "head"), jobs) if each.rule == "no tier"]
    assert [each.sentence for each in found] == [
        "no HyperNode is of tier 1 or below, and default/j-0 and 2 more may span no other: never placed",
        "no HyperNode has the tier name 'rack', and default/j-3 may span no other: never placed",
    ]


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
