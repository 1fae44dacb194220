"""A reason has the same words, whatever the counts."""

from __future__ import annotations

import pytest

from pumice.questions.report.recorded import LONGEST, NOT_LOOKED_AT, reason_of, short


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("0/25 nodes are unavailable: 25 Insufficient nvidia.com/gpu.", "Insufficient nvidia.com/gpu"),
        ("0/9 nodes are unavailable: 2 Insufficient cpu, 7 node(s) had taints.", "node(s) had taints"),
        ("pod group is not ready, 1 Pending, 3 minAvailable", "its gang is not complete"),
        ("pod group is ready, 3 minAvailable, 1 Pending", "beyond what its gang needs"),
        (
            (
                "pod group is not ready, 4 minAvailable; Pending: 6 Unschedulable. Origin reason is b-6: 0/16 nodes "
                "are unavailable: 7 Insufficient cpu, 9 Insufficient nvidia.com/gpu."
            ),
            "Insufficient nvidia.com/gpu",
        ),
        (
            (
                "Pod default/vision1-1 can possibly be assigned to node-05, once resource is released and "
                "minAvailable is satisfied"
            ),
            "promised room that is being released",
        ),
        (
            "Pod default/vision1-1 can possibly be assigned to node-05, once minAvailable is satisfied",
            "there is room, once its gang is complete",
        ),
        (
            "Task big-worker-10 with role spec worker has already predicated failed, skip",
            "refused as a pod like it was",
        ),
        ("volume pvc-17 of node-05 is full, 3 are free", "volume pvc-17 of node-05 is full, N are free"),
        ("word " * 40, "word " * (LONGEST // 5) + "…"),
        ("x" * 200, "x" * LONGEST + " …"),
        ("", ""),
    ],
)
def test_in_few_words(message: str, words: str) -> None:
    assert short(message) == words


def test_a_pod_nobody_has_looked_at_says_so() -> None:
    assert reason_of({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}) == NOT_LOOKED_AT
