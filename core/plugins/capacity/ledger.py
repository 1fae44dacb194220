"""The queues' attributes: limits kept between sessions, demand gathered for all queues at once, Resources made when
asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from core.plugins.capacity.attributes import Limits, QueueAttributes, share_of
from core.plugins.capacity.flat import flat_limits, free_of_guarantees
from core.plugins.capacity.tree import tree_limits
from core.session.demand import queue_demand

if TYPE_CHECKING:
    from core.resources import Resource
    from core.session.session import Session
    from core.state.columns import FloatArray

MEMO: Final = "capacity"


class Ledger:
    """Attributes by queue. `ready`: the tree of queues can be used (a flat arrangement always can)."""

    def __init__(self, session: Session, *, hierarchical: bool) -> None:
        self._dims, self._queues = session.dims, session.snapshot.queues
        self._rows = {queue.name: row for row, queue in enumerate(self._queues)}
        self._made: dict[str, QueueAttributes] = {}
        self.hierarchical = hierarchical
        self.demand = queue_demand(session)
        limits = _kept_limits(session, hierarchical=hierarchical)
        self.limits: dict[str, Limits] = limits or {}
        self.ready = limits is not None and self._jobs_in_leaves()
        if hierarchical and self.ready:
            self._roll_up()

    def _jobs_in_leaves(self) -> bool:
        rows: list[int] = np.flatnonzero(self.demand.present).tolist()
        return not self.hierarchical or all(self.limits[self._queues[row].name].leaf for row in rows)

    def _roll_up(self) -> None:
        """Add what each queue has to all its ancestors."""
        pairs = [(self._rows[n], self._rows[a]) for n, limits in self.limits.items() for a in limits.ancestors]
        if not pairs:
            return
        own, ancestor = np.array(pairs, dtype=np.intp).T
        demand = self.demand
        for columns in (demand.allocated, demand.request, demand.inqueue, demand.elastic):
            for dimension, line in enumerate(columns):
                columns[dimension] = line + np.bincount(ancestor, weights=line[own], minlength=len(line))

    def has_jobs(self, name: str) -> bool:
        """Whether a job of the session lives in the queue itself."""
        return bool(self.demand.present[self._rows[name]])

    def of(self, name: str) -> QueueAttributes:
        """The attributes of a queue; KeyError when it is unknown."""
        found = self._made.get(name)
        return found if found is not None else self._make(name)

    def ancestors(self, attributes: QueueAttributes) -> list[QueueAttributes]:
        """The attributes of a queue's ancestors, from the root down."""
        return [self.of(name) for name in attributes.limits.ancestors]

    def line(self, name: str) -> list[QueueAttributes]:
        """The queue itself, its parent, and so on up to the root."""
        own = self.of(name)
        return [own, *reversed(self.ancestors(own))]

    def _make(self, name: str) -> QueueAttributes:
        row, demand, limits = self._rows[name], self.demand, self.limits[name]
        allocated = self._resource(demand.allocated, row)
        found = self._made[name] = QueueAttributes(
            limits=limits,
            allocated=allocated,
            request=self._resource(demand.request, row),
            inqueue=self._resource(demand.inqueue, row),
            elastic=self._resource(demand.elastic, row),
            share=share_of(allocated, limits.deserved),
        )
        return found

    def _resource(self, columns: FloatArray, row: int) -> Resource:
        values: list[float] = columns[:, row].tolist()
        return self._dims.resource(values)


def _kept_limits(session: Session, *, hierarchical: bool) -> dict[str, Limits] | None:
    """Limits of all queues, made anew only when a queue or a node has changed; None when the tree cannot be used."""
    queues, memo = session.snapshot.queues, session.nodes.memo
    known = memo.get(MEMO)
    if known is None or known[0] != queues or known[1] != hierarchical:
        known = memo[MEMO] = (queues, hierarchical, _limits(session, hierarchical=hierarchical))
    limits: dict[str, Limits] | None = known[2]
    return limits


def _limits(session: Session, *, hierarchical: bool) -> dict[str, Limits] | None:
    if hierarchical:
        return tree_limits(session.queues, session.total)
    free = free_of_guarantees(session.total, session.snapshot.queues)
    return {queue.name: flat_limits(queue, free) for queue in session.snapshot.queues}
