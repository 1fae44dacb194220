"""The number of pods a node may have. Source: Volcano `plugins/predicates` (Predicate, MaxTaskNum)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pumice.core.session.points.columns import Clause, ColumnCheck
from pumice.core.session.points.nodes import TEMPLATE_ONLY
from pumice.core.session.reasons import Code, Reason
from pumice.core.state.derived import derived
from pumice.core.state.dimensions import CellColumn, cells_of
from pumice.core.state.sources import ALLOCATABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.objects.pod import Task
    from pumice.core.session.points.batches import BoolArray
    from pumice.core.session.points.columns import At, RowReader, V
    from pumice.core.session.session import Session
    from pumice.core.state.sources import Allocatable

EXCEEDED = Reason("predicates", Code.UNSCHEDULABLE, "node(s) pod number exceeded")


@derived(ALLOCATABLE)
def _limits(nodes: Allocatable) -> CellColumn:
    """How many pods each node may have."""
    return cells_of(np.minimum(nodes.max_pods, np.iinfo(np.int32).max).astype(np.int32))


class IsFull(NamedTuple):
    """The pods on a node, terminating and pipelined ones included, are as many as it may have."""

    pods: CellColumn
    most: CellColumn

    def __call__(self, read: RowReader[V], /) -> Callable[[At], bool | BoolArray]:
        """(how columns are read) -> (where) -> whether it holds."""
        pods, most = read.of(self.pods), read.of(self.most)
        return lambda at: pods[at] >= most[at]


class PodCount:
    """The filter; one check serves the whole session, for it is the same for every task."""

    name = "PodCount"
    reads = TEMPLATE_ONLY

    def __init__(self) -> None:
        self._check: ColumnCheck | None = None

    def prepare(self, session: Session, task: Task) -> ColumnCheck:
        """The session's check, whatever the task."""
        if self._check is None:
            rule = IsFull(cells_of(session.kube.pods), _limits(session.nodes))
            self._check = ColumnCheck([Clause(rule, session.reasons.intern(EXCEEDED))])
        return self._check
