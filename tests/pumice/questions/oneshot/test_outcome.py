"""A cycle's result as an OUTCOME."""

from __future__ import annotations

from pumice.core.messages.decisions import (
    Bind,
    CycleReport,
    CycleResult,
    Evict,
    PodCondition,
    PodGroupCondition,
    QueueStatus,
    TaskAtOpen,
)
from pumice.core.messages.queue_tables import QueueColumns
from pumice.questions.oneshot.outcome import Standing, at_open, outcome_of


def test_every_key_of_an_empty_cycle_is_there_and_empty() -> None:
    outcome = outcome_of(CycleResult(1, ""), {})
    assert list(outcome) == [
        "binds", "evictions", "pipelined", "uncommitted", "awaitingVolumes", "phases", "taskStatus", "nominated",
        "conditions", "podConditions", "podAnnotations", "numaAllocatable", "queueAllocated",
    ]  # fmt: skip
    assert not any(outcome.values())


def test_decisions_and_writes() -> None:
    condition = PodGroupCondition("Scheduled", "True", "ready", "")
    outcome = outcome_of(
        CycleResult(
            1,
            "",
            binds=(Bind("a", "p", "u", "n0", "a/j"),),
            evicts=(Evict("b", "w", "u", "n0", "b/k", "r"), Evict("a", "v", "u", "n0", "a/k", "r")),
            queues=(QueueStatus("q", {"cpu": "1"}),),
            report=CycleReport(
                phases={"a/j": "Inqueue"},
                task_status={"a/j": {"Pending": 0, "Binding": 1}},
                conditions={"a/j": [condition], "a/k": []},
            ),
        ),
        {},
    )
    assert outcome["binds"] == {"a/p": "n0"}
    assert outcome["evictions"] == ["a/v", "b/w"]
    assert outcome["taskStatus"] == {"a/j": {"Binding": 1}}
    assert outcome["conditions"] == {"a/j": [{"type": "Scheduled", "status": "True", "reason": "ready", "message": ""}]}
    assert outcome["queueAllocated"] == {"q": {"cpu": "1"}}


def test_an_update_shows_the_nomination_that_the_pod_has_after_it() -> None:
    updates = (
        PodCondition("a", "new", "u", "Unschedulable", "m", "n1"),
        PodCondition("a", "old", "u", "Unschedulable", "m"),
        PodCondition("a", "none", "u", "Unschedulable", "m"),
        PodCondition("a", "only", "u", "", "", "n2"),
    )
    standing = Standing("", "Unschedulable", "as before")
    before = {"a/old": Standing("n0"), "a/unwritten": Standing("n3"), "a/only": standing}
    outcome = outcome_of(CycleResult(1, "", pod_conditions=updates), before)
    assert outcome["nominated"] == {"a/new": "n1", "a/old": "n0", "a/only": "n2"}
    assert set(outcome["podConditions"]) == {"a/new", "a/old", "a/none", "a/only"}
    assert outcome["podConditions"]["a/only"] == {"reason": "Unschedulable", "message": "as before"}


def test_what_was_seen_at_the_opening() -> None:
    report = CycleReport(
        queues=QueueColumns(["q"], {"weight": [1]}),
        tasks_at_open={"a/p": TaskAtOpen("", {"n0": "no"}, {"n1": 5.0}), "a/q": TaskAtOpen("bad", {}, {})},
    )
    assert at_open(report) == {
        "queues": {"q": {"weight": 1}},
        "tasks": {
            "a/p": {"rejected": {"n0": "no"}, "scores": {"n1": 5.0}},
            "a/q": {"rejected": {}, "scores": {}, "prePredicate": "bad"},
        },
    }
