"""Deserved: the cluster poured into the queues by weight, no queue above its request or its capability, none below its
guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from core.resources.amounts import MIN_RESOURCE
from core.state.dimensions import CPU, MEMORY, PODS

if TYPE_CHECKING:
    from core.state.columns import FloatArray


@dataclass(slots=True, eq=False)
class Basin:
    """What is poured, and into what: float64 [dimension] and [dimension, queue]; `weight` int64 [queue].

    `names_scalars`, bool [queue]: the cluster or the queue's guarantee names a scalar, so that the first pass changes
    what a queue names. `has_zero_scalar`: the cluster names a scalar of which it has none.
    """

    total: FloatArray
    weight: Any
    request: FloatArray
    real: FloatArray
    guarantee: FloatArray
    names_scalars: Any
    has_zero_scalar: bool = False


def fill(basin: Basin) -> tuple[FloatArray, bool]:
    """(deserved, float64 [dimension, queue]; whether anything was poured at all).

    A pass reads what remained at its start, so the order of queues has no say but in the last bit of a sum: sums run in
    queue order. Source: Volcano's proportion, with Resources per queue; here every step is done for all queues at once,
    with the same operations.
    """
    remaining, deserved = basin.total.copy(), np.zeros_like(basin.request)
    unmet = np.ones(len(basin.weight), dtype=np.bool_)
    first = True
    while weight := int(basin.weight[unmet].sum()):
        raised = deserved + remaining[:, None] * (basin.weight / weight)
        np.minimum(raised, basin.real, out=raised)
        np.minimum(raised, basin.request, out=raised)
        np.maximum(raised, basin.guarantee, out=raised)
        raised[:, ~unmet] = deserved[:, ~unmet]
        changed = (raised != deserved).any(axis=0) | (first & basin.names_scalars)
        satisfied = (basin.request - raised < MIN_RESOURCE).all(axis=0)
        unmet &= ~satisfied & changed
        left = _left(remaining, raised - deserved)
        same = bool((left == remaining).all()) and not (first and basin.has_zero_scalar)
        remaining, deserved, first = left, raised, False
        if same or _is_empty(remaining):
            break
    return deserved, not first


def _left(remaining: FloatArray, growth: FloatArray) -> FloatArray:
    """What remains: first what queues gave back is added, then what they took is taken off (ExceededPart)."""
    taken = np.add.accumulate(np.maximum(growth, 0.0), axis=1)[:, -1]
    returned = np.add.accumulate(np.maximum(-growth, 0.0), axis=1)[:, -1]
    before = remaining + returned
    return np.where(before > taken, before - taken, 0.0)


def _is_empty(amounts: FloatArray) -> bool:
    few = amounts < MIN_RESOURCE
    few[PODS] = True
    return bool(few[CPU] and few[MEMORY] and few.all())
