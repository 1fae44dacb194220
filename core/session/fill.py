# SPDX-License-Identifier: Apache-2.0
"""The fill of a node with a task, weighted over resources. Source: `ResourceBinPackingScore` (Volcano
`plugins/binpack`) and `mostRequestedScore`, `leastRequestedScore` (`plugins/resource-strategy-fit`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pumice.core.session.points.columns import Expression
from pumice.core.session.points.rules import ColumnRule
from pumice.core.state.derived import derived
from pumice.core.state.dimensions import CellColumn, cells_of
from pumice.core.state.sources import ALLOCATABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.session.points.columns import At, RowReader, V
    from pumice.core.session.points.nodes import FloatArray
    from pumice.core.session.points.rules import Score
    from pumice.core.session.session import Session
    from pumice.core.state.sources import Allocatable

FULL = 100.0  # kube-scheduler's MaxNodeScore


class FillTerm(NamedTuple):
    """One resource that counts: `dimension` of the columns, the task's `request`, `weight` (not 0), and whether the
    free amount counts instead of the used one.
    """

    dimension: int
    request: float
    weight: float
    free: bool = False


@derived(ALLOCATABLE)
def capacity_of(nodes: Allocatable, dimension: int) -> tuple[CellColumn, CellColumn]:
    """Return the allocatable of one dimension, and the same with infinity for 0: a share of nothing is 0, and no amount
    exceeds it.
    """
    amount = nodes.amounts[dimension]
    return cells_of(amount), cells_of(np.where(amount == 0.0, np.inf, amount))


class Fill(NamedTuple):
    """The score (sum of weight * share over the terms) / `weights` * `factor`; 0 where one term does not fit on the
    node.

    A term's share is (used + request) / allocatable, or (allocatable - used - request) / allocatable; 0 where nothing
    is allocatable. `used` holds what is being released, not what is promised. `extra` is added at the end. `weights` of
    0 or less do not divide.
    """

    terms: list[tuple[FillTerm, CellColumn, tuple[CellColumn, CellColumn]]]
    weights: float
    factor: float
    extra: CellColumn | None

    def __call__(self, read: RowReader[V], /) -> Callable[[At], V]:
        """Return a function: (reader of columns) -> (rows) -> the score, a new array."""
        terms = [
            (read.of(used), read.of(amount), read.of(room), term.request, term.weight, term.free)
            for term, used, (amount, room) in self.terms
        ]
        extra = None if self.extra is None else read.of(self.extra)
        weights, factor, zero_where = self.weights, self.factor, read.zero_where

        def score(at: At) -> V:
            total: Any = 0.0
            too_much: Any = False
            for used, amount, room, request, weight, free in terms:
                taken, most = used[at] + request, room[at]
                too_much |= taken > most
                if free:
                    taken = amount[at] - taken
                # The usual weight is 1: one pass over all nodes less.
                if weight != 1.0:
                    taken *= weight
                taken /= most
                total += taken
            if weights > 0.0:
                total /= weights
            total *= factor
            total = zero_where(total, too_much)
            if extra is not None:
                total += extra[at]
            return total  # type: ignore[no-any-return]

        return score


def fill_score(
    session: Session, terms: list[FillTerm], weights: float, factor: float, extra: FloatArray | None = None
) -> Score:
    """Return the score by columns (`Fill`) of these terms and of `extra`, float64 [N]; without terms `extra` alone."""
    nodes = session.nodes
    if not terms:
        return ColumnRule(np.zeros(nodes.count) if extra is None else extra)
    found = [
        (term, CellColumn(nodes.used[dimension], nodes.used_at[dimension]), capacity_of(nodes, dimension))
        for term, dimension in [(term, term.dimension) for term in terms]
    ]
    return ColumnRule(Expression(Fill(found, weights, factor, None if extra is None else cells_of(extra))))
