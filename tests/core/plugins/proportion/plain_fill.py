"""The water-fill of proportion as Volcano writes it: queue by queue, on Resources.

What the vectorised one must equal.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pumice.core.resources import INFINITY, ZERO, Resource, exceeded_part, higher


@dataclass
class PlainQueue:
    """One queue's numbers."""

    weight: int
    request: Resource
    real: Resource
    guarantee: Resource
    deserved: Resource = field(default_factory=Resource)


def plain_fill(total: Resource, queues: list[PlainQueue]) -> bool:
    """Set `deserved` of every queue; whether anything was poured."""
    remaining, unmet, poured = total.clone(), list(queues), False
    while weight := sum(queue.weight for queue in unmet):
        poured, before = True, remaining.clone()
        more, less = Resource(), Resource()
        still: list[PlainQueue] = []
        for queue in unmet:
            old = queue.deserved
            queue.deserved = raised(queue, remaining, queue.weight / weight)
            increased, decreased = queue.deserved.diff(old, ZERO)
            more.add(increased)
            less.add(decreased)
            if not queue.request.less_equal(queue.deserved, ZERO) and not same(queue.deserved, old):
                still.append(queue)
        unmet = still
        remaining = exceeded_part(remaining.clone().add(less), more)
        if remaining.is_empty() or same(remaining, before):
            break
    return poured


def raised(queue: PlainQueue, remaining: Resource, fraction: float) -> Resource:
    """What the queue deserves after one more pass."""
    deserved = queue.deserved.clone().add(remaining.clone().multi(fraction))
    deserved.min_dimension_resource(queue.real, INFINITY)
    deserved.min_dimension_resource(queue.request, ZERO)
    return higher(deserved, queue.guarantee)


def same(left: Resource, right: Resource) -> bool:
    """Equal to the last bit, names included."""
    ours, theirs = left.scalars or {}, right.scalars or {}
    return left.milli_cpu == right.milli_cpu and left.memory == right.memory and ours == theirs
