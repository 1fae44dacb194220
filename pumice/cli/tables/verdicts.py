"""One verdict in full, for whoever is looking for the reason."""

from __future__ import annotations

from rich.console import Console

from pumice.proof.conformance.judge import Verdict


def show_verdict(console: Console, verdict: Verdict) -> None:
    """Every difference on its own lines (expected above found), the trace, and the outcome of every cycle."""
    console.rule(f"{verdict.suite}: {verdict.case}: {'passed' if verdict.passed else 'failed'}")
    if verdict.reason:
        console.print(verdict.trace or verdict.reason, markup=False, soft_wrap=True)
    for one in verdict.differences:
        console.print(f"{one.group} {one.path}", markup=False, soft_wrap=True)
        console.print(f"    expected {one.expected!r}", markup=False, soft_wrap=True)
        console.print(f"    was      {one.found!r}", markup=False, soft_wrap=True)
    for number, outcome in enumerate(verdict.outcomes, start=1):
        for key, value in outcome.items():
            console.print(f"cycle {number} {key}: {value}", markup=False, soft_wrap=True)
