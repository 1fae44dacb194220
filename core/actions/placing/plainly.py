"""Gangs that plainly cannot start and are not worth a try: all nodes together have too little room, or an equal gang
has failed since the last placement.

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
    from collections.abc import Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job

PLENTY = 1 << 30


class PlainRoom:
    """For how many pods of each kind the nodes have room, each node by itself and each kind alone."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._counts: dict[int, int] = {}
        self._like: dict[int, tuple[object, ...]] = {}
        self._failed: set[tuple[object, ...]] = set()

    def has_failed(self, job: Job) -> bool:
        """Return whether an equal job has failed, and nothing was placed since."""
        return self._like.get(job.row) in self._failed

    def failed(self, job: Job) -> None:
        """It was tried, and all was undone."""
        if job.row in self._like:
            self._failed.add(self._like[job.row])

    def placed(self) -> None:
        """Something has changed."""
        self._failed.clear()

    def has_none(self, job: Job) -> bool:
        """Return whether fewer of the job's tasks find room than its minimum lacks; for a job that has its minimum,
        whether none does. Always False for jobs that are placed by domains or groups.
        """
        session, jobs = self._session, self._session.jobs
        if session.has_sub_job_policy(job) or session.topology.is_asked_for(job):
            return False
        needed = 1
        if "gang" in session.plugins and not session.job_ready(job):
            needed = max(jobs.min_member[job.row] - jobs.ready_count(job) - jobs.best_effort[job.row], 1)
        waiting = jobs.tasks_in(job, TaskStatus.PENDING)
        first = waiting[0].template
        if all(task.template is first for task in waiting):
            self._note(job, waiting)
            return min(len(waiting), self._of(first)) < needed
        kinds = Counter(task.template.number for task in waiting)
        templates = {task.template.number: task.template for task in waiting}
        return sum(min(count, self._of(templates[number])) for number, count in kinds.items()) < needed

    def _note(self, job: Job, waiting: Sequence[Task]) -> None:
        """Note what makes a job equal to this one: as many of the same pods wait in the same queue for the same
        minimum, and all wait.
        """
        session, spec, first = self._session, job.pod_group, waiting[0]
        if not first.template.plain or session.points.unforeseeable or len(waiting) < len(job.tasks):
            return
        kinds = {session.searches.kind(task, room=True) for task in waiting}  # plugins may read annotations, too
        if len(kinds) > 1 or None in kinds:
            return
        if all(task.labels == first.labels and not task.nominated for task in waiting):
            minimum = (session.jobs.min_member[job.row], *sorted(spec.min_task_member.items()))
            pods = (*kinds, *sorted(first.labels.items()), len(waiting))
            self._like[job.row] = (spec.queue, minimum, pods)

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
