# SPDX-License-Identifier: Apache-2.0
"""The tasks of a job to place: its groups in order, and each group's tasks in order. Source: Volcano
`organizeJobWorksheet`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pumice.core.session.heap import PriorityQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.objects.pod import Task
    from pumice.core.session.heap import PopSource
    from pumice.core.session.jobs import SubJob
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job


LINGERS: Final = "tried-groups-stay-in-line"
"""A former rule, under which old journals are replayed (`pumice.config.rules`)."""


@dataclass(slots=True)
class Worksheet:
    """The groups and tasks that are left to place. `sub_jobs`: groups that still have tasks; `tasks`: by group id;
    `lingers`: whether the former rule is in force.
    """

    sub_jobs: PriorityQueue[SubJob]
    tasks: dict[str, PopSource[Task]]
    lingers: bool = False

    @property
    def empty(self) -> bool:
        """Return whether nothing is left to place. A group that was tried in vain has left the line."""
        return not (self.sub_jobs or self.lingers) or not any(self.tasks.values())

    def take_over(self, other: Worksheet) -> None:
        """Take over the tasks that the chosen trial left."""
        self.sub_jobs, self.tasks = other.sub_jobs, other.tasks

    def clone(self) -> Worksheet:
        """Return an independent copy for a trial."""
        return Worksheet(self.sub_jobs.clone(), {uid: tasks.clone() for uid, tasks in self.tasks.items()}, self.lingers)


def wanted(session: Session, sub_job: SubJob) -> list[Task]:
    """Return pending tasks that have requests and no gate except Volcano's, by uid."""
    return [
        task
        for task in sub_job.pending(session.jobs)
        if not task.template.best_effort and (not task.gated or task.only_volcano_gate)
    ]


def ungated(session: Session, sub_job: SubJob) -> list[Task]:
    """Return the tasks of the group without any gate: a task that may not start evicts no other task."""
    return [task for task in wanted(session, sub_job) if not task.gated]


def organize(session: Session, job: Job, wants: Callable[[Session, SubJob], list[Task]] = wanted) -> Worksheet:
    """Sort groups: those that the job's minimum needs first, then by SubJobOrder."""
    groups = session.sub_jobs(job)
    required = _required(session, job, groups) if session.has_sub_job_policy(job) else set[str]()

    def before(left: SubJob, right: SubJob) -> bool:
        if (left.uid in required) != (right.uid in required):
            return left.uid in required
        return session.points.sub_job_order.before(left, right)

    worksheet = Worksheet(PriorityQueue(before), {}, LINGERS in session.config.pumice.fix)
    for uid, sub_job in groups.items():
        tasks = wants(session, sub_job)
        if tasks:
            for task in tasks if session.jobs.listings else ():
                session.copies.hold(task)
            worksheet.sub_jobs.push(sub_job)
            worksheet.tasks[uid] = session.points.task_order.queue(tasks)
    return worksheet


def _required(session: Session, job: Job, groups: dict[str, SubJob]) -> set[str]:
    """Return the first groups of each policy that, with the ready ones, make up minSubGroups."""
    minimum = {
        f"{job.key}/{p.get('name') or ''}": int(p.get("minSubGroups") or 0) for p in job.pod_group.sub_group_policy
    }
    ready: Counter[str] = Counter()
    open_groups: PriorityQueue[SubJob] = PriorityQueue(session.points.sub_job_order.before)
    for sub_job in groups.values():
        if session.sub_job_ready(sub_job):
            ready[sub_job.gid] += 1
        else:
            open_groups.push(sub_job)
    required: set[str] = set()
    while open_groups:
        sub_job = open_groups.pop()
        if ready[sub_job.gid] < minimum.get(sub_job.gid, 0):
            required.add(sub_job.uid)
            ready[sub_job.gid] += 1
    return required
