"""NodeResourcesFit with strategy LeastAllocated over cpu and memory.

Source: kube-scheduler `noderesources/least_allocated.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.plugins.nodeorder.means import mean_percent, mean_percent_one
from core.plugins.nodeorder.shares import nonzero_own, nonzero_taken
from core.session.points.nodes import TEMPLATE_ONLY, Volatility

if TYPE_CHECKING:
    from core.objects.pod import Task
    from core.plugins.nodeorder.shares import Taken
    from core.session.points.nodes import FloatArray, Rows
    from core.session.session import Session


class LeastAllocatedScore:
    """weight * floor(mean of the percentages left free), cpu and memory in equal parts.

    A resource that a node lacks does not count.
    """

    volatility = Volatility.ROW
    normalised = False
    constant: float | None = None

    def __init__(self, taken: tuple[Taken, Taken], own: tuple[float, float], weight: float) -> None:
        self._cpu, self._memory = taken
        self._own_cpu, self._own_memory = own
        self._weight = weight

    def score(self, rows: Rows) -> FloatArray:
        """Weighted score per row."""
        cpu = self._cpu.percent_left(self._own_cpu, rows)
        memory = self._memory.percent_left(self._own_memory, rows, self._memory.spare(rows))
        return mean_percent(self._cpu, self._memory, cpu, memory, rows, self._weight)

    def score_one(self, row: int) -> float:
        """Score of one row, bit for bit what `score` says of it."""
        cpu = self._cpu.percent_left_one(self._own_cpu, row)
        memory = self._memory.percent_left_one(self._own_memory, row)
        return mean_percent_one(self._cpu, self._memory, cpu, memory, row) * self._weight

    def finish(self, raw: FloatArray) -> FloatArray:
        """Not normalised."""
        return raw


class LeastAllocated:
    """Prefers nodes with much left."""

    name = "NodeResourcesFit_LeastAllocated"
    reads = TEMPLATE_ONLY

    def __init__(self, session: Session, weight: int) -> None:
        self._taken, self._weight = nonzero_taken(session), float(weight)
        self._own = nonzero_own(session)

    def prepare(self, session: Session, task: Task) -> LeastAllocatedScore:
        """For the task's template."""
        return LeastAllocatedScore(self._taken, self._own(task.template), self._weight)
