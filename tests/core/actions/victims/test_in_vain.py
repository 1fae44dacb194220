"""What failed is not tried again for a like task: no more than time is saved."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from pumice.core.actions import preempt, reclaim
from pumice.core.actions.victims.candidates import InVain
from pumice.core.cycle import run_action
from pumice.core.session.statement import Statement
from pumice.core.session.trail.trail import NULL_TRAIL, Trail
from tests.core.actions.crowds import PLAIN, after, classes, crowds, running, waiting
from tests.core.plugins.world import configuration, open_world
from tests.kit import node, queue

QUEUES = configuration(["gang", "conformance", "priority", "proportion"], ["predicates", "nodeorder"])
CAPACITY = configuration(["priority", "conformance"], ["capacity", "drf", "predicates", "nodeorder"])
ACTIONS = {"preempt": preempt, "reclaim": reclaim}


def never(*_: object) -> bool:
    return False


@pytest.mark.parametrize("action", ["preempt", "reclaim"])
@given(crowds(queues=("q", "p")))
def test_remembering_only_saves_time(action: str, objects: Any) -> None:
    def outcome(config: Any) -> Any:
        session = after(action, config, objects)
        reached = sorted(session.last_transaction.items())
        return session.evicts, bytes(session.jobs.status), session.nodes.future.tolist(), reached, session.carry

    for config in (PLAIN, QUEUES, CAPACITY):
        remembering = outcome(config)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(InVain, "foresees", never)
            assert outcome(config) == remembering


@pytest.mark.parametrize(
    ("action", "within", "foreign"), [("preempt", 1, 0), ("preempt", 1, 1), ("reclaim", 0, 0), ("reclaim", 0, 1)]
)
def test_the_others_of_a_gang_are_not_tried_where_the_first_found_nobody(
    action: str, within: int, foreign: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gang of three and two nodes. preempt also takes from the gang itself. A user's plugin might tell pods apart."""
    tried: list[int] = []
    true = ACTIONS[action].make_room

    def make_room(session: Any, task: Any, row: int, victims: Any) -> Any:
        tried.append(row)
        return true(session, task, row, victims)

    monkeypatch.setattr(ACTIONS[action], "make_room", make_room)
    old = running("old", ["n0", "n0", "n1", "n1"], queue="q", cpu="1", memory="1Gi", least=4)
    new = waiting("new", 3, queue="q" if action == "preempt" else "p", cpu="500m")
    session = open_world(QUEUES, node("n0", cpu="2"), node("n1", cpu="2"), queue("q"), queue("p"), classes(), old, new)
    session.points.unforeseeable = bool(foreign)
    run_action(session, action)
    assert not session.evicts
    assert len(tried) == 2 * ((3 if foreign else 1) + within)


@pytest.mark.parametrize(("action", "listens"), [("preempt", False), ("preempt", True), ("reclaim", False)])
def test_jobs_alike_are_tried_once(action: str, listens: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three jobs alike and one of less priority; a listening trail tells each job its own reasons."""
    tried: list[str] = []
    true = ACTIONS[action].make_room

    def make_room(session: Any, task: Any, row: int, victims: Any) -> Any:
        tried.append(task.job)
        return true(session, task, row, victims)

    monkeypatch.setattr(ACTIONS[action], "make_room", make_room)
    old = running("old", ["n0", "n0"], queue="q", cpu="1", memory="1Gi", least=2, group="high")
    whose = "q" if action == "preempt" else "p"
    alike = [waiting(f"new{i}", 1, queue=whose, cpu="500m", group="mid") for i in range(3)]
    other = waiting("other", 1, queue=whose, cpu="500m", group="low")
    cluster = node("n0", cpu="2"), queue("q"), queue("p"), classes()
    trail = Trail() if listens else NULL_TRAIL
    session = open_world(QUEUES, *cluster, old, *alike, other, trail=trail)
    run_action(session, action)
    assert not session.evicts
    within = 2 if action == "preempt" else 1  # preempt also takes from the job itself
    assert len(tried) == within * (4 if listens else 2)


def test_an_attempt_that_takes_its_evictions_back_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """All victims of the node go, and its queue still has no room for the task. NodeInfo loses them the first time."""
    evicted: list[str] = []
    true = Statement.evict

    def evict(self: Statement, task: Any, *rest: Any) -> None:
        evicted.append(task.name)
        true(self, task, *rest)

    monkeypatch.setattr(Statement, "evict", evict)
    old = running("old", ["n0", "n0"], queue="q", cpu="1", memory="1Gi", least=0)
    alike = [waiting(f"new{i}", 1, queue="q", cpu="2", group="high") for i in range(5)]
    full = queue("q", capability={"cpu": "1"})
    session = open_world(QUEUES, node("n0", cpu="2"), full, classes(), old, *alike)
    run_action(session, "preempt")
    assert (session.evicts, len(evicted)) == ([], 2 * 2)
