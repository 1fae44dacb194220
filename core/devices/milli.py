# SPDX-License-Identifier: Apache-2.0
"""Cards in thousandths: a pod's request, the cards of a node that it would get, and what remains."""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
FULL: Final = 1000
"""Thousandths of a card."""
# More than any card has left: cards that do not fit sort behind all that do.
_TAKEN: Final = 2**40


class CardAsk(NamedTuple):
    """A request of cards with `milli` thousandths of each, and milli-cores of CPU; 0 cards for none."""

    cpu: int
    cards: int
    milli: int

    @property
    def is_shared(self) -> bool:
        """Return whether the pod asks for a part of one card."""
        return self.cards == 1 and self.milli < FULL

    @property
    def total(self) -> int:
        """Return the thousandths of all its cards."""
        return self.cards * self.milli


class NodeStates(NamedTuple):
    """Nodes as they stand: thousandths left of each card int64 [R, C], where a card exists bool [R, C], milli-cores of
    CPU left int64 [R], the number of the cards' model int64 [R].
    """

    left: IntArray
    there: BoolArray
    cpu: IntArray
    model: IntArray

    def at(self, rows: npt.NDArray[np.intp] | npt.NDArray[np.int64]) -> NodeStates:
        """Return some of the nodes."""
        return NodeStates(self.left[rows], self.there[rows], self.cpu[rows], self.model[rows])


def fitting(states: NodeStates, ask: CardAsk) -> BoolArray:
    """Return the cards with enough left [R, C]."""
    return states.there & (states.left >= ask.milli)


def fullest(states: NodeStates, ask: CardAsk) -> BoolArray:
    """Return the cards that a pod gets: of those that fit the ones with the least left, the first of equals [R, C]."""
    places = np.where(fitting(states, ask), states.left, _TAKEN).argsort(axis=1, kind="stable")
    chosen = np.zeros(states.left.shape, dtype=np.bool_)
    np.put_along_axis(chosen, places[:, : ask.cards], values=True, axis=1)
    return chosen


# --- Scores of nodes, whole numbers from 0 to 100 [R]

FloatArray = npt.NDArray[np.float64]
PARTS: Final = 25
OWN_ONLY, OWN, FREE_NODE = 75, 50, 25
IDLE_CARDS, SHARED = 33, 50


def _left(states: NodeStates) -> IntArray:
    left: IntArray = np.where(states.there, states.left, 0).sum(axis=1)
    return left


def best_fit(states: NodeStates, ask: CardAsk, most: tuple[int, int]) -> FloatArray:
    """Score nodes: the less CPU and cards are left afterwards, the better; `most`: milli-cores and thousandths of cards
    of the largest nodes.
    """
    cpu, cards = (states.cpu - ask.cpu) / most[0], (_left(states) - ask.total) / most[1]
    return np.trunc(100.0 * (1.0 - 0.5 * cpu - 0.5 * cards))


def dot_product(states: NodeStates, ask: CardAsk, most: tuple[int, int]) -> FloatArray:
    """Score nodes: the less alike the free amounts and the request, the better."""
    cpu, cards = states.cpu * ask.cpu / most[0] ** 2, _left(states) * ask.total / most[1] ** 2
    return np.trunc(100.0 * (1.0 - 0.5 * (cpu + cards)))


def clustering(states: NodeStates, ask: CardAsk, most: tuple[int, int], own: IntArray, others: IntArray) -> FloatArray:
    """Score nodes: those that hold pods with as many cards (`own`) first; `others`: how many pods they hold with cards
    of other classes.
    """
    if not ask.cards:
        return np.zeros(len(states.cpu))
    held = np.where(own > 0, np.where(others > 0, OWN, OWN_ONLY), np.where(others > 0, 0, FREE_NODE))
    worth: FloatArray = (PARTS * (most[1] - _left(states)) // most[1] + held).astype(np.float64)
    return worth


def packing(states: NodeStates, ask: CardAsk) -> FloatArray:
    """Score nodes: cards in use before idle ones on nodes in use, and these before idle nodes."""
    if not ask.cards:
        return np.zeros(len(states.cpu))
    count = states.there.sum(axis=1)
    idle_node = ((states.left == FULL) | ~states.there).all(axis=1)
    fits = fitting(states, ask)
    # Cards that do not fit go behind all that do.
    left = np.sort(np.where(fits, states.left, 2 * FULL), axis=1)[:, : ask.cards]
    idle: IntArray = (left == FULL).sum(axis=1)
    spread = np.where(left <= FULL, left // (FULL // 100), 0).sum(axis=1)
    shared: IntArray = np.asarray(np.maximum(100 - spread // 10, SHARED))
    worth: IntArray = np.asarray(np.where(idle > 0, np.maximum(SHARED - idle, IDLE_CARDS), shared))
    found: IntArray = np.asarray(np.where(idle_node, np.maximum(IDLE_CARDS - count, count), worth))
    return found.astype(np.float64)


# --- Typical pods

MODELS = "|"
"""Between the models of a class."""


class CardClass(NamedTuple):
    """Milli-cores of CPU, thousandths of each card, cards, and their models ("A|B", "" for any)."""

    cpu: int
    milli: int
    cards: int
    models: str = ""

    def suits(self, model: str) -> bool:
        """Return whether cards of a model will do."""
        return not self.models or any(part.upper() in model.upper() for part in self.models.split(MODELS))


def typical_of(pods: Iterable[CardClass] | Mapping[CardClass, int], percent: float = 95.0) -> dict[CardClass, int]:
    """Return the most frequent classes, until they cover so many per cent of the pods; among equals the greater class
    first.

    `pods`: each by its class, or how many there are of each class.
    """
    counts = Counter(pods)
    wanted, covered = counts.total() * percent / 100.0, 0
    found: dict[CardClass, int] = {}
    for pod in sorted(counts, key=lambda pod: (counts[pod], pod), reverse=True):
        if covered >= wanted:
            break
        found[pod] = counts[pod]
        covered += counts[pod]
    return found


class Lack(IntEnum):
    """The reasons why a typical pod cannot use something, in the order of summation."""

    CPU_AND_CARDS = 0
    CARDS = 1
    CPU = 2
    ASKS_FOR_NONE = 3
    ASKS_FOR_NONE_NO_CPU = 4
    MODEL = 5


# What a pod lacks, by its case: OPEN, ASKS_NOTHING or BARRED (its model does not suit), and whether cards and CPU do.
ENOUGH_CPU, FITS = 1, 2
OPEN, ASKS_NOTHING, BARRED = 0, 4, 8
LACKS: Final[npt.NDArray[np.intp]] = np.array(
    [
        *(Lack.CPU_AND_CARDS, Lack.CARDS, Lack.CPU, Lack.CARDS),
        *(Lack.ASKS_FOR_NONE_NO_CPU, Lack.ASKS_FOR_NONE) * 2,
        *(Lack.MODEL,) * 4,
    ],
    dtype=np.intp,
)


def _case(pod: CardClass, model: str) -> int:
    if not pod.cards:
        return ASKS_NOTHING
    return OPEN if pod.suits(model) else BARRED


class TypicalPods:
    """Classes as columns [T], in their order. `share`: of all typical pods; `level`: which of the `steps` (distinct
    requests in thousandths, ascending [K]) each requests; `cases`: where `LACKS` says what each lacks, by model [M, T].

    `total`: how many pods there were before the rare ones were left out (None: these). The shares are worked out of it
    as the authors do: their last digits count, see `Fragmentation`.
    """

    def __init__(self, classes: Mapping[CardClass, int], models: Sequence[str], total: int | None = None) -> None:
        counts = np.array([*classes.values()], dtype=np.float64)
        covered = sum(classes.values())
        among = max(covered if total is None else total, 1)
        self.share: npt.NDArray[np.float64] = counts / among / (max(covered, 1) / among)
        self.cards: IntArray = np.array([pod.cards for pod in classes], dtype=np.int64)
        self.cpu: IntArray = np.array([pod.cpu for pod in classes], dtype=np.int64)
        milli = np.array([pod.milli for pod in classes], dtype=np.int64)
        self.steps, self.level = np.unique(milli, return_inverse=True)
        cases = [[_case(pod, model) for pod in classes] for model in models]
        self.cases: npt.NDArray[np.intp] = np.array(cases, dtype=np.intp).reshape(len(models), len(classes))


# --- Fragmentation ("Beware of Fragmentation", USENIX ATC 2023)
# For a typical pod with cards: where the model suits, the CPU is enough and enough cards have as much left as it asks
# for, what is left on cards that have less; otherwise all that is left. The fragmentation F of a node is the mean
# over the typical pods, in thousandths of a card.
#
# It is added up in the order in which the authors' simulator does (`pkg/utils/frag.go`): first the pods that cannot
# use something for the same reason, in their order, then these sums. In exact arithmetic a pod that takes CPU alone
# leaves F as it is as long as no model's reason is new to matter, and is worth 50; in theirs the last digits differ
# when a reason changes, and it is worth 49 or 50. Where many pods ask for CPU alone that decides where they go.

HUNDRED: Final = 100.0
NO_CARD: Final = -1


class Fragmentation:
    """The fragmentation F of nodes, and F after placing pods."""

    def __init__(self, typical: TypicalPods) -> None:
        self._typical = typical

    def of(self, states: NodeStates) -> FloatArray:
        """Return F of nodes [R]."""
        typical = self._typical
        left: IntArray = np.where(states.there, states.left, 0)
        less = left[:, :, None] < typical.steps
        # By level: what is left on cards with less, and the number of cards with as much.
        scraps: IntArray = (left[:, :, None] * less).sum(axis=1)[:, typical.level]
        enough = (states.there[:, :, None] & ~less).sum(axis=1)[:, typical.level]
        cpu, fits = states.cpu[:, None] >= typical.cpu, enough >= typical.cards
        cases = typical.cases[states.model] + FITS * fits + ENOUGH_CPU * cpu
        # A pod that finds both lacks only what is left on cards that have less.
        lacking: IntArray = np.where(cases == FITS + ENOUGH_CPU, scraps, left.sum(axis=1)[:, None])
        return _added_up(LACKS[cases], lacking * typical.share)

    def scores(self, states: NodeStates, ask: CardAsk, before: FloatArray | None = None) -> tuple[FloatArray, IntArray]:
        """Return the scores of nodes for a pod, 0 to 100 in whole numbers [R] (0 where it does not fit), and the card
        that a pod with a share of one would get there (NO_CARD: the fullest). `before`: the result of `of` for the
        nodes.
        """
        before = self.of(states) if before is None else before
        if ask.is_shared and states.left.size:
            return self._best_card(before, states, ask)
        after = states._replace(cpu=states.cpu - ask.cpu)
        if ask.cards:
            after = after._replace(left=np.where(fullest(states, ask), states.left - ask.milli, states.left))
        worth = self._worth(before, self.of(after))
        return np.where(_has_cards(states, ask), worth, 0.0), np.full(len(worth), NO_CARD)

    def _best_card(self, before: FloatArray, states: NodeStates, ask: CardAsk) -> tuple[FloatArray, IntArray]:
        fits = fitting(states, ask)
        # Of cards with as much left the first is tried alone: most cards of a node are idle, or full.
        like = (states.left[:, :, None] == states.left[:, None, :]) & fits[:, None, :]
        rows, cards = (fits & ~np.tril(like, -1).any(axis=2)).nonzero()
        tried = states.at(rows)
        tried.left[np.arange(len(rows)), cards] -= ask.milli
        # Below any worth, which is 0 at least.
        worth = np.full(fits.shape, float(NO_CARD))
        worth[rows, cards] = self._worth(before[rows], self.of(tried._replace(cpu=tried.cpu - ask.cpu)))
        best = worth.argmax(axis=1)
        most = worth[np.arange(len(worth)), best]
        return np.maximum(most, 0.0), np.where(most >= 0.0, best, NO_CARD)

    def _worth(self, before: FloatArray, after: FloatArray) -> FloatArray:
        worth: FloatArray = np.floor(1.0 / (1.0 + np.exp(-(before - after) / FULL)) * HUNDRED)
        return worth


def _added_up(lacks: npt.NDArray[np.intp], amount: FloatArray) -> FloatArray:
    """Add up by state and reason, one typical pod after the other, then the reasons: [R, T] both."""
    kinds, states = len(Lack), len(amount)
    places = lacks + np.arange(0, kinds * states, kinds)[:, None]
    # bincount adds one after the other; numpy's sum() adds in pairs, and its last digits differ.
    by_kind: FloatArray = np.zeros((states, kinds))
    by_kind += np.bincount(places.ravel(), amount.ravel(), kinds * states).reshape(states, kinds)
    added = by_kind[:, 0].copy()
    for kind in range(1, kinds):
        added += by_kind[:, kind]
    return added


def _has_cards(states: NodeStates, ask: CardAsk) -> npt.NDArray[np.bool_]:
    fits: npt.NDArray[np.bool_] = np.count_nonzero(fitting(states, ask), axis=1) >= ask.cards
    return fits
