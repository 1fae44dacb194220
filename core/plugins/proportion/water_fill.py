"""Deserved:

the cluster poured into the queues by weight, no queue above its request or its capability, none below its guarantee.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.resources import INFINITY, ZERO, Resource, exceeded_part, higher

if TYPE_CHECKING:
    from core.plugins.proportion.attributes import QueueAttributes


def fill(total: Resource, queues: list[QueueAttributes]) -> None:
    """Set `deserved` and `share` of every queue.

    A pass reads what remained at its start, so the order of queues has no say.
    """
    remaining = total.clone()
    unmet = list(queues)
    while weight := sum(queue.weight for queue in unmet):
        before = remaining.clone()
        more, less = Resource(), Resource()
        still: list[QueueAttributes] = []
        for queue in unmet:
            old = queue.deserved
            queue.deserved = _raise(queue, remaining, queue.weight / weight)
            queue.update_share()
            increased, decreased = queue.deserved.diff(old, ZERO)
            more.add(increased)
            less.add(decreased)
            if not queue.request.less_equal(queue.deserved, ZERO) and not _same(queue.deserved, old):
                still.append(queue)
        unmet = still
        remaining = exceeded_part(remaining.clone().add(less), more)
        if remaining.is_empty() or _same(remaining, before):
            return


def _raise(queue: QueueAttributes, remaining: Resource, fraction: float) -> Resource:
    deserved = queue.deserved.clone().add(remaining.clone().multi(fraction))
    deserved.min_dimension_resource(queue.real_capability, INFINITY)
    deserved.min_dimension_resource(queue.request, ZERO)
    return higher(deserved, queue.guarantee)


def _same(left: Resource, right: Resource) -> bool:
    """Equal to the last bit; no scalars and an empty map of them are the same (equality.Semantic)."""
    return (
        left.milli_cpu == right.milli_cpu
        and left.memory == right.memory
        and (left.scalars or {}) == (right.scalars or {})
    )
