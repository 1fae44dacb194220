"""What each domain has and uses, as columns over domains.

Only `used` follows the session; idle stays as it was at opening (fix topology-idle-follows: it does not).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.core.resources import MIN_RESOURCE
from pumice.core.state.dimensions import floats

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session
    from pumice.core.state.columns import FloatArray
    from pumice.core.state.hypernodes import RowArray


class DomainOccupancy:
    """Float64 [dimension, domain]: `allocatable`, `used`, `idle`, `future`. `index`: domain name -> column;
    `above[row]`: columns of the domains that hold a node.
    """

    def __init__(self, session: Session) -> None:
        nodes, domains = session.nodes, session.topology.tree.domains
        self.index = {name: i for i, name in enumerate(domains)}
        self.above: list[list[int]] = [[] for _ in range(nodes.count)]
        shape = (nodes.idle.shape[0], len(domains))
        self.allocatable, self.used = np.zeros(shape), np.zeros(shape)
        self.idle, self.future = np.zeros(shape), np.zeros(shape)
        pairs = (
            (self.allocatable, nodes.allocatable),
            (self.used, nodes.used),
            (self.idle, nodes.idle),
            (self.future, nodes.future),
        )
        for name, domain in domains.items():
            column = self.index[name]
            rows: list[int] = domain.rows.tolist()
            for row in rows:
                self.above[row].append(column)
            for total, of_nodes in pairs:
                # whole numbers of milli-units and bytes: exact in any order of summation
                total[:, column] = of_nodes[:, domain.rows].sum(axis=1)
        self._used_at = [floats(line) for line in self.used]
        follows = "topology-idle-follows" in session.config.pumice.fix
        self._followed = [(self.idle, nodes.idle), (self.future, nodes.future)] if follows else []
        self._seen = [of_nodes.copy() for _, of_nodes in self._followed]

    def on_allocate(self, task: Task, node: int) -> None:
        """A task was put on a node."""
        self._change(task, node, 1.0)

    def on_deallocate(self, task: Task, node: int) -> None:
        """A task was taken off."""
        self._change(task, node, -1.0)

    def _change(self, task: Task, node: int, sign: float) -> None:
        if node < 0:
            return
        for dimension, value in task.template.items:
            line = self._used_at[dimension]
            for column in self.above[node]:
                line[column] += sign * value
        for (total, of_nodes), seen in zip(self._followed, self._seen, strict=True):
            total[:, self.above[node]] += (of_nodes[:, node] - seen[:, node])[:, None]
            seen[:, node] = of_nodes[:, node]

    def packed(self, wanted: dict[int, float], weights: dict[int, int], columns: RowArray) -> FloatArray:
        """Weighted mean of (used + wanted) / allocatable per domain; 0 where it overflows in one dimension or no
        weight is left.

        `wanted`: dimension -> request, in the order in which Volcano adds the terms up.
        """
        total = np.zeros(len(columns))
        overflows = np.zeros(len(columns), dtype=np.bool_)
        weight_sum = 0
        with np.errstate(divide="ignore", invalid="ignore"):
            for dimension, request in wanted.items():
                future = self.used[dimension, columns] + request
                allocatable = self.allocatable[dimension, columns]
                overflows |= future > allocatable
                total += weights[dimension] * (future / allocatable)
                weight_sum += weights[dimension]
            if weight_sum <= 0:
                return np.zeros(len(columns))
            return np.where(overflows, 0.0, total / weight_sum)

    def fits(self, request: tuple[tuple[int, float], ...], columns: FloatArray, column: int) -> bool:
        """Request <= what the domain has, tolerant."""
        return all(value - columns[dimension, column] < MIN_RESOURCE for dimension, value in request)
