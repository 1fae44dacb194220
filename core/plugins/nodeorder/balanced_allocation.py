"""NodeResourcesBalancedAllocation over cpu, memory and nvidia.com/gpu.

Source: kube-scheduler `noderesources/balanced_allocation.go`.
"""

from __future__ import annotations

from itertools import combinations
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from core.kube.allocatable import capacity
from core.kube.requests import scored_request
from core.plugins.nodeorder.shares import NAMES, Taken, taken_of
from core.session.points.nodes import TEMPLATE_ONLY, Volatility
from core.state.derived import derived
from core.state.sources import NODES

if TYPE_CHECKING:
    from core.kube.rows import BoolArray, NodeRows
    from core.objects.pod import Task
    from core.session.points.nodes import FloatArray, Rows
    from core.session.session import Session
    from core.state.sources import NodeSpecs

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


class ResourcePairs(NamedTuple):
    """Which nodes have which of the resources that count: `pairs`, the nodes with just the resources i and j, where
    there are any, and `three`, those with all three, else None; masks [N].
    """

    pairs: list[tuple[int, int, BoolArray]]
    three: BoolArray | None


def presence_of(nodes: NodeRows, taken: list[Taken]) -> ResourcePairs | None:
    """Of cpu and memory, or of these and the gpu: None where every node has just cpu and memory to count."""
    if len(taken) == 2 and taken[0].everywhere and taken[1].everywhere:
        return None
    return _presence(nodes, len(taken))


@derived(NODES)
def _presence(nodes: NodeSpecs, length: int) -> ResourcePairs:
    """Of so many of cpu, memory and the gpu."""
    present = [capacity(nodes, name).present for name in (*NAMES, GPU)[:length]]
    count = np.sum(present, axis=0)
    both = [(i, j, present[i] & present[j] & (count == 2)) for i, j in combinations(range(len(present)), 2)]
    three = count == 3
    return ResourcePairs([pair for pair in both if pair[2].any()], three if three.any() else None)


class BalancedAllocationScore:
    """weight * int(100 * (1 - imbalance)) over the resources a node has.

    The gpu only counts when the pod asks for it.
    """

    volatility = Volatility.ROW
    normalised = False
    constant: float | None = None

    def __init__(self, taken: list[Taken], own: list[float], weight: float, presence: ResourcePairs | None) -> None:
        self._taken, self._own, self._weight, self._presence = taken, own, weight, presence

    def score(self, rows: Rows) -> FloatArray:
        """Weighted score per row."""
        balance = self._of_two(rows) if self._presence is None else self._of_present(rows, self._presence)
        np.floor(balance, out=balance)
        return balance if self._weight == 1.0 else np.multiply(balance, self._weight, out=balance)

    def _of_two(self, rows: Rows) -> FloatArray:
        """100 * (1 - distance / 2), as 50 * (2 - distance): twice and half are exact, so both round alike."""
        (cpu, memory), (own_cpu, own_memory) = self._taken, self._own
        distance = cpu.fraction(own_cpu, rows)
        np.subtract(distance, memory.fraction(own_memory, rows, memory.spare(rows)), out=distance)
        np.subtract(2.0, np.abs(distance, out=distance), out=distance)
        return np.multiply(distance, 50.0, out=distance)

    def _of_present(self, rows: Rows, presence: ResourcePairs) -> FloatArray:
        """`imbalance` over the resources that are present, row by row."""
        fractions = [taken.fraction(own, rows) for taken, own in zip(self._taken, self._own, strict=True)]
        deviation: FloatArray = np.zeros(len(fractions[0]))
        for i, j, nodes in presence.pairs:
            np.copyto(deviation, np.abs((fractions[i] - fractions[j]) / 2), where=nodes[rows])
        if presence.three is not None:
            mean = (fractions[0] + fractions[1] + fractions[2]) / 3
            squares = [(fraction - mean) * (fraction - mean) for fraction in fractions]
            np.copyto(deviation, np.sqrt((squares[0] + squares[1] + squares[2]) / 3), where=presence.three[rows])
        np.subtract(1.0, deviation, out=deviation)
        return np.multiply(deviation, 100.0, out=deviation)

    def score_one(self, row: int) -> float:
        """Score of one row, bit for bit what `score` says of it."""
        if self._presence is None:
            (cpu, memory), (own_cpu, own_memory) = self._taken, self._own
            first = (cpu.taken_at[row] + own_cpu) / cpu.amount_at[row]
            second = (memory.taken_at[row] + own_memory) / memory.amount_at[row]
            distance = (first if first < 1.0 else 1.0) - (second if second < 1.0 else 1.0)
            return float((1.0 - abs(distance / 2)) * 100.0 // 1.0) * self._weight
        found = [taken.fraction_one(own, row) for taken, own in zip(self._taken, self._own, strict=True)]
        return float((1.0 - imbalance([f for f in found if f is not None])) * 100.0 // 1.0) * self._weight

    def finish(self, raw: FloatArray) -> FloatArray:
        """Not normalised."""
        return raw


class BalancedAllocation:
    """Prefers nodes whose resources are taken evenly. A pod that asks for none of them is not scored (Skip)."""

    name = "NodeResourcesBalancedAllocation"
    reads = TEMPLATE_ONLY

    def __init__(self, session: Session, weight: int) -> None:
        self._weight = float(weight)
        self._taken = list(taken_of(session, session.kube.requested))
        self._presence = presence_of(session.nodes, self._taken)

    def prepare(self, session: Session, task: Task) -> BalancedAllocationScore | None:
        """For the task's template; None when it asks for nothing."""
        template = task.template
        request = scored_request(template)
        gpu = (request.scalars or {}).get(GPU, 0.0)
        own = [request.milli_cpu, request.memory]
        if not gpu:
            return BalancedAllocationScore(self._taken, own, self._weight, self._presence) if any(own) else None
        dimension = next((d for d, _ in template.items if session.dims.names[d] == GPU), -1)
        gpus = capacity(session.nodes, GPU)
        column = session.kube.requested[dimension] if dimension >= 0 else np.zeros_like(gpus.amount)
        taken = [*self._taken, Taken(gpus, column, session.searches.scratch)]
        return BalancedAllocationScore(taken, [*own, gpu], self._weight, presence_of(session.nodes, taken))
