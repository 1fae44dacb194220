"""How much of nodes typical pods could not use: the fragmentation of "Beware of Fragmentation" (USENIX ATC 2023).

For a typical pod with cards: where the model suits, the CPU is enough and enough cards have as much left as it asks
for, what is left on cards that have less; otherwise all that is left. The fragmentation F of a node is the mean over
the typical pods, in thousandths of a card.

It is added up in the order in which the authors' simulator does (`pkg/utils/frag.go`): first the pods that cannot use
something for the same reason, in their order, then these sums. In exact arithmetic a pod that takes CPU alone leaves F
as it is as long as nobody's reason is new to matter, and is worth 50; in theirs the last digits differ when a reason
changes, and it is worth 49 or 50. Where many pods ask for CPU alone that decides where they go.
"""

from __future__ import annotations

from enum import IntEnum
from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from pumice.core.devices.milli.shares import FULL, CardAsk, IntArray, NodeStates, fitting, fullest

if TYPE_CHECKING:
    from pumice.core.devices.milli.typical import TypicalPods

FloatArray = npt.NDArray[np.float64]
HUNDRED: Final = 100.0
NO_CARD: Final = -1


class Lack(IntEnum):
    """Why a typical pod cannot use something, in the order in which it is added up."""

    CPU_AND_CARDS = 0
    CARDS = 1
    CPU = 2
    ASKS_FOR_NONE = 3
    ASKS_FOR_NONE_NO_CPU = 4
    MODEL = 5


class Fragmentation:
    """F of nodes, and what pods would make of it."""

    def __init__(self, typical: TypicalPods) -> None:
        self._typical = typical

    def of(self, states: NodeStates) -> FloatArray:
        """F of each node [R]."""
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
        cpu = states.cpu[:, None] >= typical.cpu
        alone = np.where(cpu, Lack.ASKS_FOR_NONE.value, Lack.ASKS_FOR_NONE_NO_CPU.value)
        barred = np.where(typical.of_cards, Lack.MODEL.value, alone)
        open_to = typical.suits[states.model] & typical.of_cards
        cpu, barred, open_to = (each.reshape(len(cpu), *further, -1) for each in (cpu, barred, open_to))
        fits = enough[..., typical.level] >= typical.cards
        # with CPU and cards: what is left on cards that have less lacks cards
        lacks = np.where(fits, Lack.CPU.value - cpu, Lack.CPU_AND_CARDS.value + cpu)
        amount = np.where(open_to & fits & cpu, scraps[..., typical.level], total[..., None]) * typical.share
        return _added_up(np.where(open_to, lacks, barred), amount).reshape(total.shape)

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
        worth: FloatArray = np.floor(1.0 / (1.0 + np.exp(-(before - after) / FULL)) * HUNDRED)
        return worth


def _added_up(lacks: npt.NDArray[np.intp], amount: FloatArray) -> FloatArray:
    """By state and reason, one typical pod after the other, then the reasons: [..., T] both."""
    kinds, states, pods = len(Lack), prod(amount.shape[:-1]), amount.shape[-1]
    firsts: npt.NDArray[np.intp] = np.arange(0, kinds * states, kinds, dtype=np.intp)
    places: npt.NDArray[np.intp] = np.add(lacks.reshape(states, pods), firsts[:, None])
    by_kind: FloatArray = np.zeros((states, kinds))
    by_kind += np.bincount(places.ravel(), amount.ravel(), minlength=kinds * states).reshape(states, kinds)
    added = by_kind[:, 0].copy()
    for kind in range(1, kinds):
        added += by_kind[:, kind]
    return added


def _has_cards(states: NodeStates, ask: CardAsk) -> npt.NDArray[np.bool_]:
    fits: npt.NDArray[np.bool_] = np.count_nonzero(fitting(states, ask), axis=1) >= ask.cards
    return fits
