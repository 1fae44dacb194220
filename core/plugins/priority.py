# SPDX-License-Identifier: Apache-2.0
"""priority: order jobs by priority, and let them preempt lower ones. Source: Volcano `plugins/priority`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.config.arguments import PluginArguments
from pumice.core.plugins.plugin import BuiltInPlugin, OrderNumber
from pumice.core.session.points.orders import JobColumn, TaskKey
from pumice.core.session.points.victims import Mask

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.jobs import SubJob
    from pumice.core.session.points.nodes import BoolArray, TaskBatch
    from pumice.core.session.points.victims import GangEvictor
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job


class Priority(BuiltInPlugin):
    """Compares priorities."""

    name = "priority"
    says = "puts the more important first, and lets it take from the less important"
    listens = ("JobOrder", "TaskOrder", "SubJobOrder", "Preemptable", "JobStarving")
    names_gangs = True
    orders_by = OrderNumber("priority", -1.0)
    only_answers = True

    def __init__(self, arguments: PluginArguments) -> None:
        self._session: Session | None = None

    def on_session_open(self, session: Session) -> None:
        """Register orders, victims and starvation."""
        self._jobs = session.jobs
        self._job_of = session.job_of
        points = session.points
        self._priorities = session.snapshot.jobs.priority
        # The smaller number goes first, so priorities are negated.
        points.task_order.add(self.name, TaskKey(lambda task: -task.priority))
        points.job_order.add(self.name, JobColumn(lambda: -self._priorities))
        points.sub_job_order.add(self.name, self.sub_job_order)
        points.preemptable.add(self.name, Mask(self.preemptable))
        points.unified_evictable.add(self.name, Mask(self.evictable))
        points.job_starving.add(self.name, self.job_starving)
        points.job_starving.add_column(self.name, session.jobs.short)

    def can_go_on(self, session: Session) -> bool:
        """Return True: all rules read the columns."""
        return True

    def on_session_close(self, session: Session) -> None:
        """Write nothing."""

    def sub_job_order(self, left: SubJob, right: SubJob) -> int:
        """Compare groups: the group with the more important task first."""
        return right.priority - left.priority

    def preemptable(self, preemptor: Task, batch: TaskBatch) -> BoolArray:
        """Return candidates of strictly lower job priority; within one job of strictly lower task priority."""
        own = self._job_of(preemptor)
        if own is None:
            return np.zeros(len(batch.rows), dtype=np.bool_)
        lower: BoolArray = np.where(
            batch.job == own.row,
            batch.facts.priority[batch.rows] < preemptor.priority,
            self._is_below(own, batch),
        )
        return lower

    def evictable(self, context: GangEvictor, batch: TaskBatch) -> BoolArray:
        """Return candidates for gangs: strictly lower job priority within the queue; across queues priority does not
        count.
        """
        if context.kind == "gangreclaim":
            return np.ones(len(batch.rows), dtype=np.bool_)
        return self._is_below(context.job, batch)

    def _is_below(self, job: Job, batch: TaskBatch) -> BoolArray:
        # -1 reads the last job's priority; the second half takes these out again.
        below: BoolArray = (self._priorities[batch.job] < self._priorities[job.row]) & (batch.job >= 0)
        return below

    def job_starving(self, job: Job) -> bool:
        """Return whether some task has no place; failed tasks count as without one."""
        return self._jobs.ready_count(job) + self._jobs.waiting_count(job) < len(job.tasks)
