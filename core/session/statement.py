# SPDX-License-Identifier: Apache-2.0
"""A reversible list of operations. Source: Volcano `framework/statement.go`.

An operation changes the session immediately: job and node columns, then the event handlers. Discard undoes in reverse;
commit turns allocations into binds and evictions into evicts. Nothing leaves the session before commit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pumice.core.life.task import TaskStatus

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session

# --- Copies that replayed operations leave behind (Volcano's SaveOperations)
# Source: Volcano `framework/statement.go` (SaveOperations, RecoverOperations), `api/job_info.go` (UpdateTaskStatus,
# deleteTaskFromSubJob), `api/sub_job_info.go`.
#
# A saved operation holds a clone of its task as the trial left it: Allocated, Pipelined or Releasing. Replaying it
# makes the clone the job's task. The task's group takes out the entry under the clone's status, where there is none:
# so the task as it was before stays listed in the group, Pending or Running, beside the clone. What goes by the
# group's lists sees the task twice: a later action places a task that has a place already, and a group counts as
# ready with a task that is being evicted. The job's own lists are right.

PENDING: Final = TaskStatus.PENDING


@dataclass(slots=True, eq=False)
class TaskCopy:
    """One copy of a task, with its state when the job last had it."""

    status: int
    node: int
    evicted: bool = False
    last: LastTransaction | None = None


@dataclass(slots=True)
class TaskEntries:
    """The copies of one task.

    `current`: the one that the job has, whose state is in the session's columns; `held`: the one in the hands of the
    action that lists the group's pending tasks; `by_status`: those that the group lists.
    """

    original: TaskCopy
    current: TaskCopy
    held: TaskCopy
    by_status: dict[int, TaskCopy] = field(default_factory=dict[int, TaskCopy])
    is_new: bool = False  # the current copy is listed nowhere yet

    def move(self, before: int, after: int) -> None:
        """Move the current copy from one status to another."""
        # Volcano takes out the entry under the clone's status, where there is none: the old entry stays (see above).
        if not self.is_new:
            self.by_status.pop(before, None)
        self.is_new = False
        self.by_status[after] = self.current


class TaskCopies:
    """The copies of one session's tasks. None exists before an operation is replayed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._listings = session.jobs.listings

    def current(self, task: Task) -> TaskCopy | None:
        """Return the copy that the job has now; None for a task without copies."""
        listing = self._listings.get(task.row)
        return listing.current if listing else None

    def saved(self, task: Task) -> TaskCopy:
        """Return a clone of the task as it is now."""
        jobs, row = self._session.jobs, task.row
        last = self._session.last_transaction.get(row)
        return TaskCopy(jobs.status[row], jobs.node[row], row in self._session.evicted_for, last)

    def replace(self, task: Task, clone: TaskCopy) -> None:
        """Make the clone the job's task: the operation that is replayed next sets its place."""
        listing = self._listings.get(task.row)
        if listing is None:
            original = self.saved(task)
            listing = TaskEntries(original, original, original, {original.status: original})
            self._listings[task.row] = listing
        self._put_away(task, listing.current)
        listing.current, listing.is_new = clone, True
        self._recall(task, clone)

    def act(self, task: Task, copy: TaskCopy | None) -> None:
        """Make this copy the job's task (None: the original): an operation reads the state of its own copy."""
        listing = self._listings.get(task.row)
        if listing is None:
            return
        wanted = copy or listing.original
        if wanted is listing.current:
            return
        self._put_away(task, listing.current)
        listing.current = wanted
        session = self._session
        session.jobs.restate(session.job_of(task), task, TaskStatus(wanted.status))
        session.jobs.node[task.row] = wanted.node
        self._recall(task, wanted)

    def hold(self, task: Task) -> None:
        """Note that an action lists the group's pending tasks, this one among them."""
        listing = self._listings.get(task.row)
        if listing is not None:
            listing.held = listing.by_status[PENDING]

    def act_as_held(self, task: Task) -> None:
        """Make the copy that the action has listed the job's task."""
        listing = self._listings.get(task.row)
        if listing is not None:
            self.act(task, listing.held)

    def waiting_jobs(self) -> set[int]:
        """Return rows of the jobs that have a task which its group lists as pending."""
        of_task = self._session.jobs.of_task
        return {of_task[row] for row, listing in self._listings.items() if PENDING in listing.by_status}

    def _put_away(self, task: Task, copy: TaskCopy) -> None:
        now = self.saved(task)
        copy.status, copy.node, copy.evicted, copy.last = now.status, now.node, now.evicted, now.last

    def _recall(self, task: Task, copy: TaskCopy) -> None:
        session, row = self._session, task.row
        (session.evicted_for.add if copy.evicted else session.evicted_for.discard)(row)
        if copy.last is None:
            session.last_transaction.pop(row, None)
        else:
            session.last_transaction[row] = copy.last


ONCE: Final = "groups-list-tasks-once"


class OperationKind(IntEnum):
    """The kind of an operation."""

    EVICT = 0
    PIPELINE = 1
    ALLOCATE = 2


class Operation(Struct, frozen=True):
    """One step. `node` is the node's row; `evicted`: room had to be made for a pipelined task; `score`: the score that
    chose the node; `bound`: an evicted task was Bound, not Running; `copy`: the copy of the task, if one exists.
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
    """The step that a task had reached in a discarded transaction: it explains why the task is pending."""

    status: int
    node: int
    evicted: bool


@dataclass(slots=True)
class Statement:
    """Collects the operations of one trial, which are committed or undone together.

    A gang needs this: its first tasks are placed before it is known whether the last ones fit. `save` and `recover`
    replay the operations later as a value, so that the best of several trials can be had again.
    """

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
        """Pipeline the task on a node whose room is being freed. False: refused, rolled back."""
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
        """Undo everything, last first; each task remembers the step that it had reached.

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
            # A last transaction explains tasks that stay pending; this one does not.
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
        """Do saved operations again. False when one was refused; the earlier ones stay in the statement."""
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
    """Return the operations of statements as a value, each with a copy of its task as it is now.

    Fix groups-list-tasks-once: without copies.
    """
    operations = [operation for statement in statements for operation in statement.operations]
    if not operations or ONCE in statements[0].session.config.pumice.fix:
        return operations
    copies = statements[0].session.copies
    return [replace(operation, copy=copies.saved(operation.task)) for operation in operations]
