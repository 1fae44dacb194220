"""A case that expects what nobody here can compare is refused by name, and the others are judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pumice.proof.conformance.case import find_suites
from pumice.proof.conformance.judge import judge
from pumice.proof.conformance.runner import run_suites

CONF = "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n"


def case(name: str = "c", outcome: dict[str, Any] | None = None, **expect: Any) -> dict[str, Any]:
    return {"name": name, "confYaml": CONF, "objects": [], "expect": {"cycles": [outcome or {"binds": {}}], **expect}}


def test_a_case_that_is_understood_passes() -> None:
    assert judge("s", case()).passed


@pytest.mark.parametrize(
    ("broken", "place"),
    [
        (case(outcome={"binds": {}, "bindz": {}}), "expect.cycles[0].bindz"),
        (case(cycels=[]), "expect.cycels"),
        (case(atOpen={"queue": {}}), "expect.atOpen.queue"),
        (case(anyOf=[[{"bynds": {}}]]), "expect.anyOf[0][0].bynds"),
        ({**case(), "documentedOrder": {"bindz": {}}, "expect": {}}, "documentedOrder.bindz"),
        ({**case(), "documentedOrder": {"binds": {}}, "expect": {"bindKount": 1}}, "expect.bindKount"),
    ],
)
def test_an_unknown_key_is_refused_with_its_place(broken: dict[str, Any], place: str) -> None:
    verdict = judge("s", broken)
    assert not verdict.passed
    assert verdict.reason.startswith(f"refused: {place}: expected one of ")
    assert not verdict.trace


def test_the_other_cases_are_judged_all_the_same(tmp_path: Path) -> None:
    cases = [case("good"), case("bad", outcome={"bindz": {}}), case("fine")]
    (tmp_path / "s.json").write_text(json.dumps({"suite": "s", "cases": cases}))
    verdicts = run_suites(find_suites([tmp_path]))
    assert [(each.case, each.passed) for each in verdicts] == [("good", True), ("bad", False), ("fine", True)]


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("a text", "expected a mapping, was 'a text'"),
        ({"name": "c", "confYaml": CONF, "objects": []}, "expect: expected a mapping, was nothing"),
        ({**case(), "expect": None}, "expect: expected a mapping, was nothing"),
        ({**case(), "expect": {}}, "expect: expected cycles or anyOf, found neither"),
        (case(cycles={"binds": {}}), "expect.cycles: expected a list or nothing, was a mapping"),
        (case(cycles=[7]), "expect.cycles[0]: expected a mapping, was 7"),
        (case(cycles=[{}, {}]), "expect.cycles: expected 1 outcomes (cycles: 1), found 2"),
        (case(anyOf=[]), "expect.anyOf: expected a list of length >= 1, was a list"),
        (case(anyOf=[[]]), "expect.anyOf[0]: expected 1 outcomes (cycles: 1), found 0"),
        (case(atOpen=[]), "expect.atOpen: expected a mapping or nothing, was a list"),
        ({**case(), "cycles": "1"}, "cycles: expected a whole number, was '1'"),
        ({**case(), "name": 5}, "name: expected a text, was 5"),
        ({**case(), "objects": {}}, "objects: expected a list, was a mapping"),
        ({**case(), "documentedOrder": [], "expect": {}}, "documentedOrder: expected a mapping, was a list"),
    ],
)
def test_what_has_not_the_shape_of_a_case_is_refused_alone(broken: Any, why: str, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps({"suite": "s", "cases": [case("good"), broken]}))
    good, bad = run_suites(find_suites([tmp_path]))
    assert (good.passed, bad.passed, bad.trace) == (True, False, "")
    assert bad.reason == f"refused: {why}"


@pytest.mark.parametrize(
    "conf",
    [
        CONF.replace("name: gang", "name: gang, nonsense: true").replace(
            "- name: gang, nonsense: true", "- {name: gang, nonsense: true}"
        ),
        CONF.replace("allocate", "allocate, nonsense"),
    ],
    ids=["flag", "action"],
)
def test_unknown_name_in_a_configuration_fails_the_case_unless_lenient(conf: str) -> None:
    told = {**case(), "confYaml": conf}
    assert "nonsense" in judge("s", told).reason
    assert judge("s", told, lenient=True).passed
