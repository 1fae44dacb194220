# SPDX-License-Identifier: Apache-2.0
"""Tasks of the view: one immutable object and two numbers (status, node row) each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pumice.core.state.dimensions import LEAST_ROOM, Rows, grown, integers

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.state.kept_columns import Arrays

NOWHERE = -1


class TaskTable:
    """Columns over task rows. `status`: int8 TaskStatus; `node`: int32 node row or NOWHERE; `job`: int32 job row or
    NOWHERE.

    `status_at`, `node_at` and `job_at` are the same columns, number by number.
    `resides[row]` is the name of the node on which the task is counted, "" for none; the node itself may not have
    been seen yet.

    `ended_rows`: rows that tasks share when their job has nothing left to decide, one for each status; `retired` are so
    many.
    """

    def __init__(self) -> None:
        self.rows = Rows()
        self.changed: set[int] = set()  # see core/state/kept_columns.py
        self.ended_rows: dict[int, int] = {}
        self.retired = 0
        self.by_key: dict[str, Task] = {}
        self.handles: list[Task | None] = []
        self.resides: list[str] = []
        self.status: npt.NDArray[np.int8] = np.zeros(LEAST_ROOM, dtype=np.int8)
        self.node: npt.NDArray[np.int32] = np.full(LEAST_ROOM, NOWHERE, dtype=np.int32)
        self.job: npt.NDArray[np.int32] = np.full(LEAST_ROOM, NOWHERE, dtype=np.int32)
        self._by_number()

    def _by_number(self) -> None:
        self._current: tuple[int, Arrays] | None = None  # slices of other arrays
        self.status_at, self.node_at, self.job_at = integers(self.status), integers(self.node), integers(self.job)

    def take_row(self) -> int:
        """Return a row for a new task; the columns reach that far afterwards."""
        row = self.rows.take()
        self.changed.add(row)
        if row >= len(self.handles):
            self.handles.append(None)
            self.resides.append("")
        if row >= len(self.status):
            self.status = grown(self.status, row + 1)
            self.node, self.job = grown(self.node, row + 1), grown(self.job, row + 1)
            # Sessions have rows that are not used yet.
            self.node[row:] = self.job[row:] = NOWHERE
            self._by_number()
        return row

    def renew(self, task: Task) -> None:
        """Put a task in the row of the one before it; the latest change comes last."""
        del self.by_key[task.key]
        self.by_key[task.key] = self.handles[task.row] = task
        self.changed.add(task.row)

    def retire(self, task: Task, status: int, job: int) -> None:
        """Enter an ended task in the row of its like; `job` is the row of their jobs."""
        row = self.ended_rows.get(status)
        if row is None:
            row = self.ended_rows[status] = self.take_row()
            self.status_at[row], self.job_at[row], self.node_at[row] = status, job, NOWHERE
        task.row = row
        self.by_key[task.key] = task
        self.retired += 1

    def release(self, task: Task) -> None:
        """Forget a task and free its row."""
        del self.by_key[task.key]
        # The row stays: other ended tasks share it.
        if task.row in self.ended_rows.values():
            self.retired -= 1
            return
        self.handles[task.row] = None
        self.changed.add(task.row)
        self.node_at[task.row] = self.job_at[task.row] = NOWHERE
        self.rows.give_back(task.row)

    def shape(self) -> tuple[int, int]:
        """Return how many rows a session has; those that are not used yet are as freed ones."""
        return 1, self.rows.room

    def current(self) -> tuple[Arrays, list[Task | None]]:
        """Return the columns that a session has, not copied, and the tasks."""
        room = self.rows.room
        if self._current is None or self._current[0] != room:
            now: Arrays = {"status": self.status[:room], "node": self.node[:room], "job": self.job[:room]}
            self._current = room, now
        return self._current[1], self.handles

    def derived_like(self, arrays: Arrays) -> Arrays:
        """Return room for what a session has beside them."""
        return {"seen": np.empty_like(arrays["status"])}

    def derive(self, arrays: Arrays, at: slice | npt.NDArray[np.intp]) -> None:
        """Fill in the status in which each task's node has it: its own, when the session opens."""
        arrays["seen"][at] = arrays["status"][at]
