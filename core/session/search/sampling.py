"""How many feasible nodes are enough, and which are looked at.

Source: Volcano `CalculateNumOfFeasibleNodesToFind`, `PredicateNodes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pumice.core.session.carry import Carry

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Sampling:
    """Volcano's three options. `percentage` 0: adaptive, 50 less a point per 125 nodes; 100 looks at all."""

    percentage: int
    minimum_nodes: int
    minimum_percentage: int

    def applies(self, nodes: int) -> bool:
        """Whether a search among so many nodes may end early."""
        return self.enough(nodes) < nodes

    def enough(self, nodes: int) -> int:
        """How many feasible nodes end a search among so many."""
        if nodes <= self.minimum_nodes or self.percentage >= 100:
            return nodes
        percentage = self.percentage
        if percentage <= 0:
            percentage = max(50 - nodes // 125, self.minimum_percentage)
        return max(nodes * percentage // 100, self.minimum_nodes)


def look(
    sampling: Sampling, carry: Carry, arrival: npt.NDArray[np.intp], feasible: BoolArray
) -> tuple[BoolArray, BoolArray]:
    """Which feasible nodes are taken and which were looked at at all, starting where the last search ended.

    Looking stops at the first feasible node too many; that one counts as looked at and is not used.
    """
    count = len(arrival)
    enough = sampling.enough(count)
    order = np.roll(arrival, -(carry.start % count))
    found = np.cumsum(feasible[order])
    beyond = int(np.searchsorted(found, enough + 1))
    looked_at = min(beyond + 1, count)
    carry.start = (carry.start + looked_at) % count
    seen = np.zeros(count, dtype=np.bool_)
    seen[order[:looked_at]] = True
    taken = np.zeros(count, dtype=np.bool_)
    taken[order[:beyond]] = feasible[order[:beyond]]
    return taken, seen
