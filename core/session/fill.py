"""How full a node would be with a task, weighted over resources. Source: `ResourceBinPackingScore` (Volcano
`plugins/binpack`) and `mostRequestedScore`, `leastRequestedScore` (`plugins/resource-strategy-fit`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from core.session.points.nodes import Volatility
from core.state.derived import derived
from core.state.sources import ALLOCATABLE

if TYPE_CHECKING:
    from core.session.points.nodes import FloatArray, Rows
    from core.session.session import Session
    from core.state.sources import Allocatable

BoolArray = npt.NDArray[np.bool_]
FULL = 100.0  # kube-scheduler's MaxNodeScore


class FillTerm(NamedTuple):
    """One resource that counts: `dimension` of the columns, the task's `request`, `weight` (not 0), and whether what
    stays free counts instead of what is taken.
    """

    dimension: int
    request: float
    weight: float
    free: bool = False


@derived(ALLOCATABLE)
def capacity_of(nodes: Allocatable, dimension: int) -> FloatArray:
    """Allocatable of one dimension [N], infinity for 0: a share of nothing is 0, and nothing is too much for it."""
    amount = nodes.amounts[dimension]
    return np.where(amount == 0.0, np.inf, amount)


class FillScore:
    """(sum of weight * share over the terms) / `weights` * `factor`; 0 where one term does not fit on the node.

    A term's share is (used + request) / allocatable, or (allocatable - used - request) / allocatable; 0 where nothing
    is allocatable. `used` holds what is being released, not what is promised. `extra` float64 [N] is added at the end.
    `weights` of 0 or less do not divide.
    """

    volatility = Volatility.ROW
    normalised = False
    constant: float | None = None

    def __init__(
        self, session: Session, terms: list[FillTerm], weights: float, factor: float, extra: FloatArray | None = None
    ) -> None:
        nodes = session.nodes
        self._terms = [(term, nodes.used[term.dimension], capacity_of(nodes, term.dimension)) for term in terms]
        at = ((term, nodes.used_at[term.dimension], capacity.data) for term, _, capacity in self._terms)
        self._terms_at = [(used, capacity, *term[1:]) for term, used, capacity in at]
        self._weights, self._factor, self._extra = weights, factor, extra
        self._count = nodes.count
        self._kept: tuple[FloatArray, BoolArray] | None = None

    def score(self, rows: Rows) -> FloatArray:
        """float64 [len(rows)], a new array."""
        count = self._count if isinstance(rows, slice) else len(rows)
        total: FloatArray = np.zeros(count)
        full = np.zeros(count, dtype=np.bool_)
        taken, over = self._scratch(count)
        for term, used, capacity in self._terms:
            room = capacity[rows]
            np.add(used[rows], term.request, out=taken)
            np.logical_or(full, np.greater(taken, room, out=over), out=full)
            if term.free:
                np.subtract(room, taken, out=taken, where=np.isfinite(room, out=over))
            if term.weight != 1.0:
                np.multiply(taken, term.weight, out=taken)
            np.add(total, np.divide(taken, room, out=taken), out=total)
        if self._weights > 0.0:
            np.divide(total, self._weights, out=total)
        np.multiply(total, self._factor, out=total)
        total[full] = 0.0
        return total if self._extra is None else np.add(total, self._extra[rows], out=total)

    def _scratch(self, count: int) -> tuple[FloatArray, BoolArray]:
        """Room to work in, kept while the number of rows stays the same: fresh pages cost more than the sums."""
        if self._kept is None or len(self._kept[0]) != count:
            self._kept = np.empty(count), np.empty(count, dtype=np.bool_)
        return self._kept

    def score_one(self, row: int) -> float:
        """Score of one row, bit for bit what `score` says of it."""
        extra = 0.0 if self._extra is None else float(self._extra[row])
        total = 0.0
        for used, capacity, request, weight, free in self._terms_at:
            room = capacity[row]
            taken = request + used[row]
            if taken > room:
                return extra
            if room != np.inf:
                total += ((room - taken) if free else taken) * weight / room
        if self._weights > 0.0:
            total /= self._weights
        return total * self._factor + extra

    def finish(self, raw: FloatArray) -> FloatArray:
        """Not normalised."""
        return raw
