"""Limits of queues that stand side by side. Source: Volcano `capacity.buildQueueAttrs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.plugins.capacity.attributes import FixedAttributes
from pumice.core.resources import INFINITY, LARGEST, Resource, exceeded_part, higher

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.core.state.sources import LimitedQueue


def free_of_guarantees(total: Resource, queues: Iterable[LimitedQueue]) -> Resource:
    """What the cluster has beyond the sum of all guarantees."""
    guaranteed = Resource()
    for queue in queues:
        if queue.guarantee is not None:
            guaranteed.add(queue.guarantee)
    return exceeded_part(total, guaranteed)


def flat_limits(queue: LimitedQueue, free: Resource) -> FixedAttributes:
    """One queue's limits; `free` from :func:`free_of_guarantees`.

    A capability without cpu or memory does not limit it.
    """
    guarantee = queue.guarantee.clone() if queue.guarantee else Resource()
    real, capability = free.clone().add(guarantee), Resource()
    if queue.capability is not None:
        capability = queue.capability.clone()
        capability.milli_cpu = capability.milli_cpu if capability.milli_cpu > 0 else LARGEST
        capability.memory = capability.memory if capability.memory > 0 else LARGEST
        real.min_dimension_resource(capability, INFINITY)
    deserved = queue.deserved.clone() if queue.deserved else Resource()
    deserved.min_dimension_resource(real, INFINITY)
    return FixedAttributes(queue.name, guarantee, capability, real, higher(deserved, guarantee))


def idle_limits(queue: LimitedQueue, free: Resource) -> tuple[Resource, Resource, Resource]:
    """(deserved, capability, real capability) as a queue without jobs shows them, straight from its spec: here a
    capability without cpu does limit cpu, as Volcano shows it.
    """
    real = free.clone().add(queue.guarantee or Resource())
    if queue.capability is not None:
        real.min_dimension_resource(queue.capability, INFINITY)
    return queue.deserved or Resource(), queue.capability or Resource(), real
