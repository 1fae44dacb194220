# SPDX-License-Identifier: Apache-2.0
"""NodeResourcesFit: a node's allocatable minus the requests of all its pods, terminating ones included.

Source: kube-scheduler `noderesources/fit.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.points.nodes import TEMPLATE_ONLY
from pumice.core.session.points.rules import ColumnRule
from pumice.core.session.reasons import Code, Reason
from pumice.core.state.dimensions import PODS

if TYPE_CHECKING:
    import numpy.typing as npt

    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import FloatArray, Rows
    from pumice.core.session.points.rules import Check
    from pumice.core.session.reasons import IntArray
    from pumice.core.session.session import Session

NAME: Final = "NodeResourcesFit"


class RoomFilter:
    """The filter. `after_evictions`: terminating pods no longer count, as in a trial of preemption."""

    name = NAME
    reads = TEMPLATE_ONLY

    def __init__(self) -> None:
        self.after_evictions = False
        self.evicted: set[int] = set()  # rows of nodes whose victims of this cycle are still there

    def prepare(self, session: Session, task: Task) -> Check:
        """Return a filter for each template."""
        return ColumnRule(RoomCodes(session, task, self))


class RoomCodes:
    """Codes of all resources that are short: Kubernetes names each of them."""

    def __init__(self, session: Session, task: Task, room: RoomFilter) -> None:
        self._session, self._room = session, room
        names = session.dims.names
        asked = [(dimension, value) for dimension, value in task.template.items if value > 0 and dimension != PODS]
        self._dimensions = np.array([dimension for dimension, _ in asked], dtype=np.intp)
        self._request: FloatArray = np.array([[value] for _, value in asked]).reshape(len(asked), 1)
        short = [f"Insufficient {names[dimension]}" for dimension, _ in asked]
        texts = ("Too many pods", "node(s) had pods that are being preempted", *short)
        self._reasons = [Reason(NAME, Code.UNSCHEDULABLE, text) for text in texts]

    def __call__(self, rows: Rows, /) -> IntArray:
        """Return the reason number per row, int32 [len(rows)]."""
        full = self._session.kube.pods[rows] >= self._session.nodes.max_pods[rows]
        evicted = np.zeros(self._session.nodes.count, dtype=np.bool_)
        if not self._room.after_evictions:
            evicted[list(self._room.evicted)] = True
        lacking = np.vstack([full, evicted[rows], self._request - self._free(rows) >= MIN_RESOURCE])
        codes = np.zeros(lacking.shape[1], dtype=np.int32)
        refused = np.flatnonzero(lacking.any(axis=0))
        if len(refused):
            kinds, which = np.unique(lacking[:, refused], axis=1, return_inverse=True)
            numbers = np.array([self._number(kind) for kind in kinds.T], dtype=np.int32)
            codes[refused] = numbers[which.reshape(-1)]
        return codes

    def _free(self, rows: Rows) -> FloatArray:
        """Return [asked dimension, row]; room that is nominated for a pod of no lower priority is taken."""
        nodes, dimensions = self._session.nodes, self._dimensions
        if self._room.after_evictions:
            future: FloatArray = nodes.future[dimensions][:, rows]
            return future
        free: FloatArray = nodes.idle[dimensions][:, rows] - nodes.pipelined[dimensions][:, rows]
        return free

    def _number(self, kind: npt.NDArray[np.bool_]) -> int:
        return self._session.reasons.intern(*(self._reasons[i] for i in np.flatnonzero(kind).tolist()))
