"""The conformance score may only rise: `scores.json` holds the least number of passed cases by suite.

All cases are tried with what is slow, every eighth of each suite every day.

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
from pumice.proof.conformance.runner import Score, Slice, run_slice, run_suites, score_of
from tests.kit import source

SHARED: Final = source.SHARED
CASES: Final = (SHARED / "conformance", SHARED / "conformance-devices", SHARED / "conformance-late")
FLOOR: Final = Path(__file__).with_name("scores.json")
EVERY: Final = 8

pytestmark = pytest.mark.skipif(
    not all(folder.is_dir() for folder in CASES), reason="the conformance cases are not beside the repository"
)


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


def test_every_eighth_case_passes_where_all_must() -> None:
    """Quantities, which are all of one suite, are tried by `tests/core/test_resources.py`."""
    files = [file for file in find_suites(CASES) if not file.is_resources and floor().get(file.suite) == file.cases]
    slices = [Slice(file, number, number + 1, "") for file in files for number in range(0, file.cases, EVERY)]
    verdicts = [verdict for each in slices for verdict in run_slice(each)]
    assert len(verdicts) > sum(floor().values()) / (EVERY + 2)
    assert [f"{each.suite}: {each.case}: {each.diff[:300]}" for each in verdicts if not each.passed] == []


@pytest.mark.slow
def test_no_suite_has_fallen() -> None:
    assert fallen(whole_score()) == []


if __name__ == "__main__":
    risen = {suite: tally.passed for suite, tally in sorted(whole_score().by_suite.items())}
    kept = floor()
    FLOOR.write_text(json.dumps({suite: max(n, kept.get(suite, 0)) for suite, n in risen.items()}, indent=2) + "\n")
