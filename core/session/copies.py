"""Copies of tasks that replayed operations leave behind. Source: Volcano `framework/statement.go` (SaveOperations,
RecoverOperations), `api/job_info.go` (UpdateTaskStatus, deleteTaskFromSubJob), `api/sub_job_info.go`.

A saved operation holds a clone of its task as the trial left it: Allocated, Pipelined or Releasing. Replaying it makes
the clone the job's task. The task's group takes out the entry under the clone's status, where there is none: so the
task as it was before stays listed in the group, Pending or Running, beside the clone. What goes by the group's lists
sees the task twice: a later action places a task that has a place already, and a group counts as ready with a task that
is being evicted. The job's own lists are right.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pumice.core.life.task import TaskStatus

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session
    from pumice.core.session.statement import LastTransaction

PENDING: Final = TaskStatus.PENDING


@dataclass(slots=True, eq=False)
class TaskCopy:
    """One copy of a task, with what was true of it when the job last had it."""

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
        """The current copy goes from one status to another."""
        if not self.is_new:
            self.by_status.pop(before, None)
        self.is_new = False
        self.by_status[after] = self.current


class TaskCopies:
    """The copies of one session's tasks. There are none before an operation is replayed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._listings = session.jobs.listings

    def current(self, task: Task) -> TaskCopy | None:
        """The copy that the job has now; None for a task without copies."""
        listing = self._listings.get(task.row)
        return listing.current if listing else None

    def saved(self, task: Task) -> TaskCopy:
        """A clone of the task as it is now."""
        jobs, row = self._session.jobs, task.row
        last = self._session.last_transaction.get(row)
        return TaskCopy(jobs.status[row], jobs.node[row], row in self._session.evicted_for, last)

    def replace(self, task: Task, clone: TaskCopy) -> None:
        """The clone is to be the job's task: the operation that is replayed next puts it where it belongs."""
        listing = self._listings.get(task.row)
        if listing is None:
            original = self.saved(task)
            listing = TaskEntries(original, original, original, {original.status: original})
            self._listings[task.row] = listing
        self._put_away(task, listing.current)
        listing.current, listing.is_new = clone, True
        self._recall(task, clone)

    def act(self, task: Task, copy: TaskCopy | None) -> None:
        """Let this copy be the job's task (None: the original): an operation goes by the state of its own copy."""
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
        """An action lists the group's pending tasks, this one among them."""
        listing = self._listings.get(task.row)
        if listing is not None:
            listing.held = listing.by_status[PENDING]

    def act_as_held(self, task: Task) -> None:
        """Let the copy that the action has listed be the job's task."""
        listing = self._listings.get(task.row)
        if listing is not None:
            self.act(task, listing.held)

    def waiting_jobs(self) -> set[int]:
        """Rows of the jobs that have a task which its group lists as pending."""
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
