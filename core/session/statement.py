"""A reversible list of operations. Source: Volcano `framework/statement.go`.

An operation changes the session at once: job and node columns, then the event handlers. Discard undoes in reverse;
commit turns allocations into binds and evictions into evicts. Nothing leaves the session before commit.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pumice.core.life.task import TaskStatus

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.copies import TaskCopy
    from pumice.core.session.session import Session


ONCE: Final = "groups-list-tasks-once"


class OperationKind(IntEnum):
    """What an operation did."""

    EVICT = 0
    PIPELINE = 1
    ALLOCATE = 2


class Operation(Struct, frozen=True):
    """One step. `node` is the node's row; `evicted`: room had to be made for a pipelined task; `score`: what chose it;
    `bound`: an evicted task was Bound, not Running; `copy`: the copy of the task that it is about, if there are any.
    """

    kind: OperationKind
    task: Task
    node: int
    reason: str = ""
    evicted: bool = False
    preemptor: str = ""
    score: float = 0.0
    bound: bool = False
    copy: TaskCopy | None = None


class LastTransaction(NamedTuple):
    """What a task had reached in a transaction that was discarded: it explains why the task is pending."""

    status: int
    node: int
    evicted: bool


@dataclass(slots=True)
class Statement:
    """Operations of one trial. `save` and `recover` replay them later as a value."""

    session: Session
    operations: list[Operation]

    def __len__(self) -> int:
        return len(self.operations)

    def allocate(self, task: Task, node: int) -> bool:
        """Allocate the task to a node with idle room. False: refused by the node or a plugin, rolled back."""
        if not self.session.place(task, node, TaskStatus.ALLOCATED):
            self.session.unplace(task)
            return False
        self.operations.append(Operation(OperationKind.ALLOCATE, task, node, copy=self.session.copies.current(task)))
        return True

    def pipeline(self, task: Task, node: int, *, evicted: bool) -> bool:
        """Promise the task room that is being freed. False: refused, rolled back."""
        if not self.session.place(task, node, TaskStatus.PIPELINED, evicted=evicted):
            self.session.unplace(task)
            return False
        copy = self.session.copies.current(task)
        self.operations.append(Operation(OperationKind.PIPELINE, task, node, "", evicted, copy=copy))
        return True

    def evict(self, task: Task, reason: str, preemptor: str = "", score: float = 0.0) -> None:
        """Release a bound or running task."""
        node, bound = self.session.jobs.node[task.row], self.session.jobs.status[task.row] == TaskStatus.BOUND
        self.session.release(task)
        copy = self.session.copies.current(task)
        self.operations.append(Operation(OperationKind.EVICT, task, node, reason, False, preemptor, score, bound, copy))

    def unpipeline(self, task: Task) -> None:
        """Take a promise back outside of any list of operations (backfill retries pipelined best-effort tasks)."""
        self.session.unplace(task)

    def discard(self) -> None:
        """Undo everything, last first; each task remembers what it had reached.

        A bound victim becomes Running, as in Volcano (fix unevict-restores-bound: Bound).
        """
        session = self.session
        restores_bound = "unevict-restores-bound" in session.config.pumice.fix
        for operation in reversed(self.operations):
            session.copies.act(operation.task, operation.copy)
            session.remember(operation.task)
            if operation.kind is OperationKind.EVICT:
                session.unrelease(operation.task, bound=operation.bound and restores_bound)
            else:
                session.unplace(operation.task)
        self.operations = []

    def commit(self) -> None:
        """Make it so, first to last: evictions and binds go out, pipelined tasks wait for the next cycle."""
        session = self.session
        for operation in self.operations:
            session.copies.act(operation.task, operation.copy)
            session.last_transaction.pop(operation.task.row, None)
            if operation.kind is OperationKind.EVICT:
                session.emit_evict(operation.task, operation.reason, operation.preemptor, operation.score)
            elif operation.kind is OperationKind.ALLOCATE:
                session.emit_bind(operation.task)
        self.operations = []

    def merge(self, *others: Statement) -> None:
        """Take over the operations of other statements of this session."""
        for other in others:
            self.operations.extend(other.operations)
            other.operations = []

    def recover(self, saved: list[Operation]) -> bool:
        """Do saved operations again. False: one was refused; what was done before it stays in the statement."""
        for operation in saved:
            if operation.copy is not None:
                self.session.copies.replace(operation.task, operation.copy)
            if operation.kind is OperationKind.EVICT:
                self.evict(operation.task, operation.reason, operation.preemptor, operation.score)
            elif operation.kind is OperationKind.PIPELINE:
                if not self.pipeline(operation.task, operation.node, evicted=operation.evicted):
                    return False
            elif not self.allocate(operation.task, operation.node):
                return False
        return True


def save(*statements: Statement) -> list[Operation]:
    """The operations of statements as a value, each with a copy of its task as it is now.

    Fix groups-list-tasks-once: without copies.
    """
    operations = [operation for statement in statements for operation in statement.operations]
    if not operations or ONCE in statements[0].session.config.pumice.fix:
        return operations
    copies = statements[0].session.copies
    return [replace(operation, copy=copies.saved(operation.task)) for operation in operations]
