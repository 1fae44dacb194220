"""What the five policies over a session's cards say of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.core.devices.milli.fragmentation import Fragmentation
from pumice.core.devices.milli.shares import clustering, packing
from pumice.core.plugins.card_policies.keeping import ScoringPolicy

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from pumice.core.devices.milli.shares import CardAsk, IntArray, NodeStates
    from pumice.core.devices.milli.typical import TypicalPods
    from pumice.core.objects.pod import Task
    from pumice.core.plugins.card_policies.columns import CardColumns
    from pumice.core.session.points.nodes import FloatArray
    from pumice.core.session.session import Session

    Scores = tuple[FloatArray, IntArray | None]
    Rows = npt.NDArray[np.intp]

SHARE = 0
"""The class of pods that share a card; of others it is how many cards they have."""


class FragmentationGradient:
    """Down the gradient of fragmentation of typical pods.

    What nodes are worth as they stand is the same for every class: it is kept until they are touched.
    """

    def __init__(self, session: Session, typical: TypicalPods) -> None:
        self._fragmentation = Fragmentation(typical)
        self._touched, self._read = session.nodes.touched, 0
        self._now = np.full(session.nodes.count, np.nan)

    def scores(self, states: NodeStates, ask: CardAsk, rows: Rows) -> Scores:
        """What the nodes are worth for a pod, [R], and which card it is to get first, [R], None for any."""
        fresh = self._touched[self._read :]
        self._read += len(fresh)
        self._now[fresh] = np.nan
        unknown = np.flatnonzero(np.isnan(self._now[rows]))
        if len(unknown):
            self._now[rows[unknown]] = self._fragmentation.of(states.at(unknown))
        return self._fragmentation.scores(states, ask, self._now[rows])

    def pick(self, state: NodeStates, ask: CardAsk) -> int:
        """The card that a pod is to get first of one node, as that was before it came."""
        return int(self._fragmentation.scores(state, ask)[1][0])


def by_room(columns: CardColumns, rule: Callable[[NodeStates, CardAsk, tuple[int, int]], FloatArray]) -> ScoringPolicy:
    """By what is left on nodes beside the most that a node has."""

    def scores(states: NodeStates, ask: CardAsk, rows: Rows) -> Scores:
        del rows
        return rule(states, ask, columns.most), None

    return ScoringPolicy(scores, pick=None)


def _packed(states: NodeStates, ask: CardAsk, rows: Rows) -> Scores:
    del rows
    return packing(states, ask), None


PACKING: Final = ScoringPolicy(_packed, pick=None)


class GpuClustering:
    """Nodes that hold pods with as many cards. It counts them as they come and go."""

    def __init__(self, session: Session, columns: CardColumns) -> None:
        self._columns = columns
        self._held: dict[int, IntArray] = {}
        self._total = np.zeros(session.nodes.count, dtype=np.int64)
        for row in np.flatnonzero(columns.there.any(axis=1)).tolist():
            for task in session.nodes.tasks_on(row):
                self.count(task, row, 1)

    def count(self, task: Task, row: int, sign: int) -> None:
        """A pod came to a node, or left it."""
        size = int(self._columns.sizes[self._columns.size[row]])
        ask = self._columns.wish_of(task).of(size)
        if ask.cards:
            self._of(ask)[row] += sign
            self._total[row] += sign

    def _of(self, ask: CardAsk) -> IntArray:
        kind = SHARE if ask.is_shared else ask.cards
        return self._held.setdefault(kind, np.zeros(len(self._total), dtype=np.int64))

    def scores(self, states: NodeStates, ask: CardAsk, rows: Rows) -> Scores:
        """What the nodes are worth for a pod, [R], and which card it is to get first, [R], None for any."""
        own = self._of(ask)[rows]
        return clustering(states, ask, self._columns.most, own, self._total[rows] - own), None
