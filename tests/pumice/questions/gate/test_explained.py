"""Failures explained: the smallest case, the first decision that differs, files that open it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.core.objects.metadata import Object
from pumice.lab.builders import gang, nodes, queue
from pumice.questions.gate import explained as explained_module
from pumice.questions.gate.cases import read_case
from pumice.questions.gate.differing import first_difference, why_waits
from pumice.questions.gate.expectations import Expectation, expectation_of
from pumice.questions.gate.explained import Explained, explained
from pumice.questions.gate.gate import base_task, found_by_reading, head_task, lived, verdict
from pumice.questions.gate.judging import Pair
from pumice.questions.gate.policy import GatePolicy, Noise, Workload
from pumice.questions.gate.record import RecordedJob, RunRecord
from pumice.questions.gate.reduce import reduced, sharpened
from pumice.questions.gate.run import run
from pumice.questions.gate.runner import KeptRuns, Runner
from pumice.questions.gate.sides import PolicySides, read_side
from pumice.questions.gate.workloads import Trial, arrival_s
from pumice.yaml_text import dump_yaml
from tests.quality.gate.parts import CLASSES, conf, policy

URGENT = expectation_of("urgent", "wait.max[name=urgent-*]", "<=", "10s")


@pytest.fixture
def sides(tmp_path: Path) -> PolicySides:
    for name, config in (("base", conf()), ("head", conf("allocate, backfill"))):
        (tmp_path / name).mkdir()
        for file, text in policy(config, *CLASSES).items():
            (tmp_path / name / file).write_text(text)
    return PolicySides(*(read_side(name, tmp_path / name) for name in ("base", "head")))


def small() -> list[Object]:
    low = [gang(f"low-{n}", 1, cpu=2, duration="5m", priority="low", arrival=f"{n + 3}s") for n in range(4)]
    return [*nodes(1, cpu=8), *low, gang("urgent-0", 1, cpu=2, duration="47s", priority="high", arrival="61s")]


def told(
    trial: Trial,
    sides: PolicySides,
    judged_by: GatePolicy,
    folder: Path | None,
    limit: float = 1e5,
    kept: Path | None = None,
) -> list[Explained]:
    runner = Runner(KeptRuns(kept))
    pairs = lived([trial], sides, judged_by, runner)
    result = verdict(sides, judged_by, found_by_reading([trial], sides), [trial], pairs)
    return list(explained(result, [trial], pairs, sides, judged_by, limit, folder, runner))


def test_the_first_difference_has_the_reasons_of_both_sides(sides: PolicySides) -> None:
    trial = Trial(Workload("w", (), until_s=120.0), small(), (URGENT,))
    base, head = base_task(trial, sides, GatePolicy()), head_task(trial, sides, GatePolicy())
    found = first_difference(base, head, Pair(run(base), run(head)))
    assert found is not None
    assert (found.job, 61.0 <= found.at <= 63.0) == ("default/urgent-0", True)
    assert (len(found.base.evictions), found.head.binds, found.head.evictions) == (1, {}, [])
    assert "cpu" in found.head.reason
    assert first_difference(base, base, Pair(run(base), run(base))) is None


def test_a_job_that_does_not_wait_has_no_reason(sides: PolicySides) -> None:
    trial = Trial(Workload("w", (), until_s=120.0), small(), ())
    assert why_waits(base_task(trial, sides, GatePolicy()), "default/nothing", 30.0) == ""


@pytest.mark.slow
def test_a_case_is_cut_down_while_base_holds_it(sides: PolicySides) -> None:
    trial = Trial(Workload("w", (), until_s=300.0), [*small(), *nodes(1, name="spare", cpu=1)], (URGENT,))
    pair = Pair(run(base_task(trial, sides, GatePolicy())), run(head_task(trial, sides, GatePolicy())))
    least = reduced(trial, URGENT, pair, sides, GatePolicy())
    assert least is not None
    jobs = [obj for obj in least.trial.objects if obj["kind"] == "Job"]
    machines = [obj for obj in least.trial.objects if obj["kind"] == "Node"]
    assert (len(jobs) <= 5, len(machines)) == (True, 1)
    assert min(arrival_s(obj) or 0.0 for obj in jobs) < 1.0
    again = Pair(*(run(make(least.trial, sides, GatePolicy())) for make in (base_task, head_task)))
    assert URGENT.value(again.base, again.horizon_s) <= 10.0 < URGENT.value(again.head, again.horizon_s)
    assert reduced(trial, URGENT, pair, PolicySides(sides.base, sides.base), GatePolicy()) is None


@pytest.mark.parametrize(
    ("expectation", "kept"),
    [
        (URGENT, URGENT.text),
        (expectation_of("", "wait.mean", "<=", 10), "wait.max[name=b,namespace=d] <= 55"),
        (expectation_of("", "unstarted", "==", 0), "wait.max[name=b,namespace=d] <= 55"),
        (expectation_of("", "evictions", "==", 0), "evictions == 0"),
    ],
)
def test_a_figure_of_many_becomes_the_wait_of_one(expectation: Expectation, kept: str) -> None:
    def record(wait_s: float | None) -> RunRecord:
        return RunRecord(100.0, (RecordedJob("d/a", started=5.0), RecordedJob("d/b", started=wait_s)))

    assert sharpened(expectation, Pair(record(10.0), record(None))).text == kept


@pytest.mark.slow
def test_an_explanation_is_not_found_out_again(
    sides: PolicySides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = Trial(Workload("w", (), until_s=120.0), small(), (URGENT,))
    (first,) = told(trial, sides, GatePolicy(), None, 1e4, tmp_path / "kept")
    monkeypatch.setattr(explained_module, "reduced", None)
    assert told(trial, sides, GatePolicy(), None, 1e4, tmp_path / "kept") == [first]
    with pytest.raises(TypeError):  # another limit is another question
        told(trial, sides, GatePolicy(), None, 2e4, tmp_path / "kept")


@pytest.mark.slow
def test_a_failure_is_kept_as_a_case_that_reads_back(sides: PolicySides, tmp_path: Path) -> None:
    trial = Trial(Workload("w", (), until_s=120.0), small(), (URGENT,))
    (found,) = told(trial, sides, GatePolicy(), tmp_path / "kept")
    assert (found.jobs <= 5, found.nodes, found.complete, found.kept) == (True, 1, True, URGENT.text)
    case = read_case(next((tmp_path / "kept").glob("*.case.yaml")))
    assert case.expect[0].text == URGENT.text
    assert [Path(each).suffix for each in found.files] == [".yaml", ".db", ".db"]
    assert found.commands[0].endswith("job default/urgent-0")


def test_a_failure_of_a_later_draw_is_shown_by_that_draw(sides: PolicySides) -> None:
    trial = Trial(Workload("w", (), until_s=120.0), small(), (URGENT,))
    (found,) = told(trial, sides, GatePolicy(noise=Noise(3)), None, 0)
    assert (found.tries, found.complete, found.files) == (0, False, ())


def test_a_job_that_head_refuses_is_kept_without_explain(sides: PolicySides, tmp_path: Path) -> None:
    (tmp_path / "base/more.yaml").write_text(dump_yaml(queue("team")))
    both = PolicySides(read_side("base", tmp_path / "base"), sides.head)
    work = [*nodes(1), gang("j", 1, queue="team")]
    trial = Trial(Workload("w", (), until_s=10.0), work, (expectation_of("there", "started", ">=", 1),))
    (found,) = told(trial, both, GatePolicy(), tmp_path / "kept", 0)
    assert len(found.files) == 3
    assert [command.split()[:2] for command in found.commands] == [["pumice", "view"]]
