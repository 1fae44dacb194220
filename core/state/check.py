"""The view's invariants, checkable at any time: counts by status add up, idle + used = allocatable, no task in two
places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from core.life.task import COUNT, LABELS, TaskStatus
from core.state.columns import FloatArray
from core.state.tasks import NOWHERE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.objects.pod import Task
    from core.state.view import View

RELEASING = int(TaskStatus.RELEASING)
TOLERANCE = 0.1  # minResource: the unit below which Volcano sees no difference


def check_view(view: View) -> list[str]:
    """Every broken invariant as a sentence."""
    return [*_check_jobs(view), *_check_nodes(view), *_check_places(view)]


def _check_jobs(view: View) -> list[str]:
    broken: list[str] = []
    statuses, jobs, columns = view.tasks.status.tolist(), view.tasks.job.tolist(), view.jobs.counts.T.tolist()
    for job in view.jobs.by_key.values():
        counted = [0] * COUNT
        for task in job.tasks.values():
            counted[statuses[task.row]] += 1
            if jobs[task.row] != job.row:
                broken.append(f"task {task.key} does not know its job {job.key}")
        if counted != columns[job.row]:
            broken += _miscounted(job.key, counted, columns[job.row])
    return broken


def _miscounted(job: str, counted: list[int], columns: list[int]) -> list[str]:
    return [
        f"job {job}: {number} tasks are {LABELS[status]}, the column says {column}"
        for status, (number, column) in enumerate(zip(counted, columns, strict=True))
        if column != number
    ]


def _check_nodes(view: View) -> list[str]:
    table, count = view.nodes, view.nodes.count
    used, releasing = _by_tasks(view)
    idle = table.allocatable[:, :count] - used
    plain = [row for row, spec in enumerate(table.specs) if spec.allocatable.scalars is None]
    if plain:
        idle[2:, plain] = 0.0
    broken: list[str] = []
    for what, expected in (("used", used), ("releasing", releasing), ("idle", idle)):
        column = getattr(table, what)[:, :count]
        if (column == expected).all():
            continue  # the rule; the tolerance costs more
        for row in np.flatnonzero((np.abs(column - expected) >= TOLERANCE).any(axis=0)).tolist():
            says, are = column[:, row].tolist(), expected[:, row].tolist()
            broken.append(f"node {table.specs[row].name}: {what} is {says}, its tasks make it {are}")
    return broken


def _by_tasks(view: View) -> tuple[FloatArray, FloatArray]:
    """What the tasks of each node use, and release, added up anew: [dimension, node]."""
    height, statuses, nobody = view.nodes.used.shape[0], view.tasks.status.tolist(), dict[str, "Task"]()
    residents = [view.node_tasks.get(spec.name, nobody).values() for spec in view.nodes.specs]
    used = [_asked(tasks, height) for tasks in residents]
    if RELEASING not in statuses:
        return _columns(used, height), np.zeros((height, len(used)))
    leaving = [[task for task in tasks if statuses[task.row] == RELEASING] for tasks in residents]
    return _columns(used, height), _columns([_asked(tasks, height) for tasks in leaving], height)


def _asked(tasks: Iterable[Task], height: int) -> list[float]:
    """What they ask for together, by dimension."""
    total = [0.0] * height
    for task in tasks:
        for dimension, value in task.template.items:
            total[dimension] += value
    return total


def _columns(lines: list[list[float]], height: int) -> FloatArray:
    return np.array(lines).reshape(-1, height).T


def _check_places(view: View) -> list[str]:
    tasks, rows, node_tasks = view.tasks, view.nodes.row, view.node_tasks
    broken: list[str] = []
    nodes: list[int] = tasks.node.tolist()
    for task, seat, node in zip(tasks.handles, tasks.resides, nodes, strict=False):
        if not seat and node == NOWHERE:
            continue
        if node != rows.get(seat, NOWHERE):
            named = "" if node == NOWHERE else view.nodes.specs[node].name
            broken.append(f"task {_key(task)} is counted on {seat} but its column says {named}")
        if seat and (task is None or seat not in node_tasks or task.key not in node_tasks[seat]):
            broken.append(f"task {_key(task)} is not among the tasks of its node {seat}")
    if len(tasks.by_key) != len(tasks.handles) - tasks.handles.count(None):
        broken.append(f"{len(tasks.by_key)} tasks by name are not those by row")
    return broken


def _key(task: Task | None) -> str:
    return task.key if task is not None else "that has gone"
