"""The view's invariants, checkable at any time: counts by status add up, idle + used = allocatable, no task in two
places.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from pumice.core.life.task import COUNT, LABELS, TaskStatus
from pumice.core.resources import MIN_RESOURCE
from pumice.core.state.tasks import NOWHERE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.core.objects.pod import Task
    from pumice.core.state.jobs import Job
    from pumice.core.state.view import View

RELEASING = int(TaskStatus.RELEASING)


def check_view(view: View) -> list[str]:
    """Every broken invariant as a sentence."""
    tasks = view.tasks
    broken = [*_check_jobs(view, view.jobs.by_key.values()), *_check_nodes(view, range(view.nodes.count))]
    return [*broken, *_check_places(view, range(len(tasks.handles)))]


def check_touched(view: View) -> list[str]:
    """Broken invariants among what was touched since the last snapshot: the rest was whole then, and still is."""
    touched, by_key, rows = view.touched, view.jobs.by_key, view.nodes.row
    if touched.everything:
        return check_view(view)
    jobs = [by_key[key] for key in touched.jobs if key in by_key]
    nodes = [rows[name] for name in view.residents.unshared if name in rows]
    return [*_check_jobs(view, jobs), *_check_nodes(view, nodes), *_check_places(view, touched.rows)]


def _check_jobs(view: View, jobs: Iterable[Job]) -> list[str]:
    broken: list[str] = []
    statuses, owners, columns = view.tasks.status_at, view.tasks.job_at, view.jobs.counts
    for job in jobs:
        if job.row == view.jobs.aside:
            continue  # it shares its columns
        counted = [0] * COUNT
        for task in job.tasks.values():
            counted[statuses[task.row]] += 1
            if owners[task.row] != job.row:
                broken.append(f"task {task.key} does not know its job {job.key}")
        column: list[int] = columns[:, job.row].tolist()
        if counted != column:
            broken += _miscounted(job.key, counted, column)
    return broken


def _miscounted(job: str, counted: list[int], columns: list[int]) -> list[str]:
    return [
        f"job {job}: {number} tasks are {LABELS[status]}, the column says {column}"
        for status, (number, column) in enumerate(zip(counted, columns, strict=True))
        if column != number
    ]


def _check_nodes(view: View, rows: Iterable[int]) -> list[str]:
    table = view.nodes
    broken: list[str] = []
    for row in rows:
        spec, at_row = table.specs[row], itemgetter(row)
        used, releasing = _by_tasks(view, view.node_tasks.get(spec.name, {}).values())
        idle = [has - taken for has, taken in zip(table.allocatable[:, row].tolist(), used, strict=True)]
        if spec.allocatable.scalars is None:
            idle[2:] = [0.0] * len(idle[2:])
        for what, lines, expected in (
            ("used", table.used_at, used),
            ("releasing", table.releasing_at, releasing),
            ("idle", table.idle_at, idle),
        ):
            says = list(map(at_row, lines))
            if says != expected and _differ(says, expected):
                broken.append(f"node {spec.name}: {what} is {says}, its tasks make it {expected}")
    return broken


def _differ(says: list[float], expected: list[float]) -> bool:
    return any(abs(one - other) >= MIN_RESOURCE for one, other in zip(says, expected, strict=True))


def _by_tasks(view: View, tasks: Iterable[Task]) -> tuple[list[float], list[float]]:
    """What the tasks of a node use, and release, added up anew, by dimension."""
    height, statuses = len(view.nodes.used_at), view.tasks.status_at
    used, releasing = [0.0] * height, [0.0] * height
    for task in tasks:
        for dimension, value in task.template.items:
            used[dimension] += value
        if statuses[task.row] == RELEASING:
            for dimension, value in task.template.items:
                releasing[dimension] += value
    return used, releasing


def _check_places(view: View, places: Iterable[int]) -> list[str]:
    tasks, rows, node_tasks = view.tasks, view.nodes.row, view.node_tasks
    broken: list[str] = []
    nodes, homes, handles = tasks.node_at, tasks.resides, tasks.handles
    for row in places:
        home, node = homes[row], nodes[row]
        if not home and node == NOWHERE:
            continue
        task = handles[row]
        if node != rows.get(home, NOWHERE):
            named = "" if node == NOWHERE else view.nodes.specs[node].name
            broken.append(f"task {_key(task)} is counted on {home} but its column says {named}")
        if home and (task is None or home not in node_tasks or task.key not in node_tasks[home]):
            broken.append(f"task {_key(task)} is not among the tasks of its node {home}")
    if len(tasks.by_key) != len(handles) - handles.count(None) + tasks.laid_aside:
        broken.append(f"{len(tasks.by_key)} tasks by name are not those by row")
    return broken


def _key(task: Task | None) -> str:
    return task.key if task is not None else "that has gone"
