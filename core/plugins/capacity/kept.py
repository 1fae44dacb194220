"""Limits of all queues, kept from session to session until a queue or a node changes; as records, and as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from pumice.core.plugins.capacity.attributes import FixedAttributes
from pumice.core.plugins.capacity.tree import tree_limits
from pumice.core.resources import INFINITY, LARGEST, Resource, exceeded_part, higher
from pumice.core.state.columns import FloatArray
from pumice.core.state.derived import derived
from pumice.core.state.sources import QUEUE_LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.core.state.dimensions import Dimensions
    from pumice.core.state.sources import LimitedQueue, QueueLimits

# --- Limits of queues that stand side by side. Source: Volcano `capacity.buildQueueAttrs`.


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


# ---

BoolArray = npt.NDArray[np.bool_]


class Columns(NamedTuple):
    """`amounts` float64, `named` bool (scalars only), both [dimension, queue row]."""

    amounts: FloatArray
    named: BoolArray


class IdleLimits(NamedTuple):
    """What a queue shows while it has no job; `limited` bool [queue row]: it has a capability."""

    deserved: Columns
    capability: Columns
    real: Columns
    limited: BoolArray


@dataclass(slots=True, eq=False)
class KeptLimits:
    """`limits` by queue; None when the tree cannot be used, and then the columns are empty.

    `best_effort` bool [queue row]: deserves nothing. `idle`: None in a tree.
    """

    limits: dict[str, FixedAttributes] | None
    guarantee: Columns
    deserved: Columns
    capability: Columns
    real: Columns
    best_effort: BoolArray
    idle: IdleLimits | None


@derived(QUEUE_LIMITS)
def kept_limits(known: QueueLimits, hierarchical: bool) -> KeptLimits:
    """The limits of the queues."""
    queues, dims, shown = known.queues, known.dimensions, list["tuple[Resource, Resource, Resource]"]()
    if hierarchical:
        limits = tree_limits({queue.name: queue for queue in queues}, known.total)
    else:
        free = free_of_guarantees(known.total, queues)
        limits = {queue.name: flat_limits(queue, free) for queue in queues}
        shown = [idle_limits(queue, free) for queue in queues]
    rows = [] if limits is None else [limits[queue.name] for queue in queues]
    return KeptLimits(
        limits,
        guarantee=_columns([one.guarantee for one in rows], dims),
        deserved=_columns([one.deserved for one in rows], dims),
        capability=_columns([one.capability for one in rows], dims),
        real=_columns([one.real_capability for one in rows], dims),
        best_effort=np.array([one.deserved.is_empty() for one in rows], dtype=np.bool_),
        idle=None if hierarchical else _idle(queues, shown, dims),
    )


def _idle(
    queues: Sequence[LimitedQueue], shown: list[tuple[Resource, Resource, Resource]], dims: Dimensions
) -> IdleLimits:
    deserved, capability, real = (_columns([of_queue[i] for of_queue in shown], dims) for i in range(3))
    limited = np.array([queue.capability is not None for queue in queues], dtype=np.bool_)
    return IdleLimits(deserved, capability, real, limited)


def _columns(resources: Iterable[Resource], dims: Dimensions) -> Columns:
    items = [dims.items(resource) for resource in resources]
    amounts = np.zeros((len(dims), len(items)))
    named = np.zeros(amounts.shape, dtype=np.bool_)
    for row, of_queue in enumerate(items):
        for dimension, value in of_queue:
            amounts[dimension, row] = value
            named[dimension, row] = True
    return Columns(amounts, named)
