"""Nodes that are not worth a try are those on which a try would come to nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.actions.victims.candidates import TRIED_FIRST, worth_trying
from pumice.core.actions.victims.on_node import make_room, movable, reclaimable
from tests.core.actions.crowds import classes, crowds, running, waiting
from tests.core.actions.plainly_asked import of_other_jobs, of_other_queues, of_own_job, tasks_that
from tests.core.plugins.world import configuration, open_world, task_of
from tests.kit import nodes, pod, queue

TIERS = (
    (["priority", "gang", "conformance"], ["drf"]),
    (["conformance"],),
    (["gang"], ["priority", "drf"]),
    (["priority", "tdm"],),  # not every rule is a mask
)


@given(crowds(), st.sampled_from(TIERS), st.booleans())
def test_for_a_preemptor(objects: Any, tiers: Any, own_job: bool) -> None:
    session = open_world(configuration(*tiers), objects)
    task, nodes, point = task_of(session, "w0-0"), np.arange(session.nodes.count), session.points.preemptable
    accepts = (of_own_job if own_job else of_other_jobs)(session, task)
    found = list(worth_trying(session, task, nodes, movable(session, task, own_job=own_job), point, with_tasks=False))
    would_do = [
        make_room(session, task, node, point(task, tasks_that(session, node, accepts))) for node in nodes.tolist()
    ]
    assert [node for node in found if node >= TRIED_FIRST] == _later(would_do, by_columns=point.by_columns, found=found)
    assert found[:TRIED_FIRST] == nodes[:TRIED_FIRST].tolist()


@given(crowds(queues=("q", "r")), st.sampled_from(TIERS))
def test_for_a_reclaimer(objects: Any, tiers: Any) -> None:
    session = open_world(configuration(*tiers), objects)
    task, nodes, point = task_of(session, "w0-0"), np.arange(session.nodes.count), session.points.reclaimable
    accepts = of_other_queues(session, task)
    found = list(worth_trying(session, task, nodes, reclaimable(session, task), point, with_tasks=True))
    offered = [tasks_that(session, node, accepts) for node in nodes.tolist()]
    would_do = [
        bool(candidates) and make_room(session, task, node, point(task, candidates))
        for node, candidates in enumerate(offered)
    ]
    assert [node for node in found if node >= TRIED_FIRST] == _later(would_do, by_columns=point.by_columns, found=found)


def _later(would_do: list[bool], *, by_columns: bool, found: list[int]) -> list[int]:
    """Where plugins must be asked node by node, some that will not do are tried; none that would is left out."""
    expected = [node for node, would in enumerate(would_do) if would and node >= TRIED_FIRST]
    if by_columns:
        return expected
    assert set(expected) <= set(found)
    return [node for node in found if node >= TRIED_FIRST]


def test_a_node_that_stays_short_of_a_hundredth_of_a_core_is_not_worth_it() -> None:
    low = [running(f"on-{name}", [name], queue="q", cpu=cpu) for name, cpu in (("n2", "3990m"), ("n3", "4"))]
    objects = (nodes(4, cpu="4"), queue("q"), classes(), low[0], low[1], pod("stays", node="n2", cpu="10m"))
    session = open_world(configuration(["conformance"]), *objects, waiting("new", 1, queue="q", cpu="4"))
    task, point = task_of(session, "new-0"), session.points.preemptable
    accepts = movable(session, task, own_job=False)
    assert list(worth_trying(session, task, np.arange(4), accepts, point, with_tasks=False)) == [0, 1, 3]
