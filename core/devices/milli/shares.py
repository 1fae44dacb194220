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


# --- Scores of nodes, whole numbers from 0 to 100 [R]: the policies to which "Beware of Fragmentation" (USENIX ATC
# 2023) compares its own.

FloatArray = npt.NDArray[np.float64]
PARTS: Final = 25
OWN_ONLY, OWN, FREE_NODE = 75, 50, 25
IDLE_CARDS, SHARED = 33, 50


def _left(states: NodeStates) -> IntArray:
    left: IntArray = np.where(states.there, states.left, 0).sum(axis=1)
    return left


def best_fit(states: NodeStates, ask: CardAsk, most: tuple[int, int]) -> FloatArray:
    """The less is left afterwards of CPU and cards, the better; `most`: milli-cores and thousandths of cards that the
    largest nodes have.
    """
    cpu, cards = (states.cpu - ask.cpu) / most[0], (_left(states) - ask.total) / most[1]
    return np.trunc(100.0 * (1.0 - 0.5 * cpu - 0.5 * cards))


def dot_product(states: NodeStates, ask: CardAsk, most: tuple[int, int]) -> FloatArray:
    """The less alike what is left and what is asked for, the better."""
    cpu, cards = states.cpu * ask.cpu / most[0] ** 2, _left(states) * ask.total / most[1] ** 2
    return np.trunc(100.0 * (1.0 - 0.5 * (cpu + cards)))


def clustering(states: NodeStates, ask: CardAsk, most: tuple[int, int], own: IntArray, others: IntArray) -> FloatArray:
    """Nodes that hold pods with as many cards: `own`; `others`: how many pods they hold with cards of other classes."""
    if not ask.cards:
        return np.zeros(len(states.cpu))
    held = np.where(own > 0, np.where(others > 0, OWN, OWN_ONLY), np.where(others > 0, 0, FREE_NODE))
    worth: FloatArray = (PARTS * (most[1] - _left(states)) // most[1] + held).astype(np.float64)
    return worth


def packing(states: NodeStates, ask: CardAsk) -> FloatArray:
    """Cards in use go before idle ones on nodes in use, and these before idle nodes."""
    if not ask.cards:
        return np.zeros(len(states.cpu))
    count = states.there.sum(axis=1)
    idle_node = ((states.left == FULL) | ~states.there).all(axis=1)
    fits = fitting(states, ask)
    left = np.sort(np.where(fits, states.left, 2 * FULL), axis=1)[:, : ask.cards]
    idle: IntArray = (left == FULL).sum(axis=1)
    spread = np.where(left <= FULL, left // (FULL // 100), 0).sum(axis=1)
    shared: IntArray = np.asarray(np.maximum(100 - spread // 10, SHARED))
    worth: IntArray = np.asarray(np.where(idle > 0, np.maximum(SHARED - idle, IDLE_CARDS), shared))
    found: IntArray = np.asarray(np.where(idle_node, np.maximum(IDLE_CARDS - count, count), worth))
    return found.astype(np.float64)
