"""What failed is not tried again for a like task: no more than time is saved."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from pumice.core.actions import preempt, reclaim
from pumice.core.actions.victims.candidates import InVain
from pumice.core.cycle import run_action
from tests.core.actions.crowds import PLAIN, after, classes, crowds, running, waiting
from tests.core.plugins.world import configuration, open_world
from tests.kit import node, queue

QUEUES = configuration(["gang", "conformance", "priority", "proportion"], ["predicates", "nodeorder"])
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

    for config in (PLAIN, QUEUES):
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
