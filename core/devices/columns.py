# SPDX-License-Identifier: Apache-2.0
"""Cards as columns over nodes, and their users: the common part of families whose devices are cards."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any, ClassVar, Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from pumice.core.devices.family import BoolArray, FloatArray

IntArray = npt.NDArray[np.int64]
C = TypeVar("C")
U = TypeVar("U")

MOST_CARDS: Final = 256
"""Limit of cards of a node; the largest machines have some 16. Every node has a place for each card of the node
that has the most: one that says that it has 10^12 would take all memory.
"""


@dataclass(frozen=True)
class NodeCards:
    """A record of columns [N, C] and of lists [N]. `claimed`: how many cards each node claims to have."""

    claimed: Sequence[int]

    of_all: ClassVar[tuple[str, ...]] = ()
    """Fields that are not by node."""

    @property
    def present(self) -> BoolArray:
        """Return the nodes that have cards [N]."""
        return np.array(self.claimed, dtype=np.int64) > 0

    def alone(self, row: int) -> Any:
        """Return a copy with one node."""
        names = [each.name for each in fields(self) if each.name not in self.of_all]
        return replace(self, **{name: getattr(self, name)[row : row + 1] for name in names})

    def left_out(self, row: int) -> dict[str, list[str]]:
        """Return what speaks against the cards of a node that do not count, for people."""
        more = self.claimed[row] - MOST_CARDS
        return {f"{more:,} more cards": [f"only the first {MOST_CARDS} of a node count"]} if more > 0 else {}


def column_of(cards: Sequence[Sequence[C]], number: Callable[[C], int], missing: int = 0) -> IntArray:
    """Return a number of each card, int64 [N, C]."""
    counts = np.array([*map(len, cards)], dtype=np.int64)
    column = np.full((len(cards), counts.max(initial=0)), missing, dtype=np.int64)
    there = np.arange(column.shape[1]) < counts[:, None]
    column[there] = np.fromiter(map(number, chain.from_iterable(cards)), np.int64, int(counts.sum()))
    return column


def numbers_alike(shapes: Iterable[Hashable]) -> list[int]:
    """Return the same number for nodes of the same shape."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(each, len(numbers)) for each in shapes]


class CardUsers(Generic[U]):
    """The users of cards. `sharers`, `memory` (MiB) and `cores` in use are int64 [N, C]; users are pods by
    uid, by node and card.
    """

    def __init__(self, names: Sequence[str], shape: tuple[int, ...]) -> None:
        self._names = names
        self.sharers: IntArray = np.zeros(shape, dtype=np.int64)
        self.memory: IntArray = np.zeros(shape, dtype=np.int64)
        self.cores: IntArray = np.zeros(shape, dtype=np.int64)
        self._users: dict[tuple[int, int], dict[str, U]] = {}

    def _users_of(self, row: int, card: int) -> Mapping[str, U]:
        return self._users.get((row, card), {})

    def _shift(self, row: int, card: int, memory: int, cores: int, sign: int) -> None:
        self.sharers[row, card] += sign
        self.memory[row, card] += sign * memory
        self.cores[row, card] += sign * cores

    def _alone(self: _Users, row: int) -> _Users:
        """Return a copy that has only that node, as row 0."""
        twin, at = copy(self), slice(row, row + 1)
        twin._names = self._names[at]
        twin.sharers, twin.memory, twin.cores = self.sharers[at].copy(), self.memory[at].copy(), self.cores[at].copy()
        users = [(card, users) for (where, card), users in self._users.items() if where == row]
        # The users, too, are copied: a trial changes their amounts in place.
        twin._users = {(0, card): {uid: copy(each) for uid, each in of_card.items()} for card, of_card in users}
        return twin

    def _scores_of(self, rows: Iterable[int], alike: Sequence[Hashable], score: Callable[[int], float]) -> FloatArray:
        """Return the scores [N] of some rows, 0 for others; equal nodes with equal use of their cards are scored
        once.
        """
        scores, known = np.zeros(len(self._names)), dict[Hashable, float]()
        state = np.concatenate((self.sharers, self.memory, self.cores), axis=1)
        # One string for all nodes: a slice of it costs a third of an array's row and its bytes.
        packed, width = state.tobytes(), state.shape[1] * state.itemsize
        for row in rows:
            like = alike[row], packed[row * width : (row + 1) * width]
            found = known.get(like)
            scores[row] = known[like] = score(row) if found is None else found
        return scores


_Users = TypeVar("_Users", bound=CardUsers[Any])
