"""What a queue would have while a preemption is tried out: changes of a trial, beside the session's own numbers.

A trial's `state` is a dictionary that belongs to the one who tries; a plugin keeps its part under its name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pumice.core.plugins.capacity.limits import fits

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.plugins.capacity.attributes import CapacityAttributes
    from pumice.core.plugins.capacity.claims import ClaimQuota, DeviceQuotas
    from pumice.core.plugins.capacity.ledger import Ledger
    from pumice.core.resources import Resource
    from pumice.core.session.session import Session

NAME: Final = "capacity"


@dataclass(slots=True)
class QueueTrial:
    """Copies of what the trial has touched, by queue."""

    allocated: dict[str, Resource] = field(default_factory=dict[str, "Resource"])
    claims: dict[str, ClaimQuota | None] = field(default_factory=dict[str, "ClaimQuota | None"])


class CapacitySimulation:
    """SimulateAddTask, SimulateRemoveTask, SimulateAllocatable. The queue's state is not asked again, as in Volcano."""

    def __init__(self, session: Session, ledger: Ledger, claims: DeviceQuotas) -> None:
        self._session = session
        self._ledger = ledger
        self._claims = claims

    def add(self, state: dict[str, Any], preemptor: Task, task: Task, node: int) -> str | None:
        """The task is placed in the trial; a text is an error."""
        return self._change(state, task, placed=True)

    def remove(self, state: dict[str, Any], preemptor: Task, task: Task, node: int) -> str | None:
        """The task is taken away in the trial."""
        return self._change(state, task, placed=False)

    def allocatable(self, state: dict[str, Any], queue: Queue, task: Task) -> bool:
        """Whether the task fits into the real capability on every level, as the trial stands."""
        if not self._ledger.ready or not self._ledger.of(queue.name).limits.leaf:
            return False
        trial = _trial(state)
        return all(
            fits(attributes, trial.allocated.get(attributes.limits.name, attributes.allocated), task)
            and self._claims.fit(trial.claims.get(attributes.limits.name, attributes.claims), task)
            for attributes in self._ledger.line(queue.name)
        )

    def _change(self, state: dict[str, Any], task: Task, *, placed: bool) -> str | None:
        job = self._session.job_of(task)
        if job is None:
            return f"[capacity] job {task.job} not found in session (orphaned task from deleted PodGroup)"
        trial = _trial(state)
        for attributes in self._ledger.line(job.pod_group.queue):
            allocated, claims = _parts(trial, attributes)
            if placed:
                allocated.add(task.template.request)
                self._claims.take(claims, task)
            else:
                allocated.sub_without_assert(task.template.request)
                self._claims.give_back(claims, task)
        return None


def _trial(state: dict[str, Any]) -> QueueTrial:
    trial: QueueTrial = state.setdefault(NAME, QueueTrial())
    return trial


def _parts(trial: QueueTrial, attributes: CapacityAttributes) -> tuple[Resource, ClaimQuota | None]:
    name = attributes.limits.name
    if name not in trial.allocated:
        trial.allocated[name] = attributes.allocated.clone()
        trial.claims[name] = attributes.claims.copy() if attributes.claims else None
    return trial.allocated[name], trial.claims[name]
