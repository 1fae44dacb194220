"""Every conformance case as a test of its own, so that a mutant meets only those that reach it."""

from __future__ import annotations

from typing import Any, Final

import pytest

from pumice.proof.conformance.case import find_suites, read_raw
from pumice.proof.conformance.judge import judge
from tests.kit import source

CASES: Final = source.SHARED / "conformance"


def all_cases() -> list[Any]:
    """Suite and case, named by both; none where the cases are not beside the repository."""
    if not CASES.is_dir():
        return []
    files = [file for file in find_suites([CASES]) if not file.is_resources]
    return [
        pytest.param(file.suite, case, id=f"{file.suite}-{index}")
        for file in files
        for index, case in enumerate(read_raw(file.path)["cases"])
    ]


@pytest.mark.parametrize(("suite", "case"), all_cases())
def test_case(suite: str, case: dict[str, Any]) -> None:
    verdict = judge(suite, case, {})
    assert verdict.passed, verdict.diff
