"""Queues and classes that head calls otherwise: the workload's names stay in expectations, findings and records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from pumice.core.objects.metadata import Object
from pumice.lab.builders import gang, nodes, priority_class, queue
from pumice.questions.gate.defaults import EQUAL
from pumice.questions.gate.expectations import expectation_of
from pumice.questions.gate.gate import GateVerdict, found_by_reading, lived, verdict
from pumice.questions.gate.judging import Judgement, Pair
from pumice.questions.gate.mutants import mutants
from pumice.questions.gate.policy import GatePolicy, Workload
from pumice.questions.gate.runner import KeptRuns, Runner
from pumice.questions.gate.sides import PolicySides, Side, read_side
from pumice.questions.gate.workloads import Trial, joined
from tests.quality.gate.parts import CAPACITY, GANG, HIGH, LOW, conf, policy

MERGED = {"a": "merged", "b": "merged"}


def side(folder: Path, *objects: Object, config: str = "", renamed: Mapping[str, str] | None = None) -> Side:
    folder.mkdir()
    for name, text in policy(config or conf("allocate, preempt", second=CAPACITY), *objects).items():
        (folder / name).write_text(text)
    return replace(read_side(folder.name, folder), renamed=renamed or {})


def judged(work: list[Object], sides: PolicySides, *expected: tuple[str, str, str | float]) -> tuple[GateVerdict, Pair]:
    trial = Trial(Workload("w", (), until_s=120.0), work, tuple(expectation_of("", *each) for each in expected))
    found = lived([trial], sides, GatePolicy(), Runner(KeptRuns(None)))
    return verdict(sides, GatePolicy(), found_by_reading([trial], sides), [trial], found), found["w"][0]


def test_two_queues_may_become_one(tmp_path: Path) -> None:
    work = [*nodes(1), *(gang(f"{name}-j", 1, queue=name, arrival="1s") for name in "ab")]
    head = side(tmp_path / "head", queue("merged"), renamed=MERGED)
    base = side(tmp_path / "base", queue("a"), queue("b"))
    told, pair = judged(work, PolicySides(base, head), ("started[queue=a]", "==", 1), ("started[queue=b]", "==", 1))
    assert told.passes, (told.findings, told.expectations)
    assert [(each.base, each.head) for each in told.expectations] == [(1, 1), (1, 1)]
    assert [job.queue for job in pair.head.jobs] == ["a", "b"]
    assert {group.group for group in told.moved[0].queues} == {"a", "b"}


def test_a_class_keeps_the_name_that_the_workload_gives_it(tmp_path: Path) -> None:
    work = [*nodes(1), gang("j", 1, priority="high"), gang("k", 1, priority="low")]
    head = side(tmp_path / "head", LOW, priority_class("urgent", 1000), renamed={"high": "urgent"})
    told, pair = judged(work, PolicySides(side(tmp_path / "base", LOW, HIGH), head), ("jobs[class=high]", "==", 1))
    assert told.passes, told.findings
    assert [job.priority_class for job in pair.head.jobs] == ["high", "low"]


def test_an_eviction_of_an_equal_within_a_merged_queue_is_seen(tmp_path: Path) -> None:
    work = [
        *nodes(1, cpu=4),
        gang("first", 2, cpu=2, min_available=1, duration="20m", queue="a", priority="low"),
        gang("second", 1, cpu=2, duration="5m", queue="b", priority="low", arrival="30s"),
    ]
    config = conf("allocate, preempt", first=(GANG, "conformance"), second=("predicates",))
    head = side(tmp_path / "head", LOW, queue("merged"), config=config, renamed=MERGED)
    told, pair = judged(work, PolicySides(side(tmp_path / "base", LOW, queue("a"), queue("b"), config=config), head))
    assert pair.head.evictions
    assert {each.name: each.verdict for each in told.defaults}[EQUAL] is Judgement.FAILS


def test_labels_and_other_annotations_are_words_of_the_users(tmp_path: Path) -> None:
    job = gang("j", 1, queue="a")
    words = {"queue": "a", "priorityClassName": "a"}
    job["metadata"].update(labels=words, annotations={**words, "scheduling.volcano.sh/queue-name": "a"})
    pods = job["spec"]["tasks"][0]["template"]
    pods["spec"].update(nodeSelector={"queue": "a"}, priorityClassName="a")
    (found,) = joined([job], side(tmp_path / "p", queue("b"), renamed={"a": "b"}), frozenset())[1:]
    assert found["metadata"]["labels"] == words
    assert found["metadata"]["annotations"] == {**words, "scheduling.volcano.sh/queue-name": "b"}
    spec = found["spec"]["tasks"][0]["template"]["spec"]
    assert (found["spec"]["queue"], spec["nodeSelector"], spec["priorityClassName"]) == ("b", {"queue": "a"}, "b")


def test_mutants_keep_the_names_of_head(tmp_path: Path) -> None:
    head = side(tmp_path / "head", queue("merged", weight=3), renamed=MERGED)
    assert {found.renamed == MERGED for _, found in mutants(head)} == {True}


@pytest.mark.parametrize(
    ("base", "head", "renamed", "new"),
    [
        (queue("a", capability={"cpu": 1}), queue("a", capability={"cpu": 2}), {}, []),
        (queue("a", capability={"cpu": 2}), queue("a", capability={"cpu": 1}), {}, ["capability of queue a is 1"]),
        (queue("a", capability={"cpu": 1}), queue("z", capability={"cpu": 1}), {"a": "z"}, []),
        (queue("a"), queue("z", capability={"cpu": 1}), {"a": "z"}, ["capability of queue z is 1"]),
    ],
)
def test_a_limit_that_is_raised_or_renamed_is_no_new_finding(
    base: Object, head: Object, renamed: Mapping[str, str], new: list[str], tmp_path: Path
) -> None:
    work = [*nodes(1), gang("small", 1, cpu=2, queue="a"), gang("large", 1, cpu=4, queue="a")]
    sides = PolicySides(side(tmp_path / "base", base), side(tmp_path / "head", head, renamed=renamed))
    found = found_by_reading([Trial(Workload("w", ()), work, ())], sides).new
    assert [any(said in each for each in found) for said in new] == [True] * len(new)
    assert len(found) == len(new), found


def test_nodes_of_a_policy_are_labels_and_taints_of_the_workloads_nodes(tmp_path: Path) -> None:
    stated = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"pool": "x"}}} for name in "ab"
    ]
    given = nodes(1)
    given[0]["metadata"]["name"] = "a"
    found = joined(given, side(tmp_path / "p", *stated), frozenset())
    assert [(obj["kind"], obj["metadata"]["name"], obj["metadata"]["labels"].get("pool")) for obj in found] == [
        ("Node", "a", "x")
    ]
