"""Limits of all queues, kept from session to session until a queue or a node changes; as records, and as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from core.plugins.capacity.flat import flat_limits, free_of_guarantees, idle_gauges
from core.plugins.capacity.tree import tree_limits
from core.state.columns import FloatArray

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.plugins.capacity.attributes import Limits
    from core.resources import Resource
    from core.session.session import Session
    from core.state.dimensions import Dimensions

MEMO: Final = "capacity"
BoolArray = npt.NDArray[np.bool_]


class Columns(NamedTuple):
    """`amounts` float64, `named` bool (scalars only), both [dimension, queue row]."""

    amounts: FloatArray
    named: BoolArray


@dataclass(slots=True, eq=False)
class KeptLimits:
    """`limits` by queue; None when the tree cannot be used, and then the columns are empty.

    `best_effort` bool [queue row]: deserves nothing. `idle`: the gauges of a queue without jobs, by row (flat queues
    only).
    """

    limits: dict[str, Limits] | None
    deserved: Columns
    capability: Columns
    real: Columns
    best_effort: BoolArray
    idle: list[dict[str, float]]


def kept_limits(session: Session, *, hierarchical: bool) -> KeptLimits:
    """The limits of the session's queues, made anew only when something has changed."""
    queues, memo = session.snapshot.queues, session.nodes.memo
    known = memo.get(MEMO)
    if known is None or known[0] != queues or known[1] != (hierarchical, len(session.dims)):
        made = _make(session, hierarchical=hierarchical)
        known = memo[MEMO] = (queues, (hierarchical, len(session.dims)), made)
    kept: KeptLimits = known[2]
    return kept


def _make(session: Session, *, hierarchical: bool) -> KeptLimits:
    queues, idle = session.snapshot.queues, list[dict[str, float]]()
    if hierarchical:
        limits = tree_limits(session.queues, session.total)
    else:
        free = free_of_guarantees(session.total, queues)
        limits = {queue.name: flat_limits(queue, free) for queue in queues}
        idle = [idle_gauges(queue, free) for queue in queues]
    rows = [] if limits is None else [limits[queue.name] for queue in queues]
    for resource in (amount for one in rows for amount in (one.deserved, one.capability, one.real_capability)):
        session.dims.items(resource)  # a queue may be the first to name a scalar
    return KeptLimits(
        limits,
        deserved=_columns([one.deserved for one in rows], session.dims),
        capability=_columns([one.capability for one in rows], session.dims),
        real=_columns([one.real_capability for one in rows], session.dims),
        best_effort=np.array([one.deserved.is_empty() for one in rows], dtype=np.bool_),
        idle=idle,
    )


def _columns(resources: Iterable[Resource], dims: Dimensions) -> Columns:
    items = [dims.items(resource) for resource in resources]
    amounts = np.zeros((len(dims), len(items)))
    named = np.zeros(amounts.shape, dtype=np.bool_)
    for row, of_queue in enumerate(items):
        for dimension, value in of_queue:
            amounts[dimension, row] = value
            named[dimension, row] = True
    return Columns(amounts, named)
