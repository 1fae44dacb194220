"""Who may be asked to go: the masks say what is said task by task, of all nodes as of one."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pumice.core.actions.victims.on_node import asked, movable, reclaimable
from pumice.core.session.session import Session
from tests.core.actions.crowds import PLAIN, classes, crowds, running, spare, waiting
from tests.core.actions.plainly_asked import of_other_jobs, of_other_queues, of_own_job, tasks_that
from tests.core.plugins.world import configuration, open_world, task_of
from tests.kit import node, pod, queue

QUEUES = configuration(["gang", "conformance", "priority", "proportion"], ["predicates"])


def same(session: Session, accepts: Any, plainly: Any) -> None:
    rows = range(session.nodes.count)
    each = [tasks_that(session, row, plainly) for row in rows]
    assert asked(session, rows, accepts).by_node() == each
    assert [asked(session, (row,), accepts).tasks() for row in rows] == each


@given(crowds(queues=("q", "p")), st.booleans(), st.integers(0, 3))
def test_masks_say_what_is_said_task_by_task(objects: Any, nobody_gives: bool, released: int) -> None:
    closed = queue("p")
    closed["spec"]["reclaimable"] = not nobody_gives
    small = waiting("small", 1, queue="q", cpu="0", memory="0")
    bare = running("bare", ["n0"], queue="q", cpu="0", memory="0")
    fixed = running("fixed", ["n0"], queue="p", annotations={"volcano.sh/preemptable": "false"})
    session = open_world(QUEUES, objects, closed, small, bare, fixed, spare("alone", "n0"), pod("lost", group="gone"))
    for task in [each for each in session.nodes.tasks_on(0) if session.job_of(each)][:released]:
        session.release(task)
    for name in ("w0-0", "small-0"):
        task = task_of(session, name)
        same(session, movable(session, task, own_job=False), of_other_jobs(session, task))
        same(session, movable(session, task, own_job=True), of_own_job(session, task))
        same(session, reclaimable(session, task), of_other_queues(session, task))


def test_who_may_go() -> None:
    session = open_world(
        PLAIN,
        node("n0", cpu="16"),
        queue("q"),
        queue("p"),
        classes(),
        running("mine", ["n0"], queue="q"),
        running("theirs", ["n0"], queue="p"),
        running("fixed", ["n0"], queue="q", annotations={"volcano.sh/preemptable": "false"}),
        waiting("new", 1, queue="q"),
        pod("alone", node="n0"),
    )
    new, old = task_of(session, "new-0"), task_of(session, "mine-0")
    assert asked(session, (0,), movable(session, new, own_job=False)).tasks() == [old]
    assert asked(session, (0,), movable(session, old, own_job=True)).tasks() == [old]
    assert asked(session, (0,), reclaimable(session, new)).tasks() == [task_of(session, "theirs-0")]
