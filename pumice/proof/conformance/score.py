"""Adding verdicts up: the JSON of `pumice conformance`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pumice.proof.conformance.compare import Group
from pumice.proof.conformance.judge import Verdict


@dataclass(slots=True)
class CaseTally:
    """How many were counted and how many of them held."""

    total: int = 0
    passed: int = 0

    def count(self, passed: bool) -> None:
        self.total += 1
        self.passed += passed

    def to_dict(self) -> dict[str, int]:
        return {"total": self.total, "passed": self.passed}


@dataclass(slots=True)
class Score:
    """The score of a run, with the failures in the order of suites and cases."""

    whole: CaseTally = field(default_factory=CaseTally)
    by_group: dict[Group, CaseTally] = field(
        default_factory=lambda: {"decisions": CaseTally(), "numbers": CaseTally(), "words": CaseTally()}
    )
    by_suite: dict[str, CaseTally] = field(default_factory=dict[str, CaseTally])
    failures: list[Verdict] = field(default_factory=list[Verdict])

    def add(self, verdict: Verdict) -> None:
        """Count one verdict."""
        self.whole.count(verdict.passed)
        self.by_suite.setdefault(verdict.suite, CaseTally()).count(verdict.passed)
        for group in verdict.checked:
            self.by_group[group].count(verdict.passed_on(group))
        if not verdict.passed:
            self.failures.append(verdict)

    def to_dict(self) -> dict[str, Any]:
        """The shape of commands.md."""
        return {
            **self.whole.to_dict(),
            "failed": self.whole.total - self.whole.passed,
            **{group: tally.to_dict() for group, tally in self.by_group.items()},
            "by_suite": {suite: tally.to_dict() for suite, tally in sorted(self.by_suite.items())},
            "failures": [
                {"suite": verdict.suite, "case": verdict.case, "diff": verdict.diff} for verdict in self.failures
            ],
        }


def score_of(verdicts: Iterable[Verdict]) -> Score:
    """The score of all verdicts, sorted by suite (cases keep their order within one)."""
    score = Score()
    for verdict in sorted(verdicts, key=lambda one: one.suite):
        score.add(verdict)
    return score
