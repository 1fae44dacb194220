"""Jobs that the API refuses: their users wait, whatever it is that does not take them."""

from __future__ import annotations

from pathlib import Path

from pumice.lab.builders import gang, nodes, queue
from pumice.questions.gate.defaults import REFUSED
from pumice.questions.gate.differing import first_difference
from pumice.questions.gate.expectations import expectation_of
from pumice.questions.gate.gate import base_task, found_by_reading, head_task, lived, verdict
from pumice.questions.gate.judging import Judgement
from pumice.questions.gate.policy import GatePolicy, Workload
from pumice.questions.gate.reduce import reduced
from pumice.questions.gate.runner import KeptRuns, Runner
from pumice.questions.gate.sides import PolicySides, read_side
from pumice.questions.gate.workloads import Trial
from tests.quality.gate.parts import conf, policy
from tests.quality.gate.test_changes import written

EXPECTED = [("wait.mean[queue=lab]", "<=", 10), ("unstarted", "==", 0), ("jobs[pods>=3]", "==", 1)]


def test_a_job_that_head_refuses_waits_until_the_horizon(tmp_path: Path) -> None:
    lab, other = queue("lab"), queue("other")
    written(tmp_path / "base", policy(conf(), lab, other))
    written(tmp_path / "head", policy(conf(), other))
    sides = PolicySides(read_side("base", tmp_path / "base"), read_side("head", tmp_path / "head"))
    jobs = [gang("a", 3, queue="lab", arrival="20s", duration="5s"), gang("b", 1, queue="other", duration="5s")]
    expect = tuple(expectation_of("", *each) for each in EXPECTED)
    trial = Trial(Workload("w", (), until_s=100.0), [*nodes(1), *jobs], expect)
    found = lived([trial], sides, GatePolicy(), Runner(KeptRuns(None)))
    told = verdict(sides, GatePolicy(), found_by_reading([trial], sides), [trial], found)
    assert [(each.verdict, each.head) for each in told.expectations] == [
        (Judgement.FAILS, 80.0),
        (Judgement.FAILS, 1.0),
        (Judgement.OK, 1.0),
    ]
    assert [each.name for each in told.defaults if each.verdict is Judgement.FAILS and each.name == REFUSED]
    (pair,) = found["w"]
    least = reduced(trial, expect[0], pair, sides, GatePolicy())
    assert least is not None
    assert [each["metadata"]["name"] for each in least.trial.objects if each["kind"] == "Job"] == ["a"]
    difference = first_difference(base_task(trial, sides, GatePolicy()), head_task(trial, sides, GatePolicy()), pair)
    assert difference is not None
    assert "lab" in difference.head.reason
