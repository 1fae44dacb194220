"""A reason has the same words, whatever the counts."""

from __future__ import annotations

import pytest

from pumice.report.reasons import LONGEST, NOT_LOOKED_AT, reason_of, short


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("0/25 nodes are unavailable: 25 Insufficient nvidia.com/gpu.", "Insufficient nvidia.com/gpu"),
        ("0/9 nodes are unavailable: 2 Insufficient cpu, 7 node(s) had taints.", "node(s) had taints"),
        ("pod group is not ready, 1 Pending, 3 minAvailable", "pod group is not ready, N Pending, N minAvailable"),
        ("pod group is ready, 3 minAvailable, 1 Pending", "pod group is ready, N Pending, N minAvailable"),
        ("x" * 200, "x" * LONGEST),
        ("", ""),
    ],
)
def test_in_few_words(message: str, words: str) -> None:
    assert short(message) == words


def test_a_pod_nobody_has_looked_at_says_so() -> None:
    assert reason_of({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}) == NOT_LOOKED_AT
