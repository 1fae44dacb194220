"""The conformance score may only rise: `scores.json` holds the least number of passed cases by suite.

After a suite has risen, its row is raised by `python -m tests.pumice.proof.conformance.test_ratchet`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from pumice.executors import cores, executors
from pumice.proof.conformance.case import find_suites
from pumice.proof.conformance.runner import run_suites
from pumice.proof.conformance.score import Score, score_of

SHARED: Final = Path(__file__).parents[4] / "shared"
CASES: Final = (SHARED / "conformance", SHARED / "conformance-devices", SHARED / "conformance-late")
FLOOR: Final = Path(__file__).with_name("scores.json")


def floor() -> dict[str, int]:
    """The least number of passed cases by suite."""
    found: dict[str, int] = json.loads(FLOOR.read_text("utf-8"))
    return found


def fallen(score: Score) -> list[str]:
    """Suites that have fallen, each with one failing case to start from."""
    below: Iterable[str] = (
        suite for suite, least in floor().items() if suite not in score.by_suite or score.by_suite[suite].passed < least
    )
    return [f"{suite}: {_example(score, suite)}" for suite in below]


def _example(score: Score, suite: str) -> str:
    tally = score.by_suite.get(suite)
    failing = next((one for one in score.failures if one.suite == suite), None)
    return f"{tally} below {floor()[suite]}; {failing.case if failing else ''}: {failing.diff[:300] if failing else ''}"


def whole_score() -> Score:
    """Every case there is."""
    return score_of(run_suites(find_suites(CASES), executors=executors(cores(), None)))


@pytest.mark.skipif(
    not all(folder.is_dir() for folder in CASES), reason="the conformance cases are not beside the repository"
)
def test_no_suite_has_fallen() -> None:
    assert fallen(whole_score()) == []


if __name__ == "__main__":
    risen = {suite: tally.passed for suite, tally in sorted(whole_score().by_suite.items())}
    kept = floor()
    FLOOR.write_text(json.dumps({suite: max(n, kept.get(suite, 0)) for suite, n in risen.items()}, indent=2) + "\n")
