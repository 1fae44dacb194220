# SPDX-License-Identifier: Apache-2.0
"""A golden case runs under one policy, without a comparison."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Final

from pumice.questions.gate.cases import GoldenCase
from pumice.questions.gate.differing import why_waits
from pumice.questions.gate.gate import base_task
from pumice.questions.gate.policy import GatePolicy
from pumice.questions.gate.record import RunRecord
from pumice.questions.gate.run import RunTask, run
from pumice.questions.gate.sides import PolicySides, Side, read_side
from pumice.questions.gate.workloads import Trial
from pumice.questions.gate.written import number

CASES: Final = 8
"""Number of lived cases that are remembered: each expectation of a case is a test of its own."""


def tried(case: GoldenCase, place: int, policy: Path) -> str:
    """Return why an expectation of the case does not hold under the policy of a folder, "" where it does."""
    task = _task(case, _side(policy))
    record, expectation = _lived(task), case.expect[place]
    value = expectation.value(record, record.horizon_s)
    if expectation.is_met(value, value):
        return ""
    waiting = [job for job in expectation.scope.jobs(record) if job.started is None]
    why = f"\n{waiting[0].job} has not started: {why_waits(task, waiting[0].job, record.horizon_s)}" if waiting else ""
    return f"expected {expectation.text}, was {number(value, '')}{why}"


@lru_cache(CASES)
def _side(policy: Path) -> Side:
    return read_side(str(policy), policy)


@lru_cache(CASES)
def _lived(task: RunTask) -> RunRecord:
    return run(task)


def _task(case: GoldenCase, side: Side) -> RunTask:
    trial = Trial(case.workload, case.objects, case.expect, is_case=True)
    return base_task(trial, PolicySides(side, side), GatePolicy())
