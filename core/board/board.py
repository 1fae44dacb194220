"""A view as a board: what of it the asker does not have yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.core.board.amounts import amounts_of, worth_showing
from pumice.core.board.layout import LayoutVersion, in_name_order, layout_of, layout_version
from pumice.core.life.pod_group import PodGroupPhase
from pumice.core.life.task import TaskStatus
from pumice.core.messages.boards import BoardPod, BoardRead, ReadBoard, ResidentsRead
from pumice.core.messages.queue_gauges import told
from pumice.core.state.dimensions import PODS

if TYPE_CHECKING:
    from pumice.core.board.amounts import Rows
    from pumice.core.messages.boards import BoardLayout
    from pumice.core.objects.pod import Task
    from pumice.core.state.view import View

NOTHING_SEEN = ReadBoard()


class BoardReader:
    """Remembers which layout the view had when it was last asked. `version` may rise across views."""

    def __init__(self) -> None:
        self._layout: BoardLayout | None = None
        self._of: tuple[int, LayoutVersion] | None = None
        self._number = 0
        self._rows: Rows = np.zeros(0, dtype=np.intp)

    def read(self, view: View, version: int, asked: ReadBoard = NOTHING_SEEN) -> BoardRead:
        """What is to be shown of the view, which is of that version."""
        if version == asked.version:
            return BoardRead(version, asked.layout)
        layout = self._newest_layout(view)
        return BoardRead(
            version,
            self._number,
            None if asked.layout == self._number else layout,
            amounts_of(view, self._rows, worth_showing(view)),
            _pods(view),
            _jobs(view),
            *view.on_their_way,
        )

    def _newest_layout(self, view: View) -> BoardLayout:
        of = (id(view), layout_version(view))
        if self._layout is None or of != self._of:
            self._rows = in_name_order(view)
            self._layout, self._of = layout_of(view, self._rows), of
            self._number += 1
        return self._layout


def residents_of(view: View, node: str) -> ResidentsRead:
    """The pods on a node, by name."""
    if node not in view.nodes.row:
        return ResidentsRead(node, known=False)
    tasks = view.residents.node_tasks.get(node, {})
    return ResidentsRead(node, True, tuple(_resident(view, tasks[key]) for key in sorted(tasks)))


def _resident(view: View, task: Task) -> BoardPod:
    names = view.dimensions.names
    asks = {
        names[number]: told(names[number], value) for number, value in task.template.items if value and number != PODS
    }
    status = TaskStatus(view.tasks.status_at[task.row]).label
    return BoardPod(task.key, task.job, status, task.priority, asks, task.created)


def _pods(view: View) -> dict[str, int]:
    counts: list[int] = view.jobs.counts.sum(axis=1).tolist()
    return {each.label: counts[each] for each in TaskStatus if counts[each]}


def _jobs(view: View) -> dict[str, int]:
    jobs, rows = view.jobs, view.jobs.in_key_order()
    phases = np.maximum(jobs.phase[rows][jobs.has_spec[rows]], PodGroupPhase.PENDING.value)
    counts: list[int] = np.bincount(phases, minlength=len(PodGroupPhase)).tolist()
    return {each.label: counts[each] for each in PodGroupPhase if counts[each]}
