"""Which task is counted on which node, and the nodes' sums that follow from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.life.task import COMPLETED_STATUSES
from pumice.core.state.tasks import NOWHERE

if TYPE_CHECKING:
    from pumice.core.life.task import TaskStatus
    from pumice.core.objects.pod import Task
    from pumice.core.state.nodes import NodeTable
    from pumice.core.state.tasks import TaskTable


class NodeTasks:
    """`node_tasks`: node name -> pod key -> task, nodes not yet seen included; a node's tasks in the order in which
    they last changed. A dict that a snapshot has seen is never changed again: it is copied first.
    """

    def __init__(self, tasks: TaskTable, nodes: NodeTable) -> None:
        self.node_tasks: dict[str, dict[str, Task]] = {}
        self._tasks = tasks
        self._nodes = nodes
        self.unshared: dict[str, None] = {}  # node names whose dict no snapshot has seen

    def share(self) -> dict[str, dict[str, Task]]:
        """For a snapshot."""
        self.unshared.clear()
        return dict(self.node_tasks)

    def enter(self, task: Task, status: TaskStatus, node_name: str) -> None:
        """Count a task that is counted on no node."""
        row, tasks = task.row, self._tasks
        tasks.node_at[row] = NOWHERE
        tasks.resides[row] = home = node_name if status not in COMPLETED_STATUSES else ""
        if not home:
            return
        self._residents(home)[task.key] = task
        node = self._nodes.row.get(home)
        if node is not None:
            tasks.node_at[row] = node
            self._nodes.place(node, task.template, status, 1)

    def leave(self, task: Task, status: int) -> None:
        """The reverse of :meth:`enter`."""
        name = self._tasks.resides[task.row]
        if name:
            del self._residents(name)[task.key]
            self._tasks.resides[task.row] = ""
            node = self._tasks.node_at[task.row]
            if node != NOWHERE:
                self._nodes.place(node, task.template, status, -1)

    def move(self, task: Task, before: int, status: TaskStatus, node_name: str) -> None:
        """A task that was counted with status `before`: what it asks for has not changed, its status or node may."""
        name = self._tasks.resides[task.row]
        if name != (node_name if status not in COMPLETED_STATUSES else ""):
            self.leave(task, before)
            self.enter(task, status, node_name)
        elif name:
            self._stay(name, task, before, status)

    def _stay(self, name: str, task: Task, before: int, status: TaskStatus) -> None:
        residents = self._residents(name)
        del residents[task.key]  # the latest change comes last
        residents[task.key] = task
        node = self._tasks.node_at[task.row]
        if node != NOWHERE:
            self._nodes.restate(node, task.template, before, status)

    def with_node(self, name: str, row: int) -> None:
        """A node has come: what is counted on it already takes its room."""
        for task in self.node_tasks.get(name, {}).values():
            self._tasks.node_at[task.row] = row
            self._nodes.place(row, task.template, self._tasks.status_at[task.row], 1)

    def without_node(self, name: str, row: int) -> None:
        """A node is about to go: its tasks stay counted on it by name, and the last node's row becomes `row`."""
        last = self._nodes.count - 1
        for task in self.node_tasks.get(name, {}).values():
            self._tasks.node_at[task.row] = NOWHERE
        if row != last:
            for task in self.node_tasks.get(self._nodes.specs[last].name, {}).values():
                self._tasks.node_at[task.row] = row

    def _residents(self, node_name: str) -> dict[str, Task]:
        if node_name not in self.unshared:
            self.unshared[node_name] = None
            self.node_tasks[node_name] = dict(self.node_tasks.get(node_name, {}))
        return self.node_tasks[node_name]
