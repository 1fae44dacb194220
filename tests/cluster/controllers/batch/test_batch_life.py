"""The life of a batch/v1 Job, pair by pair."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.cluster.controllers.batch.rule import BATCH_JOB_LIFE, OVER, BatchJobState, BatchJobTrigger, state_of

S, E = BatchJobState, BatchJobTrigger

EXPECTED = {
    S.ACTIVE: {E.SUSPENDED: S.SUSPENDED, E.ENOUGH: S.SUCCEEDING, E.BROKEN: S.FAILING},
    S.SUSPENDED: {E.RESUMED: S.ACTIVE, E.ENOUGH: S.SUCCEEDING, E.BROKEN: S.FAILING},
    S.SUCCEEDING: {E.EMPTY: S.COMPLETE},
    S.FAILING: {E.EMPTY: S.FAILED},
    S.COMPLETE: {},
    S.FAILED: {},
}


@pytest.mark.parametrize("state", S)
@pytest.mark.parametrize("event", E)
def test_every_pair(state: BatchJobState, event: BatchJobTrigger) -> None:
    assert BATCH_JOB_LIFE.step(state, event) == EXPECTED[state].get(event)


def test_what_is_over_stays() -> None:
    assert not [pair for pair in BATCH_JOB_LIFE.transitions if pair[0] in OVER]


@pytest.mark.parametrize(
    ("conditions", "state"),
    [
        ([], S.ACTIVE),
        ([("Suspended", "True")], S.SUSPENDED),
        ([("Suspended", "False")], S.ACTIVE),
        ([("Suspended", "True"), ("FailureTarget", "True")], S.FAILING),
        ([("SuccessCriteriaMet", "True")], S.SUCCEEDING),
        ([("SuccessCriteriaMet", "True"), ("Complete", "True")], S.COMPLETE),
        ([("FailureTarget", "True"), ("Failed", "True")], S.FAILED),
    ],
)
def test_its_conditions_tell_where_it_stands(conditions: list[tuple[str, str]], state: BatchJobState) -> None:
    job: dict[str, Any] = {"status": {"conditions": [{"type": name, "status": status} for name, status in conditions]}}
    assert state_of(job) is state
