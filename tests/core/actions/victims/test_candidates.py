"""Which nodes a preemptor looks at, where it does not look at all."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.core.actions.victims.candidates import CandidateNodes
from pumice.core.cycle import SessionOptions, open_session, run_action
from pumice.core.session.carry import Carry, CycleClock
from pumice.core.session.session import Session
from tests.core.actions.crowds import PLAIN, classes, running, waiting
from tests.core.plugins.world import task_of, view_of
from tests.kit import node, queue
from tests.kit.nodes import taint


def cluster(percentage: int) -> Session:
    """Eight nodes that are looked at in part, all of them full or closed in turn, and a task that waits."""
    names = [f"n{i}" for i in range(8)]
    nodes = [node(name, cpu="1", taints=[] if i % 2 else [taint("closed")]) for i, name in enumerate(names)]
    old, new = running("old", names[1::2], queue="q"), waiting("new", 1, queue="q")
    view = view_of(nodes, queue("q"), classes(), old, new)
    options = SessionOptions(percentage_of_nodes=percentage, minimum_feasible_nodes=1)
    return open_session(view.snapshot(), PLAIN, CycleClock(1, 0.0), Carry(), options=options)


@pytest.mark.parametrize(("after_allocate", "rows"), [(False, [1, 3]), (True, [1])])
def test_a_part_of_the_nodes_is_one_of_those_that_were_not_hopeless_in_allocate(
    after_allocate: bool, rows: list[int]
) -> None:
    """A quarter of eight, or of the four that would have it if they had room."""
    session = cluster(25)
    if after_allocate:
        run_action(session, "allocate")
    session.carry.start = 0
    task = task_of(session, "new-0")
    (found,) = CandidateNodes(session, cache_errors=False).find(task, session.search_for(task, room=False))
    assert found.tolist() == rows


def test_a_part_of_the_nodes_of_a_domain_is_one_of_those_that_were_not_hopeless_in_allocate() -> None:
    """A half of the three of six that would have it if they had room."""
    session = cluster(50)
    run_action(session, "allocate")
    session.carry.start = 0
    task, inside = task_of(session, "new-0"), np.arange(8) < 6
    taken = CandidateNodes(session, cache_errors=False).feasible(task, session.search_for(task, room=False), inside)
    assert np.flatnonzero(taken).tolist() == [1]
