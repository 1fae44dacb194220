"""An action that says it would find nothing to do finds nothing to do, and one that would does not say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pumice.core.cycle import is_idle, run_action
from pumice.core.session.session import Session
from tests.core.plugins.world import ACTIONS, configuration, open_world
from tests.kit import node, pod, pod_group, queue

if TYPE_CHECKING:
    from collections.abc import Sequence


def world(phase: str, cpu: str | None, where: str | None = None, actions: Sequence[str] = ACTIONS) -> Session:
    """One job of one pod, which asks for nothing when it asks for no cpu; `where`: the node on which it runs."""
    group = pod_group("g", queue="q", phase=phase, min_resources={"cpu": "1"})
    member = pod("p", group="g", cpu=cpu, memory=None, node=where, phase="Running" if where else "Pending")
    config = configuration(["conformance"], actions=actions)
    return open_world(config, node("n"), queue("q"), group, member)


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


@pytest.mark.parametrize(
    ("phase", "where", "actions", "idle"),
    [
        ("Inqueue", None, ACTIONS, False),
        ("Pending", None, ACTIONS, True),
        ("Running", "n", ACTIONS, True),
        ("Pending", None, ("allocate",), False),
        ("Pending", "n", ("allocate",), False),
    ],
)
def test_allocate_is_idle_without_a_task_to_place_or_a_job_to_admit(
    phase: str, where: str | None, actions: Sequence[str], *, idle: bool
) -> None:
    session = world(phase, "1", where, actions)
    before = state(session)
    assert is_idle(session, "allocate") is idle
    run_action(session, "allocate")
    assert (state(session) == before) is idle


def test_the_other_actions_never_say_so() -> None:
    session = world("Inqueue", None)
    for action in ("preempt", "reclaim", "shuffle"):
        assert not is_idle(session, action)
