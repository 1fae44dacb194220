# SPDX-License-Identifier: Apache-2.0
"""The tasks of nodes as rows, and their constant facts as columns; both are filled on demand and kept: without the
columns `bench preempt` takes twice as long, without the rows or the plugins' facts of tasks 1.2 times each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pumice.core.session.points.nodes import TaskBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import BoolArray, FloatArray, RowArray
    from pumice.core.session.session import Session

PREFIX = 7  # bytes of a uid that fit a signed 64-bit number


class Residents:
    """Tasks of nodes, over task rows: `job` (row, -1 for one that is not in the session) and `status` as the session
    has it now.

    Of tasks on a node that was asked about: `preemptable`, `best_effort`, `priority`, `pod_priority`, `index` (-1:
    none), `created`, `started`, `uid` (the number its first bytes make) and `template`. `requests` float64 [template,
    dimension].
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        tasks = session.snapshot.tasks
        count = len(tasks.status)
        known = np.append(np.asarray(session.jobs.known), False)  # the last for those without a job
        self.job: RowArray = np.where(known[tasks.job], tasks.job, np.intp(-1))
        self.status = tasks.status
        self.handles = tasks.handles
        self._known: BoolArray = np.zeros(count, dtype=np.bool_)
        self.preemptable: BoolArray = np.zeros(count, dtype=np.bool_)
        self.best_effort: BoolArray = np.zeros(count, dtype=np.bool_)
        self.priority, self.pod_priority, self.index, self.uid, self.template = (
            np.zeros(count, dtype=np.int64) for _ in range(5)
        )
        self.created: FloatArray = np.zeros(count)
        self.started: FloatArray = np.zeros(count)
        self.requests: FloatArray = np.zeros((0, len(session.dims)))
        self._rows: dict[int, npt.NDArray[np.intp]] = {}
        self._read = 0
        self._static: dict[str, npt.NDArray[np.int8]] = {}
        self._numbers: dict[str, FloatArray] = {}

    def on(self, nodes: Iterable[int]) -> TaskBatch:
        """Return the tasks on these nodes as they are now."""
        self._forget_touched()
        found = [self._rows_of(node) for node in nodes]
        lengths = np.fromiter(map(len, found), dtype=np.intp, count=len(found))
        rows = np.concatenate(found) if found else np.zeros(0, dtype=np.intp)
        self.learn(rows)
        return TaskBatch(self, rows, np.repeat(np.arange(len(found)), lengths), len(found))

    def batch(self, tasks: Sequence[Task]) -> TaskBatch:
        """Return these tasks as a batch on one node."""
        rows = np.array([task.row for task in tasks], dtype=np.intp)
        self.learn(rows)
        return TaskBatch(self, rows, np.zeros(len(rows), dtype=np.intp), 1)

    def static(self, name: str, rows: RowArray, test: Callable[[Task], bool]) -> BoolArray:
        """Return a constant fact of tasks, computed once a task. [len(rows)]"""
        known = self._static.get(name)
        if known is None:
            # 0: not asked yet, 1: no, 2: yes.
            known = self._static[name] = np.zeros(len(self.status), dtype=np.int8)
        fresh = rows[known[rows] == 0]
        if len(fresh):
            known[fresh] = [1 + test(task) for task in self.tasks(fresh)]
        yes: BoolArray = known[rows] == 2
        return yes

    def number(self, name: str, rows: RowArray, key: Callable[[Task], Any]) -> FloatArray:
        """Return a constant number of tasks, computed once a task. [len(rows)]"""
        known = self._numbers.get(name)
        if known is None:
            # NaN: not asked yet.
            known = self._numbers[name] = np.full(len(self.status), np.nan)
        fresh = rows[np.isnan(known[rows])]
        if len(fresh):
            known[fresh] = [key(task) for task in self.tasks(fresh)]
        return known[rows]

    def tasks(self, rows: RowArray) -> list[Task]:
        """Return the tasks themselves."""
        listed: list[int] = rows.tolist()
        return [task for row in listed if (task := self.handles[row]) is not None]

    def _forget_touched(self) -> None:
        touched = self._session.nodes.touched
        for row in touched[self._read :]:
            self._rows.pop(row, None)
        self._read = len(touched)

    def _rows_of(self, node: int) -> npt.NDArray[np.intp]:
        rows = self._rows.get(node)
        if rows is None:
            listed = [task.row for task in self._session.nodes.tasks_on(node)]
            rows = self._rows[node] = np.array(listed, dtype=np.intp)
        return rows

    def learn(self, rows: RowArray) -> None:
        """Fill in the columns of these tasks, as far as they are not."""
        fresh = rows[~self._known[rows]]
        if not len(fresh):
            return
        self._known[fresh] = True
        tasks = self.tasks(fresh)
        self.preemptable[fresh] = [task.preemptable for task in tasks]
        self.best_effort[fresh] = [task.template.best_effort for task in tasks]
        self.priority[fresh] = [task.priority for task in tasks]
        self.pod_priority[fresh] = [task.pod_priority or 0 for task in tasks]
        self.index[fresh] = [-1 if task.index is None else task.index for task in tasks]
        self.uid[fresh] = [_prefix(task.uid) for task in tasks]
        self.created[fresh] = [task.created for task in tasks]
        self.started[fresh] = [task.started for task in tasks]
        self.template[fresh] = [task.template.number for task in tasks]
        # By template, not by task: the pods of a role share one row.
        self._learn_requests({task.template.number: task for task in tasks})

    def _learn_requests(self, tasks: dict[int, Any]) -> None:
        missing = max(tasks) + 1 - len(self.requests)
        if missing > 0:
            self.requests = np.pad(self.requests, ((0, missing), (0, 0)))
        for number, task in tasks.items():
            for dimension, value in task.template.items:
                self.requests[number, dimension] = value


def _prefix(uid: str) -> int:
    return int.from_bytes(uid.encode()[:PREFIX].ljust(PREFIX, b"\0"))
