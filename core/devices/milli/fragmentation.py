"""How much of nodes typical pods could not use: the fragmentation of "Beware of Fragmentation" (USENIX ATC 2023).

For a typical pod with cards: where the model suits, the CPU is enough and enough cards have as much left as it asks
for, what is left on cards that have less; otherwise all that is left. The fragmentation F of a node is the mean over
the typical pods. It is counted times their number, in whole numbers, so that differences are exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from core.devices.milli.shares import FULL, CardAsk, IntArray, NodeStates, fitting, fullest

if TYPE_CHECKING:
    from core.devices.milli.typical import TypicalPods

FloatArray = npt.NDArray[np.float64]
HUNDRED: Final = 100.0
NO_CARD: Final = -1


class Fragmentation:
    """F of nodes, and what pods would make of it."""

    def __init__(self, typical: TypicalPods) -> None:
        self._typical = typical

    def of(self, states: NodeStates) -> FloatArray:
        """F of each node, times the number of typical pods, whole numbers [R]."""
        left = np.where(states.there, states.left, 0)
        scraps, enough = self._by_level(left, states)
        return self._sum(left.sum(axis=1), scraps, enough, states)

    def _by_level(self, left: IntArray, states: NodeStates) -> tuple[IntArray, IntArray]:
        """Of each level: what is left on cards with less, and how many have as much, int64 [R, K] both."""
        less = left[:, :, None] < self._typical.steps
        scraps = (left[:, :, None] * less).sum(axis=1)
        return scraps, (states.there[:, :, None] & ~less).sum(axis=1)

    def _sum(self, total: IntArray, scraps: IntArray, enough: IntArray, states: NodeStates) -> FloatArray:
        """`total` [...], `scraps` and `enough` [..., K] of nodes, with further axes after the first or without."""
        typical, further = self._typical, (1,) * (total.ndim - 1)
        able = typical.suits[states.model] & (states.cpu[:, None] >= typical.cpu)
        able = able.reshape(len(able), *further, -1) & (enough[..., typical.level] >= typical.cards)
        usable = (total[..., None] - scraps).astype(np.float64)[..., typical.level]
        found: FloatArray = total * typical.weights - (able * usable) @ typical.weight
        return found

    def scores(self, states: NodeStates, ask: CardAsk, before: FloatArray | None = None) -> tuple[FloatArray, IntArray]:
        """What nodes are worth for a pod, 0 to 100 in whole numbers [R] (0 where it does not fit), and which card a pod
        with a share of one would get there (NO_CARD: the fullest). `before`: what `of` says of the nodes.
        """
        before = self.of(states) if before is None else before
        after = states._replace(cpu=states.cpu - ask.cpu)
        if ask.is_shared and states.left.size:
            return self._best_card(before, states, after, ask)
        if ask.cards:
            after = after._replace(left=np.where(fullest(states, ask), states.left - ask.milli, states.left))
        worth = self._worth(before, self.of(after))
        return np.where(_has_cards(states, ask), worth, 0.0), np.full(len(worth), NO_CARD)

    def _best_card(
        self, before: FloatArray, states: NodeStates, after: NodeStates, ask: CardAsk
    ) -> tuple[FloatArray, IntArray]:
        steps, left = self._typical.steps, np.where(states.there, states.left, 0)
        scraps, enough = self._by_level(left, states)
        rest = left - ask.milli
        was_less, is_less = left[:, :, None] < steps, rest[:, :, None] < steps
        scraps = scraps[:, None] - left[:, :, None] * was_less + rest[:, :, None] * is_less
        enough = enough[:, None] - (is_less & ~was_less)
        total = np.broadcast_to(left.sum(axis=1)[:, None] - ask.milli, left.shape)
        worth = self._worth(before[:, None], self._sum(total, scraps, enough, after))
        worth[~fitting(states, ask)] = NO_CARD
        cards = worth.argmax(axis=1)
        best = worth[np.arange(len(worth)), cards]
        return np.maximum(best, 0.0), np.where(best >= 0.0, cards, NO_CARD)

    def _worth(self, before: FloatArray, after: FloatArray) -> FloatArray:
        gained = (before - after) / (FULL * max(self._typical.weights, 1))
        worth: FloatArray = np.floor(HUNDRED / (1.0 + np.exp(-gained)))
        return worth


def _has_cards(states: NodeStates, ask: CardAsk) -> npt.NDArray[np.bool_]:
    fits: npt.NDArray[np.bool_] = np.count_nonzero(fitting(states, ask), axis=1) >= ask.cards
    return fits
