"""Who may be asked to go, task by task: what the masks of `pumice.core.actions.victims.on_node` must say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.life.task import TaskStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session


def tasks_that(session: Session, node: int, accepts: Callable[[Task], bool]) -> list[Task]:
    """The tasks on a node that a filter lets through, in namespace/name order."""
    return [task for task in session.nodes.tasks_on(node) if accepts(task)]


def of_other_jobs(session: Session, preemptor: Task) -> Callable[[Task], bool]:
    """What a preemptor may take from other jobs of its queue."""
    own = session.job_of(preemptor)
    assert own is not None
    queue, takes = own.pod_group.queue, _takes(session, preemptor)

    def accepts(task: Task) -> bool:
        if task.job == preemptor.job or not takes(task):
            return False
        job = session.job_of(task)
        return job is not None and job.pod_group.queue == queue

    return accepts


def of_own_job(session: Session, preemptor: Task) -> Callable[[Task], bool]:
    """What it may take from its own."""
    takes = _takes(session, preemptor)
    return lambda task: task.job == preemptor.job and takes(task)


def _takes(session: Session, preemptor: Task) -> Callable[[Task], bool]:
    best_effort = preemptor.template.best_effort

    def takes(task: Task) -> bool:
        if session.jobs.status[task.row] not in (TaskStatus.RUNNING, TaskStatus.BOUND):
            return False
        return task.preemptable and (task.template.best_effort or not best_effort)

    return takes


def of_other_queues(session: Session, reclaimer: Task) -> Callable[[Task], bool]:
    """What a reclaimer may take."""
    own = session.job_of(reclaimer)
    assert own is not None

    def accepts(task: Task) -> bool:
        if session.jobs.status[task.row] != TaskStatus.RUNNING or not task.preemptable:
            return False
        job = session.job_of(task)
        return job is not None and job.pod_group.queue != own.pod_group.queue and session.queue_of(job).reclaimable

    return accepts
