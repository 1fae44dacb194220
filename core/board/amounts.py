"""How much of what is used, being released, being bound and nominated on each node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from pumice.core.life.task import TaskStatus
from pumice.core.state.dimensions import MEMORY, PODS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.state.columns import FloatArray
    from pumice.core.state.view import View

Rows = npt.NDArray[np.intp]

VOLUMES: Final = "attachable-volumes-"


def worth_showing(view: View) -> list[int]:
    """The dimensions that some node has something of; how many volumes a driver attaches at most is no amount."""
    names = view.dimensions.names
    most = view.nodes.allocatable[:, : view.nodes.count].max(axis=1, initial=0.0)
    places: list[int] = np.flatnonzero(most[: len(view.dimensions)]).tolist()
    return [place for place in places if not names[place].startswith(VOLUMES)]


def told(view: View, columns: FloatArray, shown: Sequence[int], rows: Rows) -> FloatArray:
    """Columns of nodes as people read them: cpu in cores, memory in bytes, all else in pieces."""
    scale = np.array([1.0 if number in (MEMORY, PODS) else 1000.0 for number in shown])
    chosen: FloatArray = columns[np.ix_(np.array(shown, dtype=np.intp), rows)] / scale[:, None]
    return chosen


def amounts_of(view: View, rows: Rows, shown: Sequence[int]) -> bytes:
    """Float64 [4, resource, node]: used, and of that releasing and being bound; nominated."""
    tasks, nodes = view.tasks.status[: view.tasks.rows.used], view.nodes
    found = np.zeros((4, len(shown), len(rows)))
    used = nodes.used.copy()
    used[PODS, : nodes.count] = nodes.pod_count[: nodes.count]
    found[0] = told(view, used, shown, rows)
    if nodes.releasing.any():
        found[1] = told(view, nodes.releasing, shown, rows)
    for part, placed in (
        (2, _binding(view, np.flatnonzero(tasks == TaskStatus.BINDING).tolist())),
        (3, _nominated(view, np.flatnonzero(tasks == TaskStatus.PENDING).tolist())),
    ):
        if (sums := _sums(view, placed)) is not None:
            found[part] = told(view, sums, shown, rows)
    return found.tobytes()


def _sums(view: View, placed: Iterator[tuple[Task, int]]) -> FloatArray | None:
    """What is asked for by node; None where nobody asks."""
    found: FloatArray | None = None
    for task, node in placed:
        if found is None:
            found = np.zeros_like(view.nodes.used)
        for dimension, value in task.template.items:
            found[dimension, node] += value
    return found


def _binding(view: View, rows: Sequence[int]) -> Iterator[tuple[Task, int]]:
    """Pods that are being bound, and the row of their node, which counts them as used."""
    for row in rows:
        task, node = view.tasks.handles[row], view.tasks.node_at[row]
        if task is not None and node >= 0:
            yield task, node


def _nominated(view: View, rows: Sequence[int]) -> Iterator[tuple[Task, int]]:
    """Pods that wait for room on a node that they are nominated for, and its row."""
    for row in rows:
        task = view.tasks.handles[row]
        if task is not None and task.nominated and task.nominated in view.nodes.row:
            yield task, view.nodes.row[task.nominated]
