"""Registrations that a type checker refuses, each for the reason that its line names; nobody runs them.

That they are refused is checked twice: an ignored error that is none is an error itself, and test_types.py has mypy
read this file without what ignores them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.core.session.points.orders import JobColumn, TaskKey
from pumice.core.session.points.victims import Mask
from pumice.core.session.points.votes import Vote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.session.points.nodes import TaskBatch
    from pumice.core.session.points.per_node import NodeLook
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job


def of_job(_: Job) -> bool:
    return True


def of_task(_: Task) -> bool:
    return True


def compare_tasks(left: Task, right: Task) -> int:
    return left.priority - right.priority


def all_of(_: Task, candidates: Sequence[Task]) -> list[Task]:
    return list(candidates)


def listed(_: Task, batch: TaskBatch) -> list[bool]:
    return [True] * len(batch.rows)


def refuse(task: Task, node: NodeLook) -> str | None:
    return None if task.name == node.name else "no"


def rate(task: Task, node: NodeLook) -> float:
    return float(task.priority * node.row)


def register(session: Session) -> None:
    points = session.points
    points.job_ready.add("a", 42)  # type: ignore[arg-type]
    points.job_ready.add("a", of_task)  # type: ignore[arg-type]
    points.job_pipelined.add("a", of_job)  # type: ignore[arg-type]
    points.job_enqueueable.add("a", Vote.PERMIT)  # type: ignore[arg-type]
    points.allocatable.add("a", of_task)  # type: ignore[arg-type]
    points.job_order.add("a", compare_tasks)  # type: ignore[arg-type]
    points.job_order.add("a", TaskKey(lambda task: task.priority))  # type: ignore[arg-type]
    points.job_order.add("a", JobColumn(np.zeros(3)))  # type: ignore[arg-type]
    points.task_order.add("a", TaskKey(lambda task: task.name))  # type: ignore[arg-type,return-value]
    points.preemptable.add("a", all_of)  # type: ignore[arg-type]
    points.preemptable.add("a", Mask(listed))  # type: ignore[arg-type]
    points.victim_tasks.add("a", all_of)  # type: ignore[arg-type]
    points.predicate.add("a", [of_task])  # type: ignore[list-item]
    points.predicate.add("a", of_task)  # type: ignore[arg-type]
    points.predicate.add("a", rate)  # type: ignore[arg-type]
    points.node_order.add("a", refuse)  # type: ignore[arg-type]
    points.batch_node_order.add("a", [rate])  # type: ignore[list-item]
    points.bind_context.add("a", lambda task: {"annotations": task.name})  # type: ignore[arg-type,return-value]
    points.job_redy.add("a", of_job)  # type: ignore[attr-defined]


def ask(session: Session, job: Job, queue: Queue) -> None:
    session.points.job_ready(queue)  # type: ignore[arg-type]
    session.points.allocatable(queue, job)  # type: ignore[arg-type]
