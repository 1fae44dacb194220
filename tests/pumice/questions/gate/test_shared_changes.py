"""Changes of policy that were judged by hand come out as they were judged."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pumice.questions.gate.expectations import Expectation, expectation_of
from pumice.questions.gate.gate import GateVerdict, found_by_reading, lived, verdict
from pumice.questions.gate.judging import Judgement, Pair
from pumice.questions.gate.policy import GatePolicy, Workload
from pumice.questions.gate.reduce import counted, reduced
from pumice.questions.gate.runner import KeptRuns, Runner
from pumice.questions.gate.sides import PolicySides, read_side
from pumice.questions.gate.workloads import Trial, read_workload
from tests.kit.source import SHARED

FOLDER = SHARED / "gate"
needs_shared = pytest.mark.skipif(not FOLDER.exists(), reason="../shared/gate is not there")
BAD = ("07-reclaim-taken-out", "19-gang-left-out", "28-deserved-cuts-a-pod")
"""Those that are lived through quickly; the others are slow."""


ROW = re.compile(r"^\| (.+?) \| `(.+?)` \| (<=|==|>=) (\S+) \| (\S+) \| (\S+) \|", re.MULTILINE)


def changes(kind: str) -> list[Path]:
    return sorted((FOLDER / kind).glob("*")) if FOLDER.exists() else []


def named(path: Path) -> Any:
    return pytest.param(path, id=path.name, marks=[] if path.name in BAD else [pytest.mark.slow])


def expected(folder: Path) -> tuple[Expectation, ...]:
    file = folder / "expect.json"
    said: list[dict[str, Any]] = json.loads(file.read_text()) if file.exists() else table(folder)
    return tuple(expectation_of(each["words"], each["measure"], each["op"], each["value"]) for each in said)


def table(folder: Path) -> list[dict[str, Any]]:
    """The expectations as the page of a change has them."""
    rows = ROW.findall((folder / "EXPECT.md").read_text())
    return [
        {"words": words, "measure": measure, "op": op, "value": float(value)} for words, measure, op, value, *_ in rows
    ]


def figures(folder: Path) -> dict[str, tuple[float, float]]:
    """The measures of both sides as the page of a change has them: by `pumice run` and `pumice measures`."""
    found = ROW.findall((folder / "EXPECT.md").read_text())
    return {words: (float(base), float(head)) for words, _, _, _, base, head in found}


def assert_figures(told: GateVerdict, folder: Path) -> None:
    said = {each.name: (each.base, each.head) for each in told.expectations}
    assert not told.stopped
    assert said == {name: pytest.approx(both, abs=0.051) for name, both in figures(folder).items()}


def judged(folder: Path) -> tuple[GateVerdict, Trial, Pair, PolicySides, GatePolicy]:
    said = re.search(r"--until (\w+) ", (folder / "EXPECT.md").read_text())
    assert said is not None
    until_s = None if said[1] == "idle" else float(said[1].removesuffix("s"))
    workload, expect = Workload("w", ("workload.yaml",), until_s=until_s), expected(folder)
    policy = GatePolicy(folder, expect=expect)
    sides = PolicySides(read_side("base", folder / "base"), read_side("head", folder / "head"))
    trial = Trial(workload, read_workload(workload, folder), expect)
    found = lived([trial], sides, policy, Runner(KeptRuns(None)))
    told = verdict(sides, policy, found_by_reading([trial], sides), [trial], found)
    return told, trial, found["w"][0], sides, policy


@pytest.mark.slow
@needs_shared
@pytest.mark.parametrize("folder", [named(each) for each in changes("bad")])
def test_a_bad_change_fails_and_is_cut_down(folder: Path) -> None:
    told, trial, pair, sides, policy = judged(folder)
    assert not told.passes
    assert_figures(told, folder)
    failing = [each.name for each in told.expectations if each.verdict is Judgement.FAILS]
    assert failing, "it is caught by what was expected of it, not by reading alone"
    expectation = next(each for each in trial.expect if each.name == failing[0])
    least = reduced(trial, expectation, pair, sides, policy)
    assert least is not None
    jobs, nodes = counted(least.trial.objects)
    assert (jobs <= 10, nodes <= 4) == (True, True), (jobs, nodes)


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize("folder", [pytest.param(each, id=each.name) for each in changes("harmless")])
def test_a_harmless_change_passes(folder: Path) -> None:
    told, *_ = judged(folder)
    assert_figures(told, folder)
    assert told.passes, [each for each in (*told.expectations, *told.defaults) if each.verdict is Judgement.FAILS]
