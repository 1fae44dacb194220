"""Pods on nodes that base's filters refuse: a default that the records alone do not tell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pumice.core.objects.metadata import Object
from pumice.lab.builders import gang, nodes
from pumice.questions.gate.defaults import FILTERS
from pumice.questions.gate.gate import found_by_reading, lived, verdict
from pumice.questions.gate.judging import Judged, Judgement
from pumice.questions.gate.mutants import mutated
from pumice.questions.gate.policy import DefaultLimits, GatePolicy, Workload
from pumice.questions.gate.runner import KeptRuns, Runner
from pumice.questions.gate.sides import PolicySides, Side, read_side
from pumice.questions.gate.workloads import Trial
from tests.quality.gate.parts import Plugin, conf, policy, stated_node, with_pods

TAINTED = stated_node("node-0", taint="team")
LENIENT: Plugin = {"name": "predicates", "arguments": {"predicate.TaintTolerationEnable": "false"}}


def side(folder: Path, plugin: Plugin, *objects: Object) -> Side:
    folder.mkdir()
    for name, text in policy(conf("allocate", second=(plugin,)), *objects).items():
        (folder / name).write_text(text)
    return read_side(folder.name, folder)


def judged(work: list[Object], base: Side, head: Side, policy: GatePolicy | None = None) -> Judged | None:
    trial, read = Trial(Workload("w", (), until_s=60.0), work, ()), policy or GatePolicy()
    sides = PolicySides(base, head)
    pairs = lived([trial], sides, read, Runner(KeptRuns(None)))
    found = verdict(sides, read, found_by_reading([trial], sides), [trial], pairs).defaults
    return next((each for each in found if each.name == FILTERS), None)


def test_a_filter_that_is_switched_off_fails_where_a_pod_goes_there(tmp_path: Path) -> None:
    base, head = side(tmp_path / "b", "predicates", TAINTED), side(tmp_path / "h", LENIENT, TAINTED)
    found = judged([*nodes(2, cpu=2), gang("j", 2, cpu=2)], base, head)
    assert found is not None
    assert (found.verdict, found.base, found.head) == (Judgement.FAILS, 0.0, 1.0)
    assert "on node-0: " in found.why
    assert "taint" in found.why


def test_a_pod_that_base_allows_there_is_no_failure(tmp_path: Path) -> None:
    base, head = side(tmp_path / "b", "predicates", TAINTED), side(tmp_path / "h", LENIENT, TAINTED)
    tolerant = with_pods(gang("j", 2, cpu=2), tolerations=[{"key": "team", "operator": "Exists"}])
    found = judged([*nodes(2, cpu=2), tolerant], base, head)
    assert found is not None
    assert found.verdict is Judgement.OK


def test_the_default_can_be_switched_off(tmp_path: Path) -> None:
    base, head = side(tmp_path / "b", "predicates", TAINTED), side(tmp_path / "h", LENIENT, TAINTED)
    off = GatePolicy(defaults=DefaultLimits(off=(FILTERS,)))
    assert judged([*nodes(2, cpu=2), gang("j", 2, cpu=2)], base, head, off) is None


def test_mutants_are_judged_by_it_too(tmp_path: Path) -> None:
    head = side(tmp_path / "h", "predicates", TAINTED)
    trial = Trial(Workload("w", (), until_s=60.0), [*nodes(2, cpu=2), gang("j", 1, cpu=2), gang("k", 1, cpu=2)], ())
    found = mutated([trial], replace(head), GatePolicy(), Runner(KeptRuns(None)))
    noticed = {each.change: each.noticed_by for each in found.mutants}
    assert FILTERS in noticed["plugin predicates is taken out"]
