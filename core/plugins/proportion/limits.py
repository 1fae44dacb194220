"""What bounds what a queue deserves: its guarantee from below, its real capability from above; columns over queues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pumice.core.resources import INFINITY, LARGEST, Resource, exceeded_part
from pumice.core.state.derived import derived
from pumice.core.state.sources import QUEUE_LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.core.state.columns import FloatArray
    from pumice.core.state.dimensions import Dimensions
    from pumice.core.state.sources import LimitedQueue, QueueLimits


@dataclass(slots=True, eq=False)
class QueueBounds:
    """`guarantee`, `real` float64 [dimension, queue row]: 0 and infinity where a queue says nothing; the same as
    Resources by row.

    `real` is the queue's own capability cut to what the others' guarantees leave. `weight` int64.
    `guaranteed` bool [dimension, queue row]: the scalars a guarantee names; `named`: those and the cluster's;
    `names_any` bool [queue row]: whether that is any. `total` float64 [dimension]: the cluster's.
    """

    weight: Any
    guarantee: FloatArray
    real: FloatArray
    guaranteed: npt.NDArray[np.bool_]
    named: npt.NDArray[np.bool_]
    names_any: npt.NDArray[np.bool_]
    total: FloatArray
    guarantees: list[Resource]
    reals: list[Resource]


def total_guarantee(queues: Iterable[LimitedQueue]) -> Resource:
    """Sum of all queues' guarantees."""
    total = Resource()
    for queue in queues:
        if queue.guarantee is not None:
            total.add(queue.guarantee)
    return total


def real_capability(queue: LimitedQueue, free: Resource) -> Resource:
    """What is free of guarantees, and one's own, cut to the capability; a capability without cpu or memory does not
    limit it.
    """
    real = free.clone().add(queue.guarantee or Resource())
    if queue.capability is not None:
        capability = queue.capability.clone()
        capability.milli_cpu = capability.milli_cpu if capability.milli_cpu > 0 else LARGEST
        capability.memory = capability.memory if capability.memory > 0 else LARGEST
        real.min_dimension_resource(capability, INFINITY)
    return real


@derived(QUEUE_LIMITS)
def limits_of(known: QueueLimits) -> QueueBounds:
    """The limits of the queues."""
    queues, total, dims = known.queues, known.total, known.dimensions
    free = exceeded_part(total, total_guarantee(queues))
    guarantees = [queue.guarantee or Resource() for queue in queues]
    reals = [real_capability(queue, free) for queue in queues]
    guaranteed = _named(guarantees, dims)
    named = guaranteed.copy()
    named[[dims.index(name) for name in total.scalars or ()]] = True
    return QueueBounds(
        weight=np.array([queue.weight for queue in queues], dtype=np.int64),
        guarantee=_columns(guarantees, dims, 0.0),
        real=_columns(reals, dims, np.inf),
        guaranteed=guaranteed,
        named=named,
        names_any=np.array([bool(total.scalars or guarantee.scalars) for guarantee in guarantees], dtype=np.bool_),
        total=_columns([total], dims, 0.0)[:, 0],
        guarantees=guarantees,
        reals=reals,
    )


def _named(resources: list[Resource], dims: Dimensions) -> npt.NDArray[np.bool_]:
    """The scalars that each names, and not with less than nothing."""
    named = np.zeros((len(dims), len(resources)), dtype=np.bool_)
    for row, resource in enumerate(resources):
        for name, amount in (resource.scalars or {}).items():
            named[dims.index(name), row] = amount >= 0
    return named


def _columns(resources: list[Resource], dims: Dimensions, absent: float) -> FloatArray:
    columns = np.full((len(dims), len(resources)), absent)
    for row, resource in enumerate(resources):
        for dimension, value in dims.items(resource):
            columns[dimension, row] = value
    return columns
