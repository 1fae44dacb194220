"""What a PodGroup must say at rest, by what its pods do."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.core.messages.events import Mutation
from pumice.proof.storm.invariants.statuses import wrong_statuses
from pumice.proof.storm.invariants.truth import StormTruth
from pumice.storage import codec
from tests.pumice.proof.storm.invariants.test_truth import group, pod, queue

Pods = list[tuple[str, str, int]]
"""Node, phase, cpu of each; the group needs two."""
RUNS, BOUND, WAITS = ("n", "Running", 1), ("n", "Pending", 1), ("", "Pending", 1)
DONE, FAILED, NOTHING = ("n", "Succeeded", 1), ("n", "Failed", 1), ("", "Pending", 0)


def found(pods: Pods, phase: str, running: int, *, gang: bool = True, queued: bool = True) -> list[str]:
    truth = StormTruth()
    objects: list[Any] = [pod(number, "a", node, said, cpu=cpu) for number, (node, said, cpu) in enumerate(pods)]
    objects += [
        group("a", "q") | {"status": {"phase": phase, "running": running}},
        *([queue("q", 9)] if queued else []),
    ]
    for revision, obj in enumerate(objects, 1):
        meta = obj["metadata"]
        name = (meta.get("namespace", ""), meta["name"])
        truth.apply(Mutation(revision, "ADDED", obj["kind"], *name, codec.pack(obj)))
    return wrong_statuses(truth, gang=gang)


@pytest.mark.parametrize(
    ("pods", "phases", "running"),
    [
        ([RUNS, RUNS, WAITS], ["Running"], 2),
        ([RUNS, BOUND], ["Running"], 1),
        ([RUNS, NOTHING], ["Pending", "Inqueue"], 1),
        ([RUNS, WAITS], ["Unknown"], 1),
        ([RUNS, FAILED], ["Unknown"], 1),
        ([WAITS, WAITS], ["Pending", "Inqueue"], 0),
        ([DONE, FAILED], ["Completed"], 0),
        ([DONE, RUNS], ["Running"], 1),
    ],
)
def test_only_what_the_pods_do_is_right(pods: Pods, phases: list[str], running: int) -> None:
    for phase in ("", "Pending", "Inqueue", "Running", "Unknown", "Completed"):
        assert (found(pods, phase, running) == []) is (phase in phases), phase
    assert found(pods, phases[0], running + 1)


def test_without_the_gang_plugin_no_group_is_unschedulable() -> None:
    assert found([RUNS, FAILED], "Running", 1, gang=False) == []
    assert found([RUNS, WAITS], "Unknown", 1, gang=False) == [
        "group d/a says Unknown, 1 running; it is Pending or Inqueue, 1 running"
    ]


def test_of_a_group_whose_queue_has_gone_nobody_says_anything() -> None:
    assert found([RUNS, RUNS], "", 0, queued=False) == []
