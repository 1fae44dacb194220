"""Findings that are new in head."""

from __future__ import annotations

import pytest

from pumice.questions.gate.findings import new_in_head


@pytest.mark.parametrize(
    ("base", "head", "is_new"),
    [
        ("preempt and reclaim make room", "preempt makes room", False),
        ("preempt makes room", "preempt and reclaim make room", True),
        ("preempt asks a, b", "preempt asks b, a", False),
        ("tiers[1]: plugin x", "tiers[0]: plugin x", False),
        ("queue etl has no affinity", "queue train has no affinity", True),
        ("capability is 3 cpu", "capability is 4 cpu", True),
    ],
)
def test_a_finding_is_new_unless_base_says_as_much(base: str, head: str, is_new: bool) -> None:
    assert bool(new_in_head([base], [head])) is is_new
