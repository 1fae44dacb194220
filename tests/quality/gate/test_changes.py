"""Changes of policies made for this test: bad ones fail and are cut down, harmless ones pass whatever the noise."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pumice.questions.gate.expectations import expectation_of
from pumice.questions.gate.gate import GateVerdict, found_by_reading, lived, verdict
from pumice.questions.gate.judging import Judgement, Pairs
from pumice.questions.gate.policy import GatePolicy, Noise, Workload
from pumice.questions.gate.reduce import counted, reduced
from pumice.questions.gate.runner import KeptRuns, Runner
from pumice.questions.gate.sides import PolicySides, read_side
from pumice.questions.gate.workloads import Trial
from tests.quality.gate.bad import BAD
from tests.quality.gate.harmless import HARMLESS
from tests.quality.gate.parts import Change
from tests.quality.gate.unseen import UNSEEN_BAD, UNSEEN_HARMLESS

QUICK = ("capability-too-small-for-a-job", "label-dropped", "budget-dropped", "quota-beyond-the-cluster")
"""Those that every run of the tests tries; the others are slow."""
DRAWS = int(os.environ.get("PUMICE_GATE_DRAWS", "2"))
"""Draws of each harmless change; `nox -s gate` takes ten."""
COSTLY = ("priority-dropped", "nodes-tainted", "capability-lowered", "weights-swapped")
"""Bad changes that take a minute each to be cut down: `nox -s gate` does, the slow session only asks that they fail."""
LARGE = ("priority-dropped", "capability-lowered")
"""Bad changes of queues that are long: it takes more than ten jobs to have one wait for so long."""


def listed(changes: tuple[Change, ...]) -> list[Any]:
    return [
        pytest.param(each, id=each.name, marks=[] if each.name in QUICK else [pytest.mark.slow]) for each in changes
    ]


def judged(change: Change, folder: Path, draws: int) -> tuple[GateVerdict, Trial, Pairs, PolicySides, GatePolicy]:
    for side, files in (("base", change.base), ("head", change.head)):
        written(folder / side, files)
    expect = tuple(expectation_of("", *each) for each in change.expect)
    workload = Workload("w", (), until_s=change.until_s)
    policy = GatePolicy(folder, expect=expect, noise=Noise(draws))
    head = replace(read_side("head", folder / "head"), renamed=change.renamed)
    sides = PolicySides(read_side("base", folder / "base"), head)
    trial = Trial(workload, tuple(change.workload), expect)
    found = lived([trial], sides, policy, Runner(KeptRuns(None)))
    told = verdict(sides, policy, found_by_reading([trial], sides), [trial], found)
    return told, trial, found, sides, policy


def written(folder: Path, files: Mapping[str, str]) -> None:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")


def failing(told: GateVerdict) -> list[str]:
    return [each.text for each in (*told.expectations, *told.defaults) if each.verdict is Judgement.FAILS]


@pytest.mark.parametrize("change", listed(BAD))
def test_a_bad_change_fails_and_is_cut_down(change: Change, tmp_path: Path) -> None:
    told, trial, found, sides, policy = judged(change, tmp_path, 1)
    verdicts = {each.text: (each.verdict.value, each.base, each.head) for each in told.expectations}
    assert not told.passes, verdicts
    broken = [each for each in trial.expect if each.text in failing(told)]
    assert broken, verdicts
    if change.name in COSTLY and "PUMICE_GATE_DRAWS" not in os.environ:
        return
    least = reduced(trial, broken[0], found["w"][0], sides, policy)
    assert least is not None
    jobs, nodes = counted(least.trial.objects)
    assert jobs <= (20 if change.name in LARGE else 10)
    assert nodes <= 4


@pytest.mark.parametrize("change", listed((*HARMLESS, *UNSEEN_HARMLESS)))
def test_a_harmless_change_passes_under_noise(change: Change, tmp_path: Path) -> None:
    told, *_ = judged(change, tmp_path, DRAWS)
    assert told.passes, (told.findings, failing(told))
    assert all(each.verdict is not Judgement.EMPTY for each in told.expectations if each.text != "unstarted == 0")


@pytest.mark.parametrize("change", listed(UNSEEN_BAD))
def test_a_bad_change_that_was_written_before_is_caught(change: Change, tmp_path: Path) -> None:
    told, *_ = judged(change, tmp_path, 1)
    assert not told.passes, [(each.text, each.verdict.value, each.base, each.head) for each in told.expectations]
