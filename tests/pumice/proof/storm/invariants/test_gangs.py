"""What the scheduler could know of a gang whose pods it takes."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.core.messages.events import Mutation
from pumice.proof.storm.invariants.monitor import broken_gang
from pumice.proof.storm.invariants.truth import StormTruth
from pumice.storage import codec
from tests.pumice.proof.storm.invariants.test_truth import group, pod


def truth_of(*pods: tuple[str, str], job: str = "a") -> StormTruth:
    """A group that needs two of these pods (node and phase), numbered from 1; the group has revision 1."""
    truth = StormTruth()
    for number, (node, phase) in enumerate(pods, 1):
        see(truth, pod(number, job, node, phase, cpu=1))
    see(truth, group(job, "q"))
    return truth


def see(truth: StormTruth, obj: Any, type_: Any = "MODIFIED") -> None:
    meta = obj["metadata"]
    name = (meta.get("namespace", ""), meta["name"])
    truth.apply(Mutation(truth.revision + 1, type_, obj["kind"], *name, codec.pack(obj)))


def test_victims_leave_a_gang_what_it_needs() -> None:
    truth = truth_of(("n", "Running"), ("n", "Succeeded"), ("", "Pending"))
    assert broken_gang(truth, "d/a", set(), set(), 9) == ""
    assert broken_gang(truth, "d/a", set(), {"u1"}, 9) == "gang d/a needs 2, its victims leave it 1"
    assert broken_gang(truth, "d/a", {"u3"}, {"u1"}, 9) == ""
    assert broken_gang(truth, "d/none", set(), {"u1"}, 9) == ""


@pytest.mark.parametrize("how", ["deleted", "failed", "marked"])
def test_what_is_lost_after_the_revision_counts_and_what_was_lost_before_does_not(how: str) -> None:
    truth = truth_of(("n", "Running"), ("n", "Running"), ("n", "Running"))
    known = truth.revision
    lost = pod(3, "a", "n", "Failed" if how == "failed" else "Running", cpu=1)
    if how == "marked":
        lost["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    see(truth, lost, "DELETED" if how == "deleted" else "MODIFIED")
    assert broken_gang(truth, "d/a", set(), {"u1"}, known) == ""
    assert broken_gang(truth, "d/a", set(), {"u1"}, known + 1)
    assert broken_gang(truth, "d/a", set(), {"u1", "u3"}, known)
