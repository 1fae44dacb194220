"""NodeResourcesBalancedAllocation over cpu, memory and nvidia.com/gpu.

Source: kube-scheduler `noderesources/balanced_allocation.go`.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from core.kube.allocatable import capacity
from core.kube.requests import scored_request
from core.plugins.nodeorder.shares import NAMES, Taken
from core.session.node_points import Volatility

if TYPE_CHECKING:
    from core.objects.pod import Task
    from core.session.node_points import FloatArray, Rows
    from core.session.session import Session

GPU = "nvidia.com/gpu"


def imbalance(fractions: list[float]) -> float:
    """Standard deviation of the fractions taken; 0 for fewer than two."""
    if len(fractions) == 2:
        return abs((fractions[0] - fractions[1]) / 2)
    if len(fractions) < 3:
        return 0.0
    total = squares = (
        0.0  # added one by one: the built-in sum compensates for rounding from Python 3.12 on, Go does not
    )
    for fraction in fractions:
        total += fraction
    mean = total / len(fractions)
    for fraction in fractions:
        squares += (fraction - mean) * (fraction - mean)
    return sqrt(squares / len(fractions))


class BalancedAllocationScore:
    """weight * int(100 * (1 - imbalance)) over the resources a node has.

    The gpu only counts when the pod asks for it.
    """

    volatility = Volatility.ROW
    normalised = False
    constant: float | None = None

    def __init__(self, taken: list[Taken], own: list[float], weight: float) -> None:
        self._taken, self._own, self._weight = taken, own, weight
        self._plain = len(taken) == 2 and taken[0].everywhere and taken[1].everywhere

    def score(self, rows: Rows) -> FloatArray:
        """Weighted score per row."""
        fractions = [taken.fraction(own, rows) for taken, own in zip(self._taken, self._own, strict=True)]
        deviation = np.subtract(fractions[0], fractions[1], out=fractions[0]) if self._plain else None
        if deviation is None:
            deviation = self._deviation(fractions, [taken.capacity.present[rows] for taken in self._taken])
        else:
            np.multiply(np.abs(deviation, out=deviation), 0.5, out=deviation)
        np.subtract(1.0, deviation, out=deviation)
        np.multiply(deviation, 100.0, out=deviation)
        np.floor(deviation, out=deviation)
        return deviation if self._weight == 1.0 else np.multiply(deviation, self._weight, out=deviation)

    @staticmethod
    def _deviation(
        fractions: list[FloatArray], present: list[np.ndarray[tuple[int, ...], np.dtype[np.bool_]]]
    ) -> FloatArray:
        """`imbalance` over the resources that are present, row by row."""
        count = np.sum(present, axis=0)
        deviation: FloatArray = np.zeros(len(count))
        for i, first in enumerate(fractions):
            for j in range(i + 1, len(fractions)):
                pair = present[i] & present[j] & (count == 2)
                np.copyto(deviation, np.abs((first - fractions[j]) / 2), where=pair)
        if len(fractions) == 3:
            mean = (fractions[0] + fractions[1] + fractions[2]) / 3
            squares = [(fraction - mean) * (fraction - mean) for fraction in fractions]
            np.copyto(deviation, np.sqrt((squares[0] + squares[1] + squares[2]) / 3), where=count == 3)
        return deviation

    def score_one(self, row: int) -> float:
        """The same for one row."""
        if self._plain:
            (cpu, memory), (own_cpu, own_memory) = self._taken, self._own
            first = min((cpu.taken_at[row] + own_cpu) / cpu.amount_at[row], 1.0)
            second = min((memory.taken_at[row] + own_memory) / memory.amount_at[row], 1.0)
            return float((1.0 - abs((first - second) / 2)) * 100.0 // 1.0) * self._weight
        found = (taken.fraction_one(own, row) for taken, own in zip(self._taken, self._own, strict=True))
        return float((1.0 - imbalance([f for f in found if f is not None])) * 100.0 // 1.0) * self._weight

    def finish(self, raw: FloatArray) -> FloatArray:
        """Not normalised."""
        return raw


class BalancedAllocation:
    """Prefers nodes whose resources are taken evenly. A pod that asks for none of them is not scored (Skip)."""

    name = "NodeResourcesBalancedAllocation"
    reads_labels = False

    def __init__(self, session: Session, weight: int) -> None:
        self._weight = float(weight)
        self._taken = [Taken(capacity(session.nodes, name), session.kube.requested[i]) for i, name in enumerate(NAMES)]

    def prepare(self, session: Session, task: Task) -> BalancedAllocationScore | None:
        """For the task's template; None when it asks for nothing."""
        template = task.template
        request = scored_request(template)
        gpu = (request.scalars or {}).get(GPU, 0.0)
        own = [request.milli_cpu, request.memory]
        if not gpu:
            return BalancedAllocationScore(self._taken, own, self._weight) if any(own) else None
        dimension = next((d for d, _ in template.items if session.dims.names[d] == GPU), -1)
        gpus = capacity(session.nodes, GPU)
        column = session.kube.requested[dimension] if dimension >= 0 else np.zeros_like(gpus.amount)
        return BalancedAllocationScore([*self._taken, Taken(gpus, column)], [*own, gpu], self._weight)
