"""Pods that NodeInfo has lost: tasks whose eviction was taken back.

Volcano reserves volumes again when an eviction is undone, which fails for every pod that was running when the session
opened (there is no state of a PreFilter to read), and leaves out the rest of the handler: the pod stays missing from
kube-scheduler's NodeInfo until the session ends. Scores and filters that read NodeInfo see its room as free.
Source: Volcano `plugins/predicates` (AllocateFunc, runReservePlugins).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.life.task import TaskStatus

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session

FIX = "unevict-restores-pods"


class TakenBack:
    """Asked by the event handlers before they move a pod."""

    def __init__(self, session: Session) -> None:
        self._status = session.jobs.status
        self._mends = FIX in session.config.pumice.fix
        self._lost: set[int] = set()

    def loses(self, task: Task) -> bool:
        """A placement: whether it is an undone eviction, so that NodeInfo does not get the pod back."""
        if self._mends or self._status[task.row] not in (TaskStatus.RUNNING, TaskStatus.BOUND):
            return False
        self._lost.add(task.row)
        return True

    def has_lost(self, task: Task) -> bool:
        """A removal: whether NodeInfo does not have the pod any more."""
        return task.row in self._lost
