"""Masks over many nodes' tasks say what the plain rules say, candidate by candidate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.cycle import run_action
from pumice.core.life.task import READY_STATUSES, TaskStatus
from tests.core.actions.crowds import crowds, spare
from tests.core.plugins.plain_victims import RULES
from tests.core.plugins.world import configuration, open_world, task_of
from tests.kit import pod

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session

RULE_AND_FIX = [*((name, ()) for name in RULES), ("drf", ("drf-counts-victims-only",))]


def occupied(session: Session, row: int) -> list[Task]:
    return session.nodes.tasks_on(row)


@pytest.mark.parametrize(("name", "fix"), RULE_AND_FIX)
@given(crowds(), st.randoms(use_true_random=False))
def test_a_mask_says_what_the_plain_rule_says(name: str, fix: tuple[str, ...], objects: Any, random: Any) -> None:
    more = [spare("stray", "n0"), pod("system", node="n0", namespace="kube-system")]
    session = open_world(configuration([name], fix=fix), objects, more)
    preemptor, point = task_of(session, "w0-0"), session.points.preemptable
    for row in range(session.nodes.count):
        candidates = list(occupied(session, row))
        random.shuffle(candidates)
        assert point(preemptor, candidates) == RULES[name](session, preemptor, candidates)
    batch = session.residents.on(range(session.nodes.count))
    in_batch = session.residents.tasks(batch.rows[point.over(preemptor, batch)])
    each = [RULES[name](session, preemptor, occupied(session, row)) for row in range(session.nodes.count)]
    assert in_batch == [task for of_node in each for task in of_node]


@given(crowds())
def test_how_many_are_ready_follows_what_is_placed_and_evicted(objects: Any) -> None:
    session = open_world(configuration(["priority", "gang", "conformance"], ["drf", "predicates"]), objects)
    for action in ("allocate", "preempt", "backfill"):
        run_action(session, action)
        for job in session.jobs.in_order:
            statuses = [TaskStatus(session.jobs.status[task.row]) for task in job.tasks.values()]
            ready = sum(status in READY_STATUSES for status in statuses)
            assert session.jobs.ready_count(job) == session.jobs.ready_tasks[job.row] == ready
            assert session.jobs.is_ready(job) is (ready >= job.pod_group.min_member)
