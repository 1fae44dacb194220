"""NodeResourcesFit with the strategies LeastAllocated and MostAllocated over cpu and memory.

Source: kube-scheduler `noderesources/least_allocated.go`, `most_allocated.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pumice.core.kube.allocatable import capacity
from pumice.core.plugins.nodeorder.shares import NAMES, nonzero_own, nonzero_taken
from pumice.core.session.points.columns import ForTasks
from pumice.core.session.points.nodes import TEMPLATE_ONLY
from pumice.core.state.derived import derived
from pumice.core.state.scalars import CellColumn, cells_of
from pumice.core.state.sources import NODES

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.objects.pod import Task
    from pumice.core.plugins.nodeorder.shares import Taken
    from pumice.core.session.points.columns import At, ColumnScore, RowReader, V
    from pumice.core.session.session import Session
    from pumice.core.state.sources import NodeSpecs

Own = tuple[float, float]
"""What a pod itself asks for: milli-cores, bytes."""
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
    counted: CellColumn
    weight: float

    def __call__(self, read: RowReader[V], /) -> Callable[[Own, At], V]:
        """(how columns are read) -> (what the task asks for, where) -> the score there, its own."""
        cpu, memory = (
            taken.percent_left(read) if self.strategy == LEAST else taken.percent_taken(read) for taken in self.taken
        )
        counts, floor, weight = read.of(self.counted), read.floor, self.weight

        def score(own: Own, at: At) -> V:
            own_cpu, own_memory = own
            total = cpu(own_cpu, at)
            total += memory(own_memory, at)
            total /= counts[at]
            total = floor(total)
            return total if weight == 1.0 else total * weight

        return score


class Allocated:
    """LeastAllocated prefers nodes with much left, MostAllocated those with much on them."""

    reads = TEMPLATE_ONLY

    def __init__(self, session: Session, strategy: str, weight: int) -> None:
        self.name = f"NodeResourcesFit_{strategy}"
        rule = MeanPercent(strategy, nonzero_taken(session), counted(session.nodes), float(weight))
        self._rule, self._own = ForTasks(rule), nonzero_own(session)

    def prepare(self, session: Session, task: Task) -> ColumnScore:
        """For the task's template."""
        del session
        return self._rule.score(self._own(task.template))
