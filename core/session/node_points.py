"""The extension points that look at nodes, vectorised: filters answer with reason codes, scorers with arrays.

A filter or scorer is prepared once for a task (Kubernetes' PreFilter / PreScore) and then asked about rows: all of
them, a few, or one. `volatility` says what makes an earlier answer stale, so that consecutive tasks of one template
recompute only what changed.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from core.objects.pod import Task
    from core.session.reasons import IntArray
    from core.session.session import Session

FloatArray = npt.NDArray[np.float64]
Rows = slice | npt.NDArray[np.intp]  # slice(None) for all nodes, or row numbers


class Volatility(Enum):
    """When an answer about a row must be asked again within a session."""

    STATIC = "static"  # never: it follows from the node's spec and the task alone
    ROW = "row"  # when something was placed on or taken off that row
    GLOBAL = "global"  # when anything was placed or taken off anywhere (affinity, spread)


class NodeCheck(Protocol):
    """A filter prepared for one task."""

    volatility: Volatility

    def reject(self, rows: Rows) -> IntArray:
        """Reason number per row (`Session.reasons`), 0 where the node passes. Shape [len(rows)], int32."""
        ...

    def reject_one(self, row: int) -> int:
        """The same for one row, as cheap as possible."""
        ...


class NodeFilter(Protocol):
    """Merge rule: a node passes when every filter passes. The first plugin that refuses it has said all; within a
    plugin filters run in order, and a plain Unschedulable lets the next ones add their reasons, anything else ends the
    node's list. `reads_labels`: whether two tasks of one template may get different answers. `concerns(template)`,
    where there is one: whether the tasks of a template may at all, and the filter has anything to say about them; not
    asked for a plain template, which does not concern it.
    """

    name: str
    reads_labels: bool

    def prepare(self, session: Session, task: Task) -> NodeCheck | None:
        """PreFilter.

        None: the filter has nothing to say about this task (Skip). Raises FitFailure when no node can do.
        """
        ...


class NodeScore(Protocol):
    """A scorer prepared for one task. `normalised`: whether `finish` depends on the candidates as a set; `constant`:
    the finished value when it is the same for every node whatever the candidates are, else None.
    """

    volatility: Volatility
    normalised: bool
    constant: float | None

    def score(self, rows: Rows) -> FloatArray:
        """Raw score per row, shape [len(rows)]. Weighted already unless `normalised`."""
        ...

    def score_one(self, row: int) -> float:
        """The same for one row, bit for bit."""
        ...

    def finish(self, raw: FloatArray) -> FloatArray:
        """NormalizeScore over the candidates' raw scores, times the weight. Only called when `normalised`."""
        ...


class NodeScorer(Protocol):
    """Merge rule: weighted sum, in the order of registration."""

    name: str
    reads_labels: bool

    def prepare(self, session: Session, task: Task) -> NodeScore | None:
        """PreScore. None: no contribution (weight 0, or Skip)."""
        ...
