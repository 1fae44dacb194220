"""What a pod asks of cards, and which cards of a node it would get."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
FULL: Final = 1000
"""Thousandths of a card."""
_TAKEN: Final = 2**40


class CardAsk(NamedTuple):
    """So many cards with `milli` thousandths of each, and milli-cores of CPU; 0 cards: none at all."""

    cpu: int
    cards: int
    milli: int

    @property
    def is_shared(self) -> bool:
        """Whether it asks for a part of one card."""
        return self.cards == 1 and self.milli < FULL

    @property
    def total(self) -> int:
        """Thousandths of all its cards."""
        return self.cards * self.milli


class NodeStates(NamedTuple):
    """Nodes as they stand: thousandths left of each card int64 [R, C], where there is a card bool [R, C], milli-cores
    of CPU left int64 [R], the number of the cards' model int64 [R].
    """

    left: IntArray
    there: BoolArray
    cpu: IntArray
    model: IntArray

    def at(self, rows: npt.NDArray[np.intp] | npt.NDArray[np.int64]) -> NodeStates:
        """Some of them."""
        return NodeStates(self.left[rows], self.there[rows], self.cpu[rows], self.model[rows])


def fitting(states: NodeStates, ask: CardAsk) -> BoolArray:
    """The cards with as much left [R, C]."""
    return states.there & (states.left >= ask.milli)


def fullest(states: NodeStates, ask: CardAsk) -> BoolArray:
    """The cards that a pod gets: of those that fit the ones with the least left, the first of equals [R, C]."""
    places = np.where(fitting(states, ask), states.left, _TAKEN).argsort(axis=1, kind="stable")
    chosen = np.zeros(states.left.shape, dtype=np.bool_)
    np.put_along_axis(chosen, places[:, : ask.cards], values=True, axis=1)
    return chosen
