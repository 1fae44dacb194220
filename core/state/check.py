"""The view's invariants, checkable at any time: counts by status add up, idle + used = allocatable, no task in two
places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from core.life.task import COUNT, LABELS, TaskStatus

if TYPE_CHECKING:
    from core.state.view import View

TOLERANCE = 0.1  # minResource: the unit below which Volcano sees no difference


def check_view(view: View) -> list[str]:
    """Every broken invariant as a sentence."""
    return [*_check_jobs(view), *_check_nodes(view), *_check_places(view)]


def _check_jobs(view: View) -> list[str]:
    broken: list[str] = []
    for job in view.jobs.by_key.values():
        counted = [0] * COUNT
        for task in job.tasks.values():
            counted[int(view.tasks.status[task.row])] += 1
            if view.tasks.job[task.row] != job.row:
                broken.append(f"task {task.key} does not know its job {job.key}")
        for status, number in enumerate(counted):
            column = int(view.jobs.counts[status, job.row])
            if column != number:
                broken.append(f"job {job.key}: {number} tasks are {LABELS[status]}, the column says {column}")
    return broken


def _check_nodes(view: View) -> list[str]:
    broken: list[str] = []
    table = view.nodes
    for name, row in table.row.items():
        used = np.zeros(table.used.shape[0])
        releasing = np.zeros_like(used)
        for task in view.node_tasks.get(name, {}).values():
            for dimension, value in task.template.items:
                used[dimension] += value
                releasing[dimension] += value * (view.tasks.status[task.row] == TaskStatus.RELEASING)
        idle = table.allocatable[:, row] - used
        if table.specs[row].allocatable.scalars is None:
            idle[2:] = 0.0
        for what, expected in (("used", used), ("releasing", releasing), ("idle", idle)):
            column = getattr(table, what)[:, row]
            if np.abs(column - expected).max() >= TOLERANCE:
                broken.append(f"node {name}: {what} is {column.tolist()}, its tasks make it {expected.tolist()}")
    return broken


def _check_places(view: View) -> list[str]:
    broken: list[str] = []
    for task in view.tasks.by_key.values():
        node = int(view.tasks.node[task.row])
        name = view.tasks.resides[task.row]
        if node >= 0 and table_name(view, node) != name:
            broken.append(f"task {task.key} is counted on {name} but its column says {table_name(view, node)}")
        if name and task.key not in view.node_tasks.get(name, {}):
            broken.append(f"task {task.key} is not among the tasks of its node {name}")
    return broken


def table_name(view: View, row: int) -> str:
    """Name of the node of that row."""
    return view.nodes.specs[row].name
