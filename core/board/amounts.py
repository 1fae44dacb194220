"""How much of what is used, being released and promised on each node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from core.life.task import TaskStatus
from core.state.dimensions import MEMORY, PODS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from core.objects.pod import Task
    from core.state.columns import FloatArray
    from core.state.view import View


VOLUMES: Final = "attachable-volumes-"


def worth_showing(view: View) -> list[int]:
    """The dimensions that some node has something of; how many volumes a driver attaches at most is no amount."""
    names = view.dimensions.names
    most = view.nodes.allocatable[:, : view.nodes.count].max(axis=1, initial=0.0)
    places: list[int] = np.flatnonzero(most[: len(view.dimensions)]).tolist()
    return [place for place in places if not names[place].startswith(VOLUMES)]


def told(view: View, columns: FloatArray, shown: Sequence[int]) -> FloatArray:
    """Columns of nodes as people read them: cpu in cores, memory in bytes, all else in pieces."""
    scale = np.array([1.0 if number in (MEMORY, PODS) else 1000.0 for number in shown])
    chosen: FloatArray = columns[list(shown), : view.nodes.count] / scale[:, None]
    return chosen


def amounts_of(view: View, rows: Sequence[int], shown: Sequence[int]) -> bytes:
    """Float64 [3, resource, node]: used, releasing, promised."""
    promised = np.zeros_like(view.nodes.used)
    for task, node in _promised(view):
        for dimension, value in task.template.items:
            promised[dimension, node] += value
    nodes = view.nodes
    used = nodes.used.copy()
    used[PODS, : nodes.count] = nodes.pod_count[: nodes.count]
    found = np.stack([told(view, each, shown)[:, rows] for each in (used, nodes.releasing, promised)])
    return found.tobytes()


def _promised(view: View) -> Iterator[tuple[Task, int]]:
    """Pods that are being bound, or wait for room on a node that they are nominated for, and its row."""
    tasks, used = view.tasks, view.tasks.rows.used
    status = tasks.status[:used]
    for row in np.flatnonzero(status == TaskStatus.BINDING).tolist():
        task, node = tasks.handles[row], tasks.node_at[row]
        if task is not None and node >= 0:
            yield task, node
    for row in np.flatnonzero(status == TaskStatus.PENDING).tolist():
        task = tasks.handles[row]
        if task is not None and task.nominated and task.nominated in view.nodes.row:
            yield task, view.nodes.row[task.nominated]
