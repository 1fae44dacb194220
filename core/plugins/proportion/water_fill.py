"""Deserved: the cluster poured into the queues by weight, no queue above its request or its capability, none below its
guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pumice.core.resources.amounts import MIN_RESOURCE
from pumice.core.state.dimensions import PODS

if TYPE_CHECKING:
    from pumice.core.state.columns import FloatArray


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
    remaining, deserved = basin.total.tolist(), np.zeros(basin.request.shape)
    ceiling, weight, first = np.minimum(basin.real, basin.request), basin.weight, True
    gives_back = min(weight.tolist(), default=0) < 0 or np.minimum.reduce(basin.guarantee, axis=None, initial=0.0) < 0.0
    while shares := sum(weight.tolist()):
        raised = deserved + np.multiply.outer(remaining, weight / shares)
        np.minimum(raised, ceiling, out=raised)
        np.maximum(raised, basin.guarantee, out=raised)
        growth = raised - deserved
        left = _left(remaining, growth, gives_back=gives_back)
        grew = np.logical_or.reduce(growth)
        if first:
            grew |= basin.names_scalars
        wants = np.logical_or.reduce(basin.request - raised >= MIN_RESOURCE)
        weight = weight * (grew & wants)  # without a weight a queue keeps what it has
        same = left == remaining and not (first and basin.has_zero_scalar)
        remaining, deserved, first = left, raised, False
        if same or _is_empty(remaining):
            break
    return deserved, not first


def _left(remaining: list[float], growth: FloatArray, *, gives_back: bool) -> list[float]:
    """What remains: first what queues gave back is added, then what they took is taken off (ExceededPart).

    `gives_back`: whether a weight or a guarantee is below 0; with others what a queue has never shrinks.
    """
    if not gives_back:
        taken = _totals(growth)
        return [max(had - took, 0.0) for had, took in zip(remaining, taken, strict=True)]
    taken, returned = _totals(np.maximum(growth, 0.0)), _totals(np.minimum(growth, 0.0))
    return [max(had - gave - took, 0.0) for had, gave, took in zip(remaining, returned, taken, strict=True)]


def _totals(amounts: FloatArray) -> list[float]:
    """The sum of each line, added in queue order."""
    totals: list[float] = np.add.accumulate(amounts, axis=1)[:, -1].tolist()
    return totals


def _is_empty(amounts: list[float]) -> bool:
    return max(amounts[:PODS]) < MIN_RESOURCE and max(amounts[PODS + 1 :], default=0.0) < MIN_RESOURCE
