"""Scores by class of pod over all nodes, kept until a node is touched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from pumice.core.devices.milli.shares import CardAsk, IntArray, NodeStates
    from pumice.core.plugins.card_policies.columns import CardColumns, CardWish
    from pumice.core.session.points.nodes import FloatArray
    from pumice.core.session.session import Session


class Scorer(Protocol):
    """Scores some nodes."""

    def __call__(
        self, states: NodeStates, ask: CardAsk, rows: npt.NDArray[np.intp], /
    ) -> tuple[FloatArray, IntArray | None]:
        """What the nodes (`rows`, as they stand) are worth for a pod [R], and which card it is to get first [R], -1
        where that is all the same; None: everywhere.
        """
        ...


Pick = Callable[["NodeStates", "CardAsk"], int]
"""(one node, as it was before a pod came, what the pod asks for) -> the card that it is to get first, -1 for any."""


class ScoringPolicy(NamedTuple):
    """What nodes are worth for a pod, and which card of its node it is to get first; None: any, whatever the pod."""

    scores: Scorer
    pick: Pick | None


@dataclass(slots=True)
class Kept:
    """`worth` and `card` of each node [N] as of the first `read` touches of the session."""

    worth: FloatArray
    card: IntArray
    read: int


class KeptScores:
    """A node's score follows from what is left there and from the class of the pod: it is worked out again when the
    node was touched since, and that alone.
    """

    def __init__(self, session: Session, columns: CardColumns, policy: ScoringPolicy) -> None:
        self._nodes, self._columns, self._policy = session.nodes, columns, policy
        self._kept: dict[CardWish, Kept] = {}

    def of(self, wish: CardWish) -> FloatArray:
        """The scores for a class, of all nodes as they stand; nobody may change them."""
        return self._renewed(wish).worth

    def _renewed(self, wish: CardWish) -> Kept:
        kept, touched = self._kept.get(wish), self._nodes.touched
        if kept is None:
            count = self._nodes.count
            kept = self._kept[wish] = Kept(np.zeros(count), np.full(count, -1), len(touched))
            self._look(kept, wish, np.arange(count))
        elif kept.read < len(touched):
            fresh = touched[kept.read] if len(touched) == kept.read + 1 else None
            rows = [fresh] if fresh is not None else sorted(set(touched[kept.read :]))
            kept.read = len(touched)
            self._look(kept, wish, np.array(rows, dtype=np.intp))
        return kept

    def _look(self, kept: Kept, wish: CardWish, rows: npt.NDArray[np.intp]) -> None:
        columns = self._columns
        for number, size in enumerate(columns.sizes.tolist()):
            some = rows if len(columns.sizes) == 1 else rows[columns.size[rows] == number]
            if len(some):
                worth, card = self._policy.scores(columns.states(some), wish.of(size), some)
                kept.worth[some] = worth
                if card is not None:
                    kept.card[some] = card

    def card(self, wish: CardWish, row: int, pick: Pick) -> int:
        """Which card of a node a pod is to get first that has just been put there, -1 where that is all the same."""
        kept, touched = self._kept.get(wish), self._nodes.touched
        if kept is not None and kept.read >= len(touched) - 1 and touched[-1] == row:
            return int(kept.card[row])
        states = self._columns.states(np.array([row]))
        size = int(self._columns.sizes[self._columns.size[row]])
        return pick(states._replace(cpu=states.cpu + wish.cpu), wish.of(size))
