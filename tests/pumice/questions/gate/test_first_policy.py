"""A first policy file: bounds a little beyond what the present policy keeps to, which passes and can be read."""

from __future__ import annotations

from math import ceil
from pathlib import Path

from pumice.lab.builders import gang, nodes
from pumice.questions.gate.first_policy import first_policy
from pumice.questions.gate.policy import Workload, read_policy
from pumice.questions.gate.runner import KeptRuns, Runner
from pumice.questions.gate.sides import Side, read_side
from pumice.questions.gate.workloads import Trial
from tests.quality.gate.parts import BATCH, CLASSES, PROD, conf, policy


def side(folder: Path) -> Side:
    folder.mkdir()
    for name, text in policy(conf(), *CLASSES, PROD, BATCH).items():
        (folder / name).write_text(text)
    return read_side("cluster", folder)


def test_a_first_policy_bounds_what_waits_and_can_be_read(tmp_path: Path) -> None:
    jobs = [
        gang(f"j-{n}", 1, cpu=2, duration="90s", queue="prod" if n % 2 else "batch", priority="low", arrival=f"{n}s")
        for n in range(10)
    ]
    trial = Trial(Workload("day", ("day.yaml",), until_s=600.0), [*nodes(1, cpu=8), *jobs], ())
    text, chosen = first_policy(["day.yaml"], "cluster", side(tmp_path / "cluster"), trial, Runner(KeptRuns(None)))
    (tmp_path / "gate.yaml").write_text(text)
    read = read_policy(tmp_path / "gate.yaml")
    assert [each.measure for each in read.expect] == [
        "wait.mean[queue=batch]",
        "wait.mean[queue=prod]",
        "unstarted",
        "evictions",
        "lostcpu",
    ]
    assert (read.policy, read.workloads[0].until_s) == ("cluster", 600.0)
    assert [each.bound.value for each in read.expect[2:]] == [0, 0, 0]
    assert len(chosen) == 5
    for each, said in zip(read.expect[:2], chosen, strict=False):
        low, high = (float(word) for word in said.rpartition(": ")[2].split()[0:3:2])
        assert each.bound.value == ceil(high + max(high - low, 1.0))
    assert "6 draws" in text


def test_urgent_jobs_that_hardly_wait_have_a_bound_of_their_own(tmp_path: Path) -> None:
    low = [gang(f"low-{n}", 1, cpu=2, duration="9m", priority="low") for n in range(6)]
    urgent = gang("urgent", 1, cpu=2, duration="1m", priority="high", arrival="1m")
    trial = Trial(Workload("day", (), until_s=300.0), [*nodes(1, cpu=8), *low, urgent], ())
    text, _ = first_policy([], "cluster", side(tmp_path / "cluster"), trial, Runner(KeptRuns(None)))
    (tmp_path / "gate.yaml").write_text(
        "workloads: [{input: x}]\n" + text.partition("expect:")[1] + text.partition("expect:")[2]
    )
    bounds = {each.measure: each.bound.value for each in read_policy(tmp_path / "gate.yaml").expect}
    assert bounds["wait.mean[class=high]"] <= 4
    assert "wait.mean[class=low]" in bounds
