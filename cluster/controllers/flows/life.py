"""The life of a JobFlow (source: Volcano `controllers/jobflow/state`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Final

from pumice.core.life.cycle import LifeCycle


class FlowPhase(StrEnum):
    """Where it stands; TERMINATING is known to the CRD, and nothing here comes to it."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEED = "Succeed"
    TERMINATING = "Terminating"
    FAILED = "Failed"


class FlowTrigger(StrEnum):
    """What its jobs may come to."""

    BEGUN = "a job runs or has run, and none has failed"
    BROKEN = "a job has failed"
    STOPPED = "a job was terminated"
    DONE = "as many jobs as there are flows have completed"


_P, _T = FlowPhase, FlowTrigger

FLOW_LIFE: Final = LifeCycle(
    {
        (_P.PENDING, _T.BEGUN): _P.RUNNING,
        (_P.PENDING, _T.BROKEN): _P.FAILED,
        (_P.PENDING, _T.STOPPED): _P.FAILED,  # while it runs, a job that was terminated is no failure
        (_P.RUNNING, _T.BROKEN): _P.FAILED,
        (_P.RUNNING, _T.DONE): _P.SUCCEED,
    }
)
"""Nothing follows on Succeed, Terminating and Failed."""


def trigger_of(
    jobs: Mapping[str, Collection[str]], flows: int, phase: FlowPhase, *, terminated_fails: bool = False
) -> FlowTrigger | None:
    """What the phases of its jobs (their names by phase) say; the order is that of Volcano's states.

    `terminated_fails`: a Job that was terminated is a failure while the flow runs, too.
    """
    running, completed = len(jobs.get("Running", ())), len(jobs.get("Completed", ()))
    failed, terminated = len(jobs.get("Failed", ())), len(jobs.get("Terminated", ()))
    if phase is FlowPhase.RUNNING and completed == flows:
        return FlowTrigger.DONE
    if failed or (terminated and terminated_fails and phase is FlowPhase.RUNNING):
        return FlowTrigger.BROKEN
    if running or completed:
        return FlowTrigger.BEGUN
    return FlowTrigger.STOPPED if terminated else None
