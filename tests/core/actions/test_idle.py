"""An action that says it would find nothing to do finds nothing to do, and one that would does not say so."""

from __future__ import annotations

import pytest

from core.cycle import is_idle, run_action
from core.session.session import Session
from tests.core.plugins.world import configuration, open_world
from tests.kit import node, pod, pod_group, queue


def world(phase: str, cpu: str | None) -> Session:
    """One job of one pod, which asks for nothing when it asks for no cpu."""
    group = pod_group("g", queue="q", phase=phase, min_resources={"cpu": "1"})
    member = pod("p", group="g", cpu=cpu, memory=None)
    return open_world(configuration(["conformance"]), node("n"), queue("q"), group, member)


def state(session: Session) -> tuple[list[int], list[int], int]:
    jobs = session.jobs
    return [jobs.phase[job.row] for job in jobs.in_order], list(jobs.status), len(session.binds)


@pytest.mark.parametrize("cpu", ["1", None])
def test_enqueue_is_idle_without_a_pending_job(cpu: str | None) -> None:
    assert not is_idle(world("Pending", cpu), "enqueue")
    assert not is_idle(world("", cpu), "enqueue")
    session = world("Inqueue", cpu)
    before = state(session)
    assert is_idle(session, "enqueue")
    run_action(session, "enqueue")
    assert state(session) == before


@pytest.mark.parametrize(
    ("phase", "cpu", "idle"),
    [("Inqueue", None, False), ("Inqueue", "1", True), ("Pending", None, True)],
)
def test_backfill_is_idle_without_an_admitted_task_that_asks_for_nothing(
    phase: str, cpu: str | None, *, idle: bool
) -> None:
    session = world(phase, cpu)
    before = state(session)
    assert is_idle(session, "backfill") is idle
    run_action(session, "backfill")
    assert (state(session) == before) is idle


def test_the_other_actions_never_say_so() -> None:
    session = world("Inqueue", None)
    for action in ("allocate", "preempt", "reclaim", "shuffle"):
        assert not is_idle(session, action)
