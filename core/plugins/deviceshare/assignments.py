"""Who has which devices in a session, and what is written on pods.

Volcano counts what a pod's annotations say when its node gets or loses it, and assigns devices in the event handlers of
the plugin predicates, once its own reservations are made: without that plugin nothing is assigned. An eviction that is
undone counts the pod again and assigns nothing. Source: Volcano `api/node_info.go` (AddTask, RemoveTask),
`plugins/predicates` (AllocateFunc, DeallocateFunc).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.core.devices.family import DeviceError
from pumice.core.life.task import ALLOCATED_STATUSES, TaskStatus
from pumice.core.messages.decisions import BindContext

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pumice.core.devices.family import Family, Notes
    from pumice.core.devices.locks import NodeLocks
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session

ASSIGNER: Final = "predicates"
KEPT: Final = "terminating-pods-keep-cards"
UNCOUNTED: Final = (TaskStatus.RELEASING, TaskStatus.PIPELINED)
BACK: Final = (TaskStatus.RUNNING, TaskStatus.BOUND)


class Assignments:
    """`written`: what pods ("namespace/name") were told in this session, without what was taken back."""

    def __init__(self, session: Session, families: Sequence[Family], locks: NodeLocks | None = None) -> None:
        self._session, self._families, self._locks = session, families, locks
        self._assigns = session.config.plugin(ASSIGNER) is not None
        self._notes: dict[int, Notes] = {}  # task row -> its annotations as the session has them
        self._counted: set[int] = set()  # rows of tasks that were placed, and not only promised room
        self.written: dict[str, Notes] = {}
        self._count_residents()

    def _count_residents(self) -> None:
        snapshot, nodes = self._session.snapshot, self._session.nodes
        uncounted = (TaskStatus.PIPELINED,) if KEPT in self._session.config.pumice.fix else UNCOUNTED
        for family in self._families:
            for row in family.present.nonzero()[0].tolist():
                for task in snapshot.node_tasks.get(nodes.names[row], {}).values():
                    leaves = nodes.seen_status[task.row] in uncounted
                    family.resident(row, task, snapshot.annotations_of(task), leaves=leaves)

    def _of(self, task: Task, row: int) -> list[Family]:
        return [each for each in self._families if each.present[row] and each.concerns(task)]

    def _notes_of(self, task: Task) -> Notes:
        found = self._notes.get(task.row)
        if found is None:
            found = self._notes[task.row] = dict(self._session.snapshot.annotations_of(task))
        return found

    # --- as pods come and go

    def allocate(self, task: Task, node: int) -> str | None:
        """A pod was put on a node. A text: it cannot have what it asks for."""
        families = self._of(task, node)
        if not families:
            return None
        status = self._session.jobs.status[task.row]
        if status not in UNCOUNTED:
            self._counted.add(task.row)
            for family in families:
                family.add(node, task, self._session.snapshot.annotations_of(task))
        if not self._assigns or status in BACK:
            return None
        return self._assign(task, node, families)

    def _assign(self, task: Task, row: int, families: Sequence[Family]) -> str | None:
        for family in families:
            try:
                said = family.assign(row, task, self._notes_of(task), self._session.clock.now)
            except DeviceError as error:
                if self._locks is not None and self._locks.earliest is not None:
                    self._session.wake(self._locks.earliest)
                return str(error)
            self.written.setdefault(task.key, {}).update(said)
        return None

    def deallocate(self, task: Task, node: int) -> str | None:
        """A pod was taken off a node, or is to be evicted."""
        families = self._of(task, node)
        if not families:
            return None
        evicted = self._session.jobs.status[task.row] == TaskStatus.RELEASING
        if evicted or task.row in self._counted:
            self._counted.discard(task.row)
            for family in families:
                family.remove(node, task, self._session.snapshot.annotations_of(task))
        for family in families if self._assigns else ():
            for name in family.release(node, task, self._notes_of(task)):
                self._notes_of(task).pop(name, None)
                self.written.get(task.key, {}).pop(name, None)
        return None

    def owned(self) -> Iterator[tuple[Task, dict[str, float]]]:
        """(task, what its devices amount to) of the allocated ones, in milli-units by resource."""
        jobs, snapshot = self._session.jobs, self._session.snapshot
        for job in jobs.in_order:
            for status in ALLOCATED_STATUSES:
                for task in jobs.tasks_in(job, status):
                    if jobs.node[task.row] < 0:  # its node is gone
                        continue
                    for family in self._of(task, jobs.node[task.row]):
                        amounts = family.owned(jobs.node[task.row], snapshot.annotations_of(task))
                        if amounts:
                            yield task, amounts

    def bind_context(self, task: Task) -> BindContext | None:
        """What the bind writes on the pod, and the locks that it sets on the node."""
        said = self.written.get(task.key)
        if not said:
            return None
        locks = () if self._locks is None else self._locks.of(self._session.jobs.node[task.row], task.uid)
        return BindContext(annotations=tuple(sorted(said.items())), locks=locks)
