"""One resource as kube-scheduler's resource scorers see it.

What is taken on a node, with this pod, of what it can allocate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from core.kube.allocatable import capacity
from core.kube.requests import scored_nonzero

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.kube.allocatable import AllocatableColumn
    from core.objects.pod_template import PodTemplate
    from core.session.points.nodes import FloatArray, Rows
    from core.session.session import Session

CPU, MEMORY = 0, 1
NAMES = ("cpu", "memory")
FIX = "scores-count-pod-level"


class Taken:
    """A column of taken amounts over node rows beside the nodes' capacity, both with memoryviews for one row."""

    __slots__ = ("amount", "amount_at", "capacity", "everywhere", "scratch", "taken", "taken_at")

    def __init__(self, capacity: AllocatableColumn, taken: FloatArray, scratch: FloatArray) -> None:
        self.capacity, self.everywhere = capacity, capacity.everywhere
        self.taken, self.taken_at = taken, taken.data
        self.amount, self.amount_at = capacity.amount, capacity.amount_at
        self.scratch = scratch

    def spare(self, rows: Rows) -> FloatArray:
        """Memory for what is thrown away at once [len(rows)]: fresh memory costs more than the arithmetic on it."""
        return self.scratch[: len(rows)] if isinstance(rows, np.ndarray) else self.scratch[rows]

    def percent_left(self, own: float, rows: Rows, out: FloatArray | None = None) -> FloatArray:
        """floor(100 * (allocatable - taken - own) / allocatable), at least 0; 0 where nothing is allocatable. `out`
        or a new array [len(rows)].

        Go's integer division, exactly: whole numbers below 2**46 (64 TiB) whose float quotient is at most 100 never
        round up to a whole one.
        """
        left: FloatArray = np.subtract(self.amount[rows], self.taken[rows], out=out)
        np.subtract(left, own, out=left)
        return self._percent(np.maximum(left, 0.0, out=left), rows)

    def percent_left_one(self, own: float, row: int) -> float:
        """What is left of one row, per cent: what `percent_left` says of it."""
        amount = self.amount_at[row]
        left = amount - self.taken_at[row] - own
        return float(left * 100.0 / amount // 1.0) if left > 0.0 and amount else 0.0

    def percent_taken(self, own: float, rows: Rows, out: FloatArray | None = None) -> FloatArray:
        """floor(100 * (taken + own) / allocatable), at most 100; 0 where nothing is allocatable.

        `out` or a new array [len(rows)].
        """
        taken: FloatArray = np.add(self.taken[rows], own, out=out)
        return self._percent(np.minimum(taken, self.amount[rows], out=taken), rows)

    def percent_taken_one(self, own: float, row: int) -> float:
        """What is taken of one row, per cent: what `percent_taken` says of it."""
        amount = self.amount_at[row]
        return float(min(self.taken_at[row] + own, amount) * 100.0 / amount // 1.0) if amount else 0.0

    def _percent(self, part: FloatArray, rows: Rows) -> FloatArray:
        np.multiply(part, 100.0, out=part)
        np.divide(part, self.capacity.divisor[rows], out=part)
        return np.floor(part, out=part)

    def fraction(self, own: float, rows: Rows, out: FloatArray | None = None) -> FloatArray:
        """(taken + own) / allocatable, at most 1; 0 where nothing is allocatable. `out` or a new array [len(rows)]."""
        part: FloatArray = np.add(self.taken[rows], own, out=out)
        np.divide(part, self.capacity.divisor[rows], out=part)
        return np.minimum(part, 1.0, out=part)

    def fraction_one(self, own: float, row: int) -> float | None:
        """What is taken of one row, at most 1; None where nothing is allocatable."""
        amount = self.amount_at[row]
        return min((self.taken_at[row] + own) / amount, 1.0) if amount else None


def nonzero_taken(session: Session) -> tuple[Taken, Taken]:
    """cpu and memory of the pods on each node, with kube-scheduler's defaults for containers that ask for nothing."""
    return taken_of(session, session.kube.nonzero)


def taken_of(session: Session, columns: FloatArray) -> tuple[Taken, Taken]:
    """Shares of other columns, the first being cpu and the second memory. [2 or more, N]."""
    scratch = session.searches.scratch
    cpu, memory = (Taken(capacity(session.nodes, name), columns[i], scratch) for i, name in enumerate(NAMES))
    return cpu, memory


def nonzero_own(session: Session) -> Callable[[PodTemplate], tuple[float, float]]:
    """What a pod itself asks for: (milli-cores, bytes) by its containers.

    Volcano builds the scorers with pod-level resources off (fix scores-count-pod-level: on).
    """
    return _with_pod_level if FIX in session.config.pumice.fix else scored_nonzero


def _with_pod_level(template: PodTemplate) -> tuple[float, float]:
    return template.nonzero_cpu, template.nonzero_memory
