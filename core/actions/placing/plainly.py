# SPDX-License-Identifier: Apache-2.0
"""Gangs that plainly cannot start and are not tried: all nodes together have too little room, or an equal gang has
failed since the last placement.

Only where the reasons for waiting are not read (`SessionOptions.wordless`): a failed try decides nothing, but says
where it failed. Room only shrinks while tasks are placed, so what has none as the action begins has none later. Without
this `bench whatif` takes 1.9 times as long.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from pumice.core.life.task import TaskStatus
from pumice.core.resources import MIN_RESOURCE

if TYPE_CHECKING:
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job

PLENTY = 1 << 30


def certain_template(session: Session, job: Job) -> PodTemplate | None:
    """Return the template of all tasks of a job that certainly has tasks to place: these need not be put in order
    before it is tried. None where that is not certain.
    """
    return None if session.jobs.listings else job.plain_template()


class FullQueues:
    """Queues that have no room for a template, as was found out when a job failed, and nothing was placed since."""

    def __init__(self, session: Session) -> None:
        self._session = session
        # A trail wants to hear of each task, and a user's rule may tell any two tasks apart.
        self._is_off = session.trail.listens or session.points.unforeseeable
        self._full: set[tuple[str, int]] = set()

    def keeps_out(self, job: Job) -> bool:
        """Return whether the job's queue has no room for any of its tasks, so that to try it would change nothing, and
        would note no reason either (`TaskLoop.step`).
        """
        if not self._full or self._key(job) not in self._full:
            return False
        # An empty statement of a job that has its minimum is committed, and the job gets another turn.
        return not (self._session.job_ready(job) or self._session.job_pipelined(job))

    def placed(self) -> None:
        """Note that something was placed."""
        self._full.clear()

    def failed(self, job: Job) -> None:
        """Note that the job was tried and that all was undone."""
        session, key = self._session, self._key(job)
        waiting = session.jobs.tasks_in(job, TaskStatus.PENDING) if key else ()
        # All tasks of a template get one answer.
        if key and waiting and not session.points.allocatable(session.queue_of(job), waiting[0]):
            self._full.add(key)
        else:  # it may have had places for a while, which is no reason to trust what was found before
            self._full.clear()

    def _key(self, job: Job) -> tuple[str, int] | None:
        """Return queue and template of a job that may be passed over, None for others."""
        only = None if self._is_off else certain_template(self._session, job)
        if only is None or self._session.nominations.concern(job):
            return None
        return job.pod_group.queue, only.number


class PlainRoom:
    """The number of pods of each kind that the nodes have room for, each node by itself and each kind alone."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._counts: dict[int, int] = {}
        self._failed: set[tuple[object, ...]] = set()

    def has_failed(self, job: Job) -> bool:
        """Return whether an equal job has failed, and nothing was placed since."""
        return bool(self._failed) and self._likeness(job) in self._failed

    def failed(self, job: Job) -> None:
        """Note that the job was tried and that all was undone."""
        likeness = self._likeness(job)
        if likeness is not None:
            self._failed.add(likeness)

    def placed(self) -> None:
        """Note that something was placed, so equal jobs may be tried again."""
        self._failed.clear()

    def has_none(self, job: Job) -> bool:
        """Return whether fewer of the job's tasks find room than its minimum lacks; for a job that has its minimum,
        whether no task does. Always False for jobs that are placed by domains or groups.
        """
        session, jobs = self._session, self._session.jobs
        if session.has_sub_job_policy(job) or session.topology.is_asked_for(job):
            return False
        needed = 1
        if "gang" in session.plugins and not session.job_ready(job):
            needed = max(jobs.min_member[job.row] - jobs.ready_count(job) - jobs.best_effort[job.row], 1)
        if (only := job.one_template()) is not None:  # most jobs: their tasks need not be gone through
            return min(int(jobs.counts[TaskStatus.PENDING][job.row]), self._of(only)) < needed
        waiting = jobs.tasks_in(job, TaskStatus.PENDING)
        kinds = Counter(task.template.number for task in waiting)
        templates = {task.template.number: task.template for task in waiting}
        return sum(min(count, self._of(templates[number])) for number, count in kinds.items()) < needed

    def _likeness(self, job: Job) -> tuple[object, ...] | None:
        """Return the key that equal jobs share: as many of the same pods wait in the same queue for the same minimum,
        and all of them wait. None when no other job is known to be equal.
        """
        session, spec, template = self._session, job.pod_group, job.one_template()
        if template is None or not job.is_uniform() or not template.plain or session.points.unforeseeable:
            return None
        if session.jobs.counts[TaskStatus.PENDING][job.row] < len(job.tasks):
            return None
        if session.has_sub_job_policy(job) or session.topology.is_asked_for(job):
            return None
        # plugins may read annotations, too
        told = job.in_uid_order()[:1] if session.searches.readings.always.by_labels else job.in_uid_order()
        kinds = {session.searches.kind(task, room=True) for task in told}
        if len(kinds) > 1 or None in kinds:
            return None
        minimum = (session.jobs.min_member[job.row], *sorted(spec.min_task_member.items()))
        return spec.queue, minimum, (*kinds, *sorted(told[0].labels.items()), len(job.tasks))

    def _of(self, template: PodTemplate) -> int:
        known = self._counts.get(template.number)
        if known is None:
            asked = [(dimension, value) for dimension, value in template.items if value > 0]
            known = self._counts[template.number] = self._counted(asked)
        return known

    def _counted(self, asked: list[tuple[int, float]]) -> int:
        if not asked:
            return PLENTY
        future = self._session.nodes.future
        fitting = [np.floor((future[dimension] + MIN_RESOURCE) / value) for dimension, value in asked]
        return int(np.minimum.reduce(fitting).clip(0.0).sum())
