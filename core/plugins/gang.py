# SPDX-License-Identifier: Apache-2.0
"""gang: place minAvailable tasks of a job or none. Source: Volcano `plugins/gang`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from pumice.core.life.task import IS_ALLOCATED, TaskStatus
from pumice.core.messages.decisions import PodGroupCondition
from pumice.core.objects.pod_group import READY
from pumice.core.plugins.plugin import BuiltInPlugin, OrderNumber
from pumice.core.session.closing.close import is_settled, only_waits, set_condition
from pumice.core.session.points.orders import JobColumn
from pumice.core.session.points.victims import Mask
from pumice.core.session.points.votes import ValidateResult, Vote

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.objects.pod import Task
    from pumice.core.session.jobs import SubJob
    from pumice.core.session.points.nodes import BoolArray, TaskBatch
    from pumice.core.session.points.victims import GangEvictor
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job

NOT_ENOUGH_PODS_OF_TASK = "NotEnoughPodsOfTask"
NOT_ENOUGH_PODS = "NotEnoughTasks"
NOT_ENOUGH_RESOURCES = "NotEnoughResources"
BROKEN_FIRST = "broken-gangs-first"


class Gang(BuiltInPlugin):
    """Counts each job's tasks against its minimum."""

    name = "gang"
    says = "starts all of a job's minAvailable or nothing, and keeps gangs from falling below it"
    listens = (
        "JobOrder", "JobReady", "JobPipelined", "JobStarving", "Preemptable", "Reclaimable", "SubJobOrder",
        "SubJobReady", "SubJobPipelined",
    )  # fmt: skip
    names_gangs = True
    orders_by = OrderNumber("its gang is ready (1) or not (0):")

    def on_session_open(self, session: Session) -> None:
        """Register validity, readiness, order and victims."""
        self._session = session
        self._jobs = session.jobs
        points = session.points
        points.job_valid.add(self.name, self.job_valid)
        points.preemptable.add(self.name, Mask(self.evictable))
        points.reclaimable.add(self.name, Mask(self.evictable))
        points.unified_evictable.add(self.name, Mask(self.permit_all))
        if BROKEN_FIRST in session.config.pumice.fix:
            self._order_broken_first(session)
        else:
            points.job_order.add(self.name, JobColumn(lambda: self._jobs.readiness))  # who is not ready first
        points.sub_job_order.add(self.name, self.sub_job_order)
        points.job_ready.add(self.name, self.job_ready)
        points.sub_job_ready.add(self.name, self.sub_job_ready)
        points.job_pipelined.add(self.name, self.job_pipelined)
        points.sub_job_pipelined.add(self.name, self.sub_job_pipelined)
        points.job_starving.add(self.name, self._jobs.is_starving)
        points.job_starving.add_column(self.name, self._jobs.starving)

    def can_go_on(self, session: Session) -> bool:
        """Return whether all rules read the columns; ranks of broken gangs belong to one session."""
        return BROKEN_FIRST not in session.config.pumice.fix

    def _order_broken_first(self, session: Session) -> None:
        """Compare jobs: those that run with fewer pods than they need come before jobs that have not started (fix).
        Volcano treats them as equal, and drf then prefers the job that has nothing.
        """
        jobs, columns = self._jobs, session.snapshot.jobs
        held = self._jobs.ready_tasks - columns.counts[TaskStatus.SUCCEEDED]
        broken = (held > 0) & (jobs.readiness == 0)
        ranks = np.where(broken, np.int8(-1), jobs.readiness)

        def follow(task: Task, _node: int) -> None:
            row = jobs.of_task[task.row]
            if row >= 0:
                ranks[row] = -1 if broken[row] and not jobs.readiness[row] else jobs.readiness[row]

        session.points.job_order.add(self.name, JobColumn(lambda: ranks))
        # JobColumn: the plugin keeps the numbers up to date in place, before two jobs are compared again.
        session.points.handle(follow, follow, takes_back=True)

    def job_valid(self, job: Job) -> ValidateResult | None:
        """Return whether enough tasks exist: per role, per group policy, and in all."""
        if not self._jobs.check_task_valid(job):
            return ValidateResult(NOT_ENOUGH_PODS_OF_TASK, "Not enough valid pods of each task for gang-scheduling")
        if not self._enough_groups(job, lambda _: True):
            return ValidateResult(
                NOT_ENOUGH_PODS_OF_TASK, "Not enough valid subGroups of each task for gang-scheduling"
            )
        valid, needed = self._jobs.valid_count(job), self._jobs.min_member[job.row]
        if valid < needed:
            return ValidateResult(
                NOT_ENOUGH_PODS, f"Not enough valid tasks for gang-scheduling, valid: {valid}, min: {needed}"
            )
        return None

    def _enough_groups(self, job: Job, condition: Callable[[SubJob], bool]) -> bool:
        """Return whether enough groups satisfy the condition for every policy's minSubGroups."""
        policies = job.pod_group.sub_group_policy
        if not policies:
            return True
        minimum = {f"{job.key}/{p.get('name') or ''}": int(p.get("minSubGroups") or 0) for p in policies}
        # Without any minSubGroups no group has to be looked at.
        if not any(minimum.values()):
            return True
        groups = Counter(sub_job.gid for sub_job in self._session.sub_jobs(job).values() if condition(sub_job))
        return all(groups[gid] >= number for gid, number in minimum.items())

    def evictable(self, _: Task, batch: TaskBatch) -> BoolArray:
        """Return what a job has above its minimum, the first on a node first."""
        order, rank = batch.ranks()
        jobs = batch.job[order]
        # gang.go counts a job down by one for each of its tasks that may go; `rank` of them come before on the node.
        spare = self._jobs.ready_tasks[jobs] - rank > self._jobs.columns.min_member[jobs]
        mask = np.empty(len(order), dtype=np.bool_)
        mask[order] = spare & (jobs >= 0)
        return mask

    def sub_job_order(self, left: SubJob, right: SubJob) -> int:
        """Compare groups: those that are not ready first."""
        return left.is_ready(self._jobs) - right.is_ready(self._jobs)

    def job_ready(self, job: Job) -> bool:
        """Return whether roles, groups and the whole are ready."""
        if not self._jobs.is_ready(job) or not self._jobs.check_task_ready(job):
            return False
        return self._enough_groups(job, lambda sub_job: sub_job.is_ready(self._jobs))

    def job_pipelined(self, job: Job) -> Vote:
        """Return whether roles, groups and the whole are ready once pipelined tasks count."""
        jobs = self._jobs
        pipelined = (
            jobs.is_pipelined(job)
            and jobs.check_task_pipelined(job)
            and self._enough_groups(job, lambda sub_job: sub_job.is_pipelined(jobs))
        )
        return Vote.PERMIT if pipelined else Vote.REJECT

    def sub_job_ready(self, sub_job: SubJob) -> bool:
        """Return whether the group is ready."""
        return sub_job.is_ready(self._jobs)

    def permit_all(self, _: GangEvictor, batch: TaskBatch) -> BoolArray:
        """Permit all candidates: bundles keep the gangs' minimums themselves."""
        return np.ones(len(batch.rows), dtype=np.bool_)

    def sub_job_pipelined(self, sub_job: SubJob) -> Vote:
        """Return whether the group is ready or pipelined."""
        return Vote.PERMIT if sub_job.is_pipelined(self._jobs) else Vote.REJECT

    def on_session_close(self, session: Session) -> None:
        """Write the Scheduled or Unschedulable condition of every job that has tasks."""
        columns, order = session.snapshot.jobs, self._jobs.unsettled
        counts = self._jobs.counts_of_unsettled()
        ready = self._jobs.readiness[order] > 0
        # Ready jobs that say so already are left out: their condition would not change.
        attention = (np.add.reduce(counts) > 0) & ~(ready & columns.announced[order])
        if "terminating-members" in session.config.pumice.fix:
            attention &= ready | ~only_waits(session)[order]
        said: list[bool] = ready[attention].tolist()
        for job, is_ready in zip(columns.named(order[attention]), said, strict=True):
            if is_ready:
                set_condition(session, job, READY)
            elif is_settled(session, job):
                session.unschedulable.add(job.row)
                session.unready[job.key] = self._jobs.min_member[job.row] - self._jobs.ready_count(job)
            else:
                self._say_unschedulable(session, job)

    def _say_unschedulable(self, session: Session, job: Job) -> None:
        session.unschedulable.add(job.row)
        # a number of words alone: where they are not read, the tasks of each waiting job need not be gone through
        schedulable = self._jobs.ready_count(job) if session.options.wordless else self._schedulable(job)
        unready = session.unready[job.key] = self._jobs.min_member[job.row] - schedulable
        message = f"{unready}/{len(job.tasks)} tasks in gang unschedulable: {session.fit.job_sentence(job)}"
        condition = PodGroupCondition("Unschedulable", "True", NOT_ENOUGH_RESOURCES, message)
        if job.row in session.conditions or condition not in job.pod_group.conditions:
            set_condition(session, job, condition)

    def _schedulable(self, job: Job) -> int:
        """Return ready tasks, and pending ones that a discarded transaction had allocated."""
        last = self._session.last_transaction
        pending = self._jobs.tasks_in(job, TaskStatus.PENDING) if last else ()
        had_place = sum([IS_ALLOCATED[last[task.row].status] for task in pending if task.row in last])
        return self._jobs.ready_count(job) + had_place
