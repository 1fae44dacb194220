"""A case that expects what nobody here can compare is refused by name, and the others are judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pumice.conformance.case import find_suites
from pumice.conformance.judge import judge
from pumice.conformance.runner import run_suites

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
