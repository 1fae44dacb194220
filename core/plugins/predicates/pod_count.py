"""The number of pods a node may have. Source: Volcano `plugins/predicates` (Predicate, MaxTaskNum)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from core.session.points.nodes import TEMPLATE_ONLY, Volatility
from core.session.reasons import Code, Reason
from core.state.derived import derived
from core.state.sources import ALLOCATABLE

if TYPE_CHECKING:
    from core.objects.pod import Task
    from core.session.points.nodes import Rows
    from core.session.reasons import IntArray
    from core.session.session import Session
    from core.state.sources import Allocatable

EXCEEDED = Reason("predicates", Code.UNSCHEDULABLE, "node(s) pod number exceeded")


@derived(ALLOCATABLE)
def _limits(nodes: Allocatable) -> tuple[IntArray, IntArray]:
    """How many pods each node may have, and the answer that refuses none."""
    most: IntArray = np.minimum(nodes.max_pods, np.iinfo(np.int32).max).astype(np.int32)
    nobody = np.zeros(len(most), dtype=np.int32)
    most.flags.writeable = nobody.flags.writeable = False
    return most, nobody


class PodCountCheck:
    """Compares the pods on a node, terminating and pipelined ones included, with its allocatable pods.

    The same for every task.
    """

    volatility = Volatility.ROW

    def __init__(self, session: Session) -> None:
        self._pods = session.kube.pods
        self._most, self._nobody = _limits(session.nodes)
        self._code = np.int32(session.reasons.intern(EXCEEDED))
        self._number = int(self._code)
        self._pods_at, self._most_at = self._pods.data, self._most.data

    def reject(self, rows: Rows) -> IntArray:
        """Reason number per row, int32 [len(rows)]; for a slice possibly one that must not be written to."""
        full = self._pods[rows] >= self._most[rows]
        return np.multiply(full, self._code) if np.count_nonzero(full) else self._nobody[rows]

    def reject_one(self, row: int) -> int:
        """Reason number of one row, 0 where it passes: what `reject` says of it."""
        return self._number if self._pods_at[row] >= self._most_at[row] else 0


class PodCount:
    """The filter; one check serves the whole session."""

    name = "PodCount"
    reads = TEMPLATE_ONLY

    def __init__(self) -> None:
        self._check: PodCountCheck | None = None

    def prepare(self, session: Session, task: Task) -> PodCountCheck:
        """The session's check, whatever the task."""
        if self._check is None:
            self._check = PodCountCheck(session)
        return self._check
