"""`pumice conformance`: JSON, exit codes, and a run that no case can abort."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.kit.nodes import node
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.queues import queue
from tests.pumice.cli.terminal import pumice

CONF = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n'


def case(name: str, binds: dict[str, str], **more: Any) -> dict[str, Any]:
    """One pod, one node."""
    objects = [node("n0"), queue("default"), pod_group("g", phase="Inqueue"), pod("p", group="g", phase="Pending")]
    outcome: dict[str, Any] = {"binds": binds, "evictions": []}
    base = {"name": name, "now": "2026-01-01T00:00:00Z", "confYaml": CONF, "cycles": 1, "objects": objects}
    return {**base, "expect": {"cycles": [outcome], "distinctOutcomes": 1}, **more}


@pytest.fixture
def suite(tmp_path: Path) -> Any:
    """Write cases as a suite and give its folder."""

    def write(*cases: dict[str, Any]) -> Path:
        folder = tmp_path / "oracle"
        folder.mkdir(exist_ok=True)
        (folder / "small.json").write_text(json.dumps({"suite": "small", "source": "here", "cases": cases}))
        return tmp_path

    return write


def test_a_case_that_holds(suite: Any) -> None:
    said = pumice("conformance", suite(case("good", {"default/p": "n0"})), "-o", "json")
    assert said.code == 0
    assert said.json["by_suite"] == {"oracle/small": {"total": 1, "passed": 1}}
    assert said.json["decisions"] == {"total": 1, "passed": 1}
    assert said.json["words"] == {"total": 0, "passed": 0}
    assert said.json["failures"] == []


def test_a_planted_difference_is_found(suite: Any) -> None:
    path = suite(case("good", {"default/p": "n0"}), case("bad", {"default/p": "n1"}))
    said = pumice("conformance", path, "-o", "json")
    assert said.code == 1
    assert (said.json["total"], said.json["passed"], said.json["failed"]) == (2, 1, 1)
    (failure,) = said.json["failures"]
    assert failure == {"suite": "oracle/small", "case": "bad", "diff": "binds.default/p: expected 'n1', was 'n0'"}
    assert "oracle/small: bad: binds.default/p" in pumice("conformance", path, "-o", "table").out


def test_alternatives(suite: Any) -> None:
    one, other = [{"binds": {"default/p": "n1"}}], [{"binds": {"default/p": "n0"}}]
    good = case("good", {}, expect={"anyOf": [one, other]})
    bad = case("bad", {}, expect={"anyOf": [one, one]})
    said = pumice("conformance", suite(good, bad), "-o", "json")
    assert [failure["case"] for failure in said.json["failures"]] == ["bad"]


def test_cases_that_cannot_be_run_fail_with_their_reason_and_the_others_run(suite: Any) -> None:
    broken = case("broken", {}, objects=[{"kind": "Pod", "metadata": None, "spec": 5}])
    unknown = case("unknown", {}, confYaml='actions: "fly"\ntiers: []\n')
    said = pumice("conformance", suite(broken, unknown, case("good", {"default/p": "n0"})), "-o", "json")
    reasons = {failure["case"]: failure["diff"] for failure in said.json["failures"]}
    assert set(reasons) == {"broken", "unknown"}
    assert "raised" in reasons["broken"]
    assert "'fly'" in reasons["unknown"]


def test_a_substring_chooses_and_workers_do_not_change_the_result(suite: Any) -> None:
    path = suite(*(case(f"c{index}", {"default/p": "n0"}) for index in range(3)))
    assert pumice("conformance", path, "-k", "small: c1", "-o", "json").json["total"] == 1
    alone = pumice("conformance", path, "-o", "json", "--workers", 1)
    assert alone.json == pumice("conformance", path, "-o", "json", "--workers", 2).json


def test_numbers_and_words_are_scored_apart(suite: Any) -> None:
    expect = {"cycles": [{"binds": {"default/p": "n0"}, "conditions": {}}], "atOpen": {"queues": {"q": {"share": 1}}}}
    said = pumice("conformance", suite(case("c", {}, expect=expect)), "-o", "json")
    assert [said.json[group]["passed"] for group in ("decisions", "numbers", "words")] == [1, 0, 0]


def test_resources_count_one_case_a_row(tmp_path: Path) -> None:
    rows = [
        {"text": "1", "milli": 1000, "value": 1, "canonical": "1"},
        {"text": "2", "milli": 1, "value": 2, "canonical": "2"},
    ]
    (tmp_path / "resources.json").write_text(json.dumps({"quantities": rows, "operations": []}))
    said = pumice("conformance", tmp_path, "-o", "json")
    assert said.json["by_suite"] == {"resources": {"total": 2, "passed": 1}}


@pytest.mark.parametrize("text", ["{", "[]", "{}"])
def test_a_file_that_holds_no_cases_is_a_usage_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    said = pumice("conformance", tmp_path)
    assert (said.code, said.out) == (2, "")
    assert "x.json" in said.err


def test_nothing_to_run_is_a_usage_error(suite: Any, tmp_path: Path) -> None:
    assert pumice("conformance", tmp_path / "nowhere").code == 2
    assert pumice("conformance", suite(case("good", {})), "-k", "zzz").code == 2
