"""backfill: in which order jobs have their turns, and what is told of it."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.core.cycle import Trail, open_session, run_action
from pumice.core.life.task import TaskStatus
from pumice.core.objects.metadata import parse_time
from pumice.core.session.carry import Carry, CycleClock
from pumice.core.session.session import CRAMMED
from tests.core.plugins.world import NOW, configuration, open_world, task_of, view_of
from tests.kit import gang, node, priority_class, queue

CONFIG = configuration(["priority", "gang"], ["predicates", "nodeorder"])
AMOUNTS: dict[str, Any] = {"cpu": None, "memory": None}


def test_jobs_have_their_turns_by_priority_and_each_is_told_of() -> None:
    """Whose pods ask for something has none."""
    jobs = [
        *gang("low", pods=1, queue="q", phase="Inqueue", priority_class="low", **AMOUNTS),
        *gang("high", pods=2, queue="q", phase="Inqueue", priority_class="high", **AMOUNTS),
        *gang("asks", pods=1, queue="q", phase="Inqueue"),
    ]
    view, trail = view_of(node("n0"), queue("q"), priority_class("low", 1), priority_class("high", 2), jobs), Trail()
    session = open_session(view.snapshot(), CONFIG, CycleClock(1, parse_time(NOW)), Carry(), trail=trail)
    run_action(session, "backfill")
    assert [bind.name for bind in session.binds] == ["high-0", "high-1", "low-0"]
    assert [(turn.action, turn.job, turn.tried) for turn in trail.turns] == [
        ("backfill", "default/high", True),
        ("backfill", "default/low", True),
    ]
    assert [(turn.ahead.over, turn.ahead.plugin) for turn in trail.turns if turn.ahead] == [("default/low", "priority")]


def test_jobs_that_come_first_and_have_nothing_to_place_keep_nobody_from_it() -> None:
    """One runs already, one is gated, and one lacks a pod."""
    runs = gang("a", pods=1, queue="q", phase="Running", nodes=["n0"], **AMOUNTS)
    gated = gang("b", pods=1, queue="q", phase="Inqueue", **AMOUNTS)
    gated[1]["spec"]["schedulingGates"] = [{"name": "later"}]
    lacks = gang("c", pods=1, min_member=2, queue="q", phase="Inqueue", **AMOUNTS)
    last = gang("d", pods=1, queue="q", phase="Inqueue", **AMOUNTS)
    session = open_world(CONFIG, node("n0"), queue("q"), runs, gated, lacks, last)
    run_action(session, "backfill")
    assert [bind.name for bind in session.binds] == ["d-0"]


def test_a_pod_that_was_promised_room_is_placed_where_it_can_be_immediately() -> None:
    session = open_world(CONFIG, node("n0"), queue("q"), gang("j", pods=1, queue="q", phase="Inqueue", **AMOUNTS))
    session.statement().pipeline(task_of(session, "j-0"), 0, evicted=False)
    run_action(session, "backfill")
    assert [(bind.name, bind.node) for bind in session.binds] == [("j-0", "n0")]


PODS = "node n0 resources [pods] are not enough to put task <default/j-2>, idle: cpu 4000.00, memory 8589934592.00, "
CPU = "node n0 resources [cpu] are not enough to put task <default/j-0>, idle: cpu -1000.00, memory 8589934592.00, "
NONE = "req: cpu 0.00, memory 0.00, pods 1.00"


@pytest.mark.parametrize(
    ("fix", "pods", "used", "bound", "said"),
    [
        ((), 2, 0, ["j-0", "j-1"], [f"{PODS}pods 0.00, {NONE}"]),
        ((), 9, 5, [], [f"{CPU}pods 8.00, {NONE}"]),
        ((CRAMMED,), 2, 0, ["j-0", "j-1", "j-2"], []),
    ],
)
def test_backfill_node_without_room_binds_no_more(
    fix: tuple[str, ...], pods: int, used: int, bound: list[str], said: list[str]
) -> None:
    """The session places the pod all the same, so it counts as allocated; the first refusal ends the turn."""
    config = configuration(["gang"], actions=["backfill"], fix=fix)
    given = gang("u", pods=1, queue="q", phase="Running", nodes=["n0"], cpu=str(used), memory=None) if used else []
    waits = gang("j", pods=3, min_member=1, queue="q", phase="Inqueue", **AMOUNTS)
    session = open_world(config, node("n0", cpu="4", memory="8Gi", pods=str(pods)), queue("q"), given, waits)
    run_action(session, "backfill")
    assert [bind.name for bind in session.binds if bind.job == "default/j"] == bound
    job = session.job_of(task_of(session, "j-0"))
    assert job is not None
    told = [
        errors.message().removeprefix("0/1 nodes are unavailable: 1 ") for errors in session.fit.errors_of(job).values()
    ]
    assert told[:1] == [f"{text}." for text in said]
    assert len(session.jobs.tasks_in(job, TaskStatus.ALLOCATED)) == 3 - len(bound)


def test_backfill_room_held_by_an_uncommitted_gang_is_given_away() -> None:
    """The cache does not know of what is allocated and not bound."""
    config = configuration(["gang"], actions=["backfill"])
    waits = gang("j", pods=1, queue="q", phase="Inqueue", **AMOUNTS)
    held = gang("h", pods=1, min_member=2, queue="q", phase="Inqueue", cpu="1", memory=None)
    session = open_world(config, node("n0", pods="1"), queue("q"), held, waits)
    session.statement().allocate(task_of(session, "h-0"), 0)
    run_action(session, "backfill")
    assert [bind.name for bind in session.binds] == ["j-0"]
