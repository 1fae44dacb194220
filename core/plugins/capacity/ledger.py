# SPDX-License-Identifier: Apache-2.0
"""The queues' attributes: limits kept between sessions, demand gathered for all queues together, Resources made on
first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.core.plugins.capacity.limits import CapacityAttributes, FixedAttributes, kept_limits, tree_problem
from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.demand import QueueDemand

if TYPE_CHECKING:
    from pumice.core.resources import Resource
    from pumice.core.session.session import Session
    from pumice.core.state.dimensions import FloatArray


class Ledger:
    """Attributes by queue. `ready`: the tree of queues can be used (a flat arrangement always can); `problem`: why it
    cannot.
    """

    def __init__(self, session: Session, *, hierarchical: bool) -> None:
        self.hierarchical = hierarchical
        self.begin(session)

    def begin(self, session: Session) -> None:
        """Gather the numbers of a session: rules that read this ledger go on with them."""
        hierarchical = self.hierarchical
        self.dims = session.dims
        self.names = [queue.name for queue in session.snapshot.queues]
        self._rows = {name: row for row, name in enumerate(self.names)}
        self._made: dict[str, CapacityAttributes] = {}
        self.kept = kept_limits(session, hierarchical)
        self.demand = QueueDemand(session.snapshot, session.jobs.by_queue)
        self.limits: dict[str, FixedAttributes] = self.kept.limits or {}
        self.ready = self.kept.limits is not None and self._jobs_in_leaves()
        self.problem = "" if self.ready else self._problem(session)
        # Before the shares: a parent's share counts what its children have.
        if hierarchical and self.ready:
            self._roll_up()
        self.shares = self._shares() if self.ready else np.zeros(0)

    def _jobs_in_leaves(self) -> bool:
        rows: list[int] = np.flatnonzero(self.demand.present).tolist()
        return not self.hierarchical or all(self.limits[self.names[row]].leaf for row in rows)

    @staticmethod
    def _problem(session: Session) -> str:
        parents = {queue.name: queue.parent for queue in session.snapshot.queues}
        return tree_problem(parents, [(job.key, job.pod_group.queue) for job in session.jobs.in_order])

    def _roll_up(self) -> None:
        """Add what each queue has to all its ancestors."""
        pairs = [(self._rows[n], self._rows[a]) for n, limits in self.limits.items() for a in limits.ancestors]
        if not pairs:
            return
        own, ancestor = np.array(pairs, dtype=np.intp).T
        demand = self.demand
        for columns in (demand.allocated, demand.request, demand.inqueue, demand.elastic):
            # The right side is whole before it is written, so each ancestor gets amounts of queues, not sums of sums.
            for dimension, line in enumerate(columns):
                columns[dimension] = line + np.bincount(ancestor, weights=line[own], minlength=len(line))

    def _shares(self) -> FloatArray:
        """Return the share of every queue as the session opens, by row (see share_of)."""
        # Below 0.1 nothing is deserved: such a dimension must not divide.
        due, parts = self.kept.deserved.amounts >= MIN_RESOURCE, np.zeros_like(self.demand.allocated)
        np.divide(self.demand.allocated, self.kept.deserved.amounts, out=parts, where=due)
        shares: FloatArray = np.where(self.kept.best_effort, 1.0, parts.max(axis=0, initial=0.0))
        return shares

    def present_shares(self) -> FloatArray:
        """Return the present share of every queue, by row."""
        shares = self.shares.copy()
        for name, attributes in self._made.items():
            shares[self._rows[name]] = attributes.share
        return shares

    def of(self, name: str) -> CapacityAttributes:
        """Return the attributes of a queue. Raises KeyError for an unknown queue."""
        found = self._made.get(name)
        return found if found is not None else self._make(name)

    def ancestors(self, attributes: CapacityAttributes) -> list[CapacityAttributes]:
        """Return the attributes of a queue's ancestors, from the root down."""
        return [self.of(name) for name in attributes.limits.ancestors]

    def line(self, name: str) -> list[CapacityAttributes]:
        """Return the queue itself, its parent, and so on up to the root."""
        own = self.of(name)
        return [own, *reversed(self.ancestors(own))]

    def _make(self, name: str) -> CapacityAttributes:
        row, demand, limits = self._rows[name], self.demand, self.limits[name]
        found = self._made[name] = CapacityAttributes(
            limits=limits,
            allocated=self._resource(demand.allocated, row),
            request=self._resource(demand.request, row),
            inqueue=self._resource(demand.inqueue, row),
            elastic=self._resource(demand.elastic, row),
            share=float(self.shares[row]),
        )
        return found

    def _resource(self, columns: FloatArray, row: int) -> Resource:
        values: list[float] = columns[:, row].tolist()
        return self.dims.resource(values)
