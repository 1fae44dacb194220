"""NodeResourcesFit with the strategies LeastAllocated and MostAllocated over cpu and memory.

Source: kube-scheduler `noderesources/least_allocated.go`, `most_allocated.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from core.kube.allocatable import capacity
from core.plugins.nodeorder.shares import NAMES, nonzero_own, nonzero_taken
from core.session.points.columns import ColumnScore
from core.session.points.nodes import TEMPLATE_ONLY
from core.state.derived import derived
from core.state.scalars import CellColumn, cells_of
from core.state.sources import NODES

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.objects.pod import Task
    from core.plugins.nodeorder.shares import Taken
    from core.session.points.columns import At, RowReader, V
    from core.session.session import Session
    from core.state.sources import NodeSpecs

LEAST, MOST = "LeastAllocated", "MostAllocated"


@derived(NODES)
def counted(nodes: NodeSpecs) -> CellColumn:
    """How many of cpu and memory a node has, 1 for none."""
    present = [capacity(nodes, name).present.astype(np.float64) for name in NAMES]
    return cells_of(np.maximum(present[0] + present[1], 1.0))


class MeanPercent(NamedTuple):
    """weight * floor(mean of the percentages that are left or taken), over those of cpu and memory that the node has.

    Equal weights, so that is Go's integer division.
    """

    strategy: str
    taken: tuple[Taken, Taken]
    own: tuple[float, float]
    counted: CellColumn
    weight: float

    def __call__(self, read: RowReader[V], /) -> Callable[[At], V]:
        """See `ScoreRule`."""
        cpu, memory = (
            taken.percent_left(read, own) if self.strategy == LEAST else taken.percent_taken(read, own)
            for taken, own in zip(self.taken, self.own, strict=True)
        )
        counts, floor, weight = read.of(self.counted), read.floor, self.weight

        def score(at: At) -> V:
            total = cpu(at)
            total += memory(at)
            total /= counts[at]
            total = floor(total)
            return total if weight == 1.0 else total * weight

        return score


class Allocated:
    """LeastAllocated prefers nodes with much left, MostAllocated those with much on them."""

    reads = TEMPLATE_ONLY

    def __init__(self, session: Session, strategy: str, weight: int) -> None:
        self.name = f"NodeResourcesFit_{strategy}"
        self._strategy, self._weight = strategy, float(weight)
        self._taken, self._own, self._counted = nonzero_taken(session), nonzero_own(session), counted(session.nodes)

    def prepare(self, session: Session, task: Task) -> ColumnScore:
        """For the task's template."""
        own = self._own(task.template)
        return ColumnScore(MeanPercent(self._strategy, self._taken, own, self._counted, self._weight))
