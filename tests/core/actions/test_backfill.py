"""backfill: in which order jobs have their turns, and what is told of it."""

from __future__ import annotations

from typing import Any

from pumice.core.cycle import Trail, open_session, run_action
from pumice.core.objects.metadata import parse_time
from pumice.core.session.carry import Carry, CycleClock
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
