"""The life of a batch/v1 Job: what it may come to from where.

A Job that has enough, or has failed, is not over before its last pod has gone; so says the pair of conditions
SuccessCriteriaMet and Complete, FailureTarget and Failed (source: Kubernetes' job controller).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pumice.core.life.cycle import LifeCycle
from pumice.core.objects.metadata import Object, section


class BatchJobState(StrEnum):
    """Where it stands; told by its conditions."""

    ACTIVE = "Active"
    SUSPENDED = "Suspended"
    SUCCEEDING = "SuccessCriteriaMet"
    FAILING = "FailureTarget"
    COMPLETE = "Complete"
    FAILED = "Failed"


class BatchJobTrigger(StrEnum):
    """What may happen to it."""

    SUSPENDED = "suspended"
    RESUMED = "resumed"
    ENOUGH = "enough pods have succeeded"
    BROKEN = "it cannot succeed any more"
    EMPTY = "no pod of it is left running"


_S, _E = BatchJobState, BatchJobTrigger

BATCH_JOB_LIFE: Final = LifeCycle(
    {
        (_S.ACTIVE, _E.SUSPENDED): _S.SUSPENDED,
        (_S.ACTIVE, _E.ENOUGH): _S.SUCCEEDING,
        (_S.ACTIVE, _E.BROKEN): _S.FAILING,
        (_S.SUSPENDED, _E.RESUMED): _S.ACTIVE,
        (_S.SUSPENDED, _E.ENOUGH): _S.SUCCEEDING,  # its last pods ended well before they were told to stop
        (_S.SUSPENDED, _E.BROKEN): _S.FAILING,
        (_S.SUCCEEDING, _E.EMPTY): _S.COMPLETE,
        (_S.FAILING, _E.EMPTY): _S.FAILED,
    }
)
"""What is not here does not happen: a Job that is over stays as it is, and one that ends is not suspended any more."""

OVER: Final = frozenset((_S.COMPLETE, _S.FAILED))
_MARKS: Final = (_S.COMPLETE, _S.FAILED, _S.FAILING, _S.SUCCEEDING, _S.SUSPENDED)


def state_of(job: Object) -> BatchJobState:
    """What its conditions say."""
    conditions: list[Object] = section(job, "status").get("conditions") or []
    holds = {each.get("type") for each in conditions if each.get("status") == "True"}
    return next((mark for mark in _MARKS if mark.value in holds), BatchJobState.ACTIVE)
