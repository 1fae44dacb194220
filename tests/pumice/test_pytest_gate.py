"""Golden cases as tests of pytest's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.kit.source import ROOT

pytest_plugins = ["pytester"]


@pytest.fixture
def place(pytester: pytest.Pytester) -> Path:
    shutil.copytree(ROOT / "examples/gate", pytester.path / "g")
    return pytester.path / "g"


def outcome(pytester: pytest.Pytester, *words: str | Path) -> pytest.RunResult:
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-o", "addopts=", *words)


def test_a_case_passes_under_its_own_policy(pytester: pytest.Pytester, place: Path) -> None:
    outcome(pytester, place / "cases").assert_outcomes(passed=1)


def test_a_case_fails_under_another_policy_and_says_why(pytester: pytest.Pytester, place: Path) -> None:
    said = outcome(pytester, place / "cases", "--gate-policy", place / "proposed")
    said.assert_outcomes(failed=1)
    said.stdout.fnmatch_lines(["*expected wait.max[[]name=urgent[]] <= 10s, was *"])
    assert "Traceback" not in said.stdout.str()


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("then: [", (), "*broken.case.yaml:*not YAML*"),
        ("when: [{job: a}]\nthen: [{measure: jobs, op: ==, value: 1}]", (), "*name a policy: --gate-policy FOLDER*"),
        (
            "when: [{job: a}]\nthen: [{measure: jobs, op: ==, value: 1}]",
            ("--gate-policy", "nowhere"),
            "*nowhere: no such folder*",
        ),
    ],
)
def test_a_broken_case_is_told_in_words(
    text: str, words: tuple[str, ...], said: str, pytester: pytest.Pytester
) -> None:
    file = pytester.path / "broken.case.yaml"
    file.write_text(text)
    found = outcome(pytester, file, *words)
    assert found.ret != 0
    found.stdout.fnmatch_lines([said])
    assert "Traceback" not in found.stdout.str()
