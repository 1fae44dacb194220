# SPDX-License-Identifier: Apache-2.0
"""Nodes as a session sees them: the snapshot's columns with the session's trial changes.

Accounting: Volcano `NodeInfo.AddTask` / `RemoveTask` (reference section 5.2); `future` is FutureIdle = idle +
releasing - pipelined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.core.life.task import TaskStatus
from pumice.core.resources import MIN_RESOURCE
from pumice.core.state.dimensions import floats, integers, lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.core.kube.placed import Placed
    from pumice.core.objects.pod import Task
    from pumice.core.session.statement import TaskEntries
    from pumice.core.state.dimensions import FloatArray
    from pumice.core.state.snapshot import NodeColumns, Snapshot

RELEASING, PIPELINED = TaskStatus.RELEASING, TaskStatus.PIPELINED
ABSENT = -1
NO_TASKS: Final[dict[str, Task]] = {}


class SessionNodes:
    """Columns over node rows in name order (see NodeColumns), with `pipelined` and `future` beside them.

    `touched` lists the rows that were changed, oldest first: a reader that derives values from a row remembers how far
    it has read; the first `before` of them were changed before this session. `entered`: the rows of the tasks that were
    put on a node.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        columns: NodeColumns = snapshot.nodes
        self.count = len(columns.names)
        self.max_pods = columns.max_pods
        self.allocatable: FloatArray = columns.allocatable
        self.idle: FloatArray = columns.idle
        self.used: FloatArray = columns.used
        self.releasing: FloatArray = columns.releasing
        self.pipelined: FloatArray = columns.pipelined
        self.future: FloatArray = columns.future
        self.touched: list[int] = []
        # The same memory number by number: a memoryview costs a third of numpy's indexing (core/state/dimensions.py).
        self.idle_at = lines(self.idle)
        self.used_at = lines(self.used)
        self.future_at = lines(self.future)
        # The status each task had when its node last looked: a node keeps its own copy of a task.
        self.seen_status = integers(snapshot.tasks.seen)
        self._begin(snapshot)

    def renew(self, snapshot: Snapshot, changed: list[int]) -> None:
        """Begin another session on the same columns. `changed`: rows that have changed since the end of the one before;
        readers that have kept something see them as touched.
        """
        self.touched += changed
        self._begin(snapshot)

    def _begin(self, snapshot: Snapshot) -> None:
        columns: NodeColumns = snapshot.nodes
        self.names, self.specs, self.row = columns.names, columns.specs, columns.row
        self.arrival, self.derived = columns.arrival, snapshot.derived
        # While nothing is releasing or promised, idle room is all the room: searches then skip the second comparison.
        self.has_future = bool(np.count_nonzero(columns.releases))
        self.before = len(self.touched)
        self.entered: list[int] = []
        self._residents = snapshot.node_tasks
        self._added: dict[int, dict[str, Task]] = {}
        self._removed: dict[int, set[str]] = {}
        # The same for a task with copies, by node and task: two nodes may have one each.
        self.listings: Mapping[int, TaskEntries] = {}
        self._seen_apart: dict[tuple[int, int], int] = {}

    def written(self) -> list[int]:
        """Return the rows that this session has changed."""
        return self.touched[self.before :]

    def holds(self, row: int, task: Task) -> bool:
        """Return whether the task is on that node now."""
        if task.key in self._added.get(row, ()):
            return True
        return task.key in self._residents.get(self.names[row], ()) and task.key not in self._removed.get(row, ())

    def tasks_on(self, row: int) -> list[Task]:
        """Return the tasks on a node in namespace/name order."""
        tasks = dict(self._residents.get(self.names[row], {}))
        for key in self._removed.get(row, ()):
            tasks.pop(key, None)
        tasks.update(self._added.get(row, {}))
        # Volcano walks a map here, so the order in which it offers victims is random.
        return [tasks[key] for key in sorted(tasks)]

    def add(self, row: int, task: Task, status: int) -> bool:
        """Put a task on a node with that status. False, without a change, when it is there already."""
        key = task.key
        if key in self._residents.get(self.names[row], NO_TASKS):
            # A task that the snapshot has here may come back only after it was taken off.
            removed = self._removed.get(row)
            if removed is None or key not in removed:
                return False
            removed.discard(key)
        elif (added := self._added.get(row)) is None:
            self._added[row] = {key: task}
        elif key in added:
            return False
        else:
            added[key] = task
        self.seen_status[task.row] = status
        self.entered.append(task.row)
        if task.row in self.listings:
            self._seen_apart[row, task.row] = status
        self._account(row, task, status, 1.0)
        return True

    def remove(self, row: int, task: Task) -> bool:
        """Take a task off a node, by the status the node knows. False when the task is not on it."""
        added = self._added.get(row)
        if added is None or added.pop(task.key, None) is None:
            if not self.holds(row, task):
                return False
            self._removed.setdefault(row, set()).add(task.key)
        status = self.seen_status[task.row]
        if task.row in self.listings:
            status = self._seen_apart.pop((row, task.row), status)
        self._account(row, task, status, -1.0)
        return True

    def _account(self, row: int, task: Task, status: int, sign: float) -> None:
        self.touched.append(row)
        if status == PIPELINED:
            self.has_future = True
            for dimension, value in task.template.items:
                amount = sign * value
                self.pipelined[dimension, row] += amount
                self.future_at[dimension][row] -= amount
            return
        idle, used, future = self.idle_at, self.used_at, self.future_at
        # Go's nil map: subtracting a scalar from it does nothing (see core/state/nodes.py).
        keeps_scalars = self.specs[row].allocatable.scalars is not None
        for dimension, value in task.template.items:
            amount = sign * value
            used[dimension][row] += amount
            if dimension < 2 or keeps_scalars:
                idle[dimension][row] -= amount
                future[dimension][row] -= amount
        if status == RELEASING:
            self.has_future = True
            for dimension, value in task.template.items:
                amount = sign * value
                self.releasing[dimension, row] += amount
                future[dimension][row] += amount

    def fits_idle(self, row: int, task: Task) -> bool:
        """Return whether InitResreq <= Idle, tolerant, absent scalars count as 0."""
        idle = self.idle_at
        for dimension, value in task.template.items:  # noqa: SIM110 - asked for every task that is placed
            if not value - idle[dimension][row] < MIN_RESOURCE:
                return False
        return True

    def fits_future(self, row: int, task: Task) -> bool:
        """Return whether InitResreq <= FutureIdle, tolerant."""
        future = self.future_at
        return all(value - future[dimension][row] < MIN_RESOURCE for dimension, value in task.template.items)

    def insufficient(self, row: int, task: Task) -> int:
        """Return the first dimension (cpu, memory, scalars by name) that FutureIdle lacks, or ABSENT."""
        future = self.future_at
        for dimension, value in task.template.items:
            if value - future[dimension][row] >= MIN_RESOURCE:
                return dimension
        return ABSENT


class KubeNodes:
    """kube-scheduler's NodeInfo as columns, which Volcano's predicates and nodeorder read through NodeMap.

    `pods` int32 [N]; `requested` float64 [R, N]; `nonzero` float64 [2, N] (milli-cores, bytes). Every pod on the node
    counts, terminating and pipelined ones too; it is kept up by the predicates plugin's event handlers. `placed`: see
    `pumice.core.kube.placed`.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.pods = snapshot.nodes.pod_count
        self.requested: FloatArray = snapshot.nodes.requested
        self.touched: list[int] = []  # in this session
        self.nonzero: FloatArray = snapshot.nodes.nonzero
        self._pods_at = integers(self.pods)
        self._requested_at = lines(self.requested)
        self._cpu_at, self._memory_at = floats(self.nonzero[0]), floats(self.nonzero[1])
        self.placed: Placed | None = None

    def renew(self) -> None:
        """Begin another session on the same columns."""
        self.touched = []

    def add(self, task: Task, row: int) -> None:
        """Add a task (AddPod)."""
        template = task.template
        self.touched.append(row)
        self._pods_at[row] += 1
        self._cpu_at[row] += template.nonzero_cpu
        self._memory_at[row] += template.nonzero_memory
        for dimension, value in template.items:
            self._requested_at[dimension][row] += value

    def remove(self, task: Task, row: int) -> None:
        """Remove a task (RemovePod)."""
        template = task.template
        self.touched.append(row)
        self._pods_at[row] -= 1
        self._cpu_at[row] -= template.nonzero_cpu
        self._memory_at[row] -= template.nonzero_memory
        for dimension, value in template.items:
            self._requested_at[dimension][row] -= value
