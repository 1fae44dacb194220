"""What is kept about the tasks of nodes is what the tasks say, whatever was placed, evicted and undone in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.life.task import TaskStatus
from tests.core.actions.crowds import PLAIN, crowds, spare
from tests.core.plugins.world import open_world
from tests.kit import pod

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import TaskBatch
    from pumice.core.session.session import Session


def plainly(session: Session, task: Task) -> dict[str, Any]:
    """Each column's number for a task."""
    return {
        "job": session.job_row(task),
        "status": session.jobs.status[task.row],
        "preemptable": task.preemptable,
        "best_effort": task.template.best_effort,
        "priority": task.priority,
        "pod_priority": task.pod_priority or 0,
        "index": -1 if task.index is None else task.index,
        "created": task.created,
        "started": task.started,
        "uid": int.from_bytes((task.uid.encode() + bytes(7))[:7]),
    }


def says_what_tasks_say(session: Session, batch: TaskBatch, tasks: list[Task]) -> None:
    facts, rows = session.residents, batch.rows
    assert batch.tasks() == tasks
    assert batch.job.tolist() == [session.job_row(task) for task in tasks]
    for name in plainly(session, tasks[0]) if tasks else ():
        assert getattr(facts, name)[rows].tolist() == [plainly(session, task)[name] for task in tasks]
    for task, template in zip(tasks, facts.template[rows].tolist(), strict=True):
        asked = dict(task.template.items)
        assert facts.requests[template].tolist() == [asked.get(each, 0.0) for each in range(len(session.dims))]
    assert facts.static("important", rows, important).tolist() == [important(task) for task in tasks]
    assert facts.number("age", rows, age).tolist() == [age(task) for task in tasks]


def important(task: Task) -> bool:
    return task.priority > 10


def age(task: Task) -> float:
    return -task.created


def change(session: Session, random: Any, statements: list[Any]) -> None:
    """Somebody is placed or evicted, or that is undone."""
    if statements and random.random() < 0.3:
        statements.pop().discard()
        return
    evicts = random.random() < 0.5
    wanted = TaskStatus.RUNNING if evicts else TaskStatus.PENDING
    tasks = [task for job in session.jobs.in_order for task in session.jobs.tasks_in(job, wanted)]
    if not tasks:
        return
    statement, task = session.statement(), random.choice(tasks)
    if evicts:
        statement.evict(task, "test")
    else:
        statement.pipeline(task, random.randrange(session.nodes.count), evicted=False)
    statements.append(statement)


@given(crowds(), st.integers(1, 5), st.randoms(use_true_random=False))
def test_columns_and_rows_say_what_the_tasks_say(objects: Any, steps: int, random: Any) -> None:
    more = [spare("stray", "n0"), pod("lost", group="gone", node="n0"), pod("none", node="n0", cpu=None, memory=None)]
    session, statements = open_world(PLAIN, objects, more), list[Any]()
    count = session.nodes.count
    for _ in range(steps):
        rows = random.sample(range(count), random.randint(0, count))
        on = [session.nodes.tasks_on(row) for row in rows]
        batch = session.residents.on(rows)
        assert batch.by_node() == on
        assert np.bincount(batch.node, minlength=len(rows)).tolist() == [len(tasks) for tasks in on]
        says_what_tasks_say(session, batch, [task for tasks in on for task in tasks])
        some: list[Task] = random.sample(on[0], len(on[0])) if on else []
        says_what_tasks_say(session, session.residents.batch(some), some)
        change(session, random, statements)
