"""What a queue would have while a preemption is tried out: changes of a trial, beside the session's own numbers.

A trial's `state` is a dictionary that belongs to the one who tries; a plugin keeps its part under its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.plugins.proportion.attributes import Attributes, ProportionAttributes
    from pumice.core.resources import Resource
    from pumice.core.session.session import Session

NAME: Final = "proportion"


class ProportionSimulation:
    """SimulateAddTask, SimulateRemoveTask, SimulateAllocatable.

    The queue's state is not asked again, as in Volcano.
    """

    def __init__(self, session: Session, attributes: Attributes) -> None:
        self._session = session
        self._attributes = attributes

    def add(self, state: dict[str, Any], preemptor: Task, task: Task, node: int) -> str | None:
        """The task is placed in the trial; a text is an error."""
        allocated = self._allocated(state, task)
        if allocated is None:
            return _orphan(task)
        allocated.add(task.template.request)
        return None

    def remove(self, state: dict[str, Any], preemptor: Task, task: Task, node: int) -> str | None:
        """The task is taken away in the trial."""
        allocated = self._allocated(state, task)
        if allocated is None:
            return _orphan(task)
        allocated.sub_without_assert(task.template.request)
        return None

    def allocatable(self, state: dict[str, Any], queue: Queue, task: Task) -> bool:
        """Whether the queue stays within deserved with the task, as the trial stands."""
        attributes = self._attributes[queue.name]
        return attributes.has_room_for(task.template.request, _of_trial(state, attributes))

    def _allocated(self, state: dict[str, Any], task: Task) -> Resource | None:
        job = self._session.job_of(task)
        return None if job is None else _of_trial(state, self._attributes[job.pod_group.queue])


def _orphan(task: Task) -> str:
    return f"[proportion] job {task.job} not found in session (orphaned task from deleted PodGroup)"


def _of_trial(state: dict[str, Any], attributes: ProportionAttributes) -> Resource:
    """The queue's allocated in the trial; the session's own until something is changed."""
    allocated: dict[str, Resource] = state.setdefault(NAME, {})
    if attributes.name not in allocated:
        allocated[attributes.name] = attributes.allocated.clone()
    return allocated[attributes.name]
