"""What proportion knows of a queue: numbers, and how they are gathered when a session opens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.resources import INFINITY, LARGEST, Resource, exceeded_part, share
from core.session.demand import admitted, by_queue, elastic, outstanding

if TYPE_CHECKING:
    from core.objects.queue import Queue
    from core.session.session import Session


@dataclass(slots=True)
class QueueAttributes:
    """One queue's numbers; Resources in Volcano's units.

    `real_capability`: its own capability cut to what others' guarantees leave.
    """

    name: str
    weight: int
    allocated: Resource
    request: Resource
    inqueue: Resource
    elastic: Resource
    guarantee: Resource
    capability: Resource
    real_capability: Resource
    deserved: Resource
    share: float = 0.0

    def update_share(self) -> None:
        """The largest allocated / deserved over the dimensions that are deserved."""
        largest = 0.0
        for name in self.deserved.resource_names():
            largest = max(largest, share(self.allocated.get(name), self.deserved.get(name)))
        self.share = largest


def _capability(queue: Queue) -> Resource | None:
    if queue.capability is None:
        return None
    capability = queue.capability.clone()
    if capability.milli_cpu <= 0:
        capability.milli_cpu = LARGEST
    if capability.memory <= 0:
        capability.memory = LARGEST
    return capability


def total_guarantee(session: Session) -> Resource:
    """Sum of all queues' guarantees."""
    total = Resource()
    for queue in session.queues.values():
        if queue.guarantee is not None:
            total.add(queue.guarantee)
    return total


def gather(session: Session) -> dict[str, QueueAttributes]:
    """Attributes of every queue that has a job, in name order; deserved is still empty."""
    columns = session.snapshot.jobs
    present = set(columns.queue[columns.order].tolist())
    inqueue, running = admitted(session)
    allocated = by_queue(session, columns.allocated)
    request = by_queue(session, columns.allocated + columns.pending)
    waiting = by_queue(session, outstanding(session, inqueue | running))
    spare = by_queue(session, elastic(session))
    free = exceeded_part(session.total, total_guarantee(session))
    attributes: dict[str, QueueAttributes] = {}
    for row, queue in enumerate(session.snapshot.queues):
        if row not in present:
            continue
        guarantee = queue.guarantee.clone() if queue.guarantee else Resource()
        real, capability = free.clone().add(guarantee), _capability(queue)
        if capability is not None:
            real.min_dimension_resource(capability, INFINITY)
        attributes[queue.name] = QueueAttributes(
            queue.name, queue.weight, allocated[row], request[row], waiting[row], spare[row], guarantee,
            capability or Resource(), real, Resource(),
        )  # fmt: skip
    return attributes
