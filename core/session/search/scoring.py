"""Scores of one template's candidates, kept per scorer so that a touched row costs one row. Source: Volcano
`PrioritizeNodes`.

total = (sum of NodeOrder scores) + (sum of BatchNodeOrder scores), each sum over the plugins in tier order, starting
from 0, with what a plugin's own scorers add up to as one summand: floating-point addition is not associative, and equal
totals go to the lowest name.
"""

from __future__ import annotations

from functools import reduce
from itertools import groupby
from operator import add
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from pumice.core.session.points.nodes import FloatArray, Rows, Volatility
from pumice.core.state.scalars import floats

if TYPE_CHECKING:
    from collections.abc import Callable, MutableSequence, Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import NodeScore, NodeScorer
    from pumice.core.session.points.point import Point
    from pumice.core.session.session import Session

BoolArray = npt.NDArray[np.bool_]
ALL = slice(None)
ONE_BY_ONE: Final = "scorers-add-up-one-by-one"
"""The rule of earlier versions: every scorer is a summand of its own."""


def _plus(total: FloatArray | float, further: FloatArray | float, out: FloatArray | None) -> FloatArray | float:
    """Their sum, in the memory of `total` when it is an array (it is the caller's own), else in that of `out`."""
    if isinstance(total, np.ndarray):
        return np.add(total, further, out=total)
    return np.add(total, further, out=out) if isinstance(further, np.ndarray) else total + further


def _prepared(session: Session, task: Task, point: Point[Sequence[NodeScorer]]) -> list[tuple[str, NodeScore]]:
    """PreScore of every scorer of a point, by plugin; those without a contribution left out."""
    asked = session.searches.asked(point, task.template)
    prepared = [(plugin, each.prepare(session, task)) for plugin, scorers in asked for each in scorers]
    return [(plugin, score) for plugin, score in prepared if score is not None]


def _summands(session: Session, scores: list[tuple[str, NodeScore]], first: int) -> list[range]:
    """The numbers of the scores, from `first` on, that make one summand each: those of a plugin."""
    apart = ONE_BY_ONE in session.config.pumice.fix
    lengths = [1] * len(scores) if apart else [len([*each]) for _, each in groupby(scores, lambda score: score[0])]
    starts = [first + sum(lengths[:place]) for place in range(len(lengths))]
    return [range(start, start + length) for start, length in zip(starts, lengths, strict=True)]


class Scoring:
    """`ranked` float64 [N]: total score of the candidates, -inf elsewhere; its first maximum is the best node of lowest
    name. Nothing is scored before somebody asks: a search that finds no node, or a single one, needs no scores.
    `may_fail`: some score may turn out not to be had; then every total is -inf.
    """

    def __init__(self, session: Session, task: Task) -> None:
        points = session.points
        order = _prepared(session, task, points.node_order)
        batch = _prepared(session, task, points.batch_node_order)
        self._by_plugin = order + batch
        self._order, self._batch = _summands(session, order, 0), _summands(session, batch, len(order))
        # A summand of several scores that is not the first: they must be added up before they are added.
        self._nested = any(len(each) > 1 for each in (*self._order[1:], *self._batch[1:]))
        self._scores = [score for _, score in self._by_plugin]
        self._split = len(order)
        volatilities = [score.volatility for score in self._scores]
        self.is_global = Volatility.GLOBAL in volatilities
        self._depends_on_candidates = True in [s.normalised and s.constant is None for s in self._scores]
        self._raw: list[FloatArray | None] = [None] * len(self._scores)
        self._parts: list[tuple[MutableSequence[float] | None, float]] = []
        self._moving: list[tuple[MutableSequence[float], Callable[[int], float]]] | None = None
        self.ranked: FloatArray = np.empty(session.nodes.count)  # `_rank` writes it whole
        self._ranked_at = floats(self.ranked)
        # Asked anew at every choice, whatever was or was not touched.
        self._momentary = self.may_fail = Volatility.MOMENT in volatilities
        self._stale = self._dirty = True  # no row is scored; no candidate is ranked

    def forget(self) -> None:
        """Any row may have changed, and the candidates with them."""
        self._stale = self._dirty = True

    def rerank(self) -> None:
        """The candidates are others."""
        self._dirty = True

    def _score(self) -> None:
        """Score every row."""
        self._stale = False
        for i, score in enumerate(self._scores):
            if score.constant is None and (self._raw[i] is None or score.volatility is not Volatility.STATIC):
                self._raw[i] = score.score(ALL)
        self._moving = None

    def _look_closer(self) -> list[tuple[MutableSequence[float], Callable[[int], float]]]:
        """Views of what a touched row costs: numpy's own indexing would cost more than the arithmetic, 4 % of the
        instructions of `bench allocate`. Many searches never see a touched row.
        """
        moving: list[tuple[MutableSequence[float], Callable[[int], float]]] = []
        self._parts, self._moving = [], moving
        for raw, score in zip(self._raw, self._scores, strict=True):
            view = None if raw is None else floats(raw)
            self._parts.append((view, 0.0) if score.constant is None else (None, score.constant))
            if view is not None and score.volatility is not Volatility.STATIC:
                moving.append((view, score.score_one))
        return moving

    def update(self, row: int, is_candidate: bool) -> None:
        """One row changed, or joined or left the candidates."""
        if self._stale:
            return
        moving = self._look_closer() if self._moving is None else self._moving
        for raw, score_one in moving:
            raw[row] = score_one(row)
        if self._depends_on_candidates:
            was_candidate = self._ranked_at[row] != -np.inf
            self._dirty = self._dirty or is_candidate or was_candidate or self._has_moving_norm()
            if not is_candidate:
                self._ranked_at[row] = -np.inf
        else:
            self._ranked_at[row] = self._total_of(row) if is_candidate else -np.inf

    def update_many(self, rows: npt.NDArray[np.intp], are_candidates: BoolArray) -> None:
        """Several rows changed."""
        if self._stale:
            return
        for raw, score in zip(self._raw, self._scores, strict=True):
            if raw is not None and score.volatility is not Volatility.STATIC:
                raw[rows] = score.score(rows)
        if self._depends_on_candidates:
            self._dirty = True
            return
        totals = self.totals(rows)
        self.ranked[rows] = np.where(are_candidates, totals, -np.inf)

    def _has_moving_norm(self) -> bool:
        return any(s.normalised and s.constant is None and s.volatility is not Volatility.STATIC for s in self._scores)

    def best(self, candidates: BoolArray) -> int:
        """Row of the highest total; the caller knows that there is a candidate. -1: they cannot be scored."""
        if self._dirty or self._momentary:
            self._rank(candidates)
        best = int(self.ranked.argmax())
        return -1 if self._momentary and self._ranked_at[best] == -np.inf else best

    def _total_of(self, row: int) -> float:
        if self._nested:
            return self._nested_total(self._order, row) + self._nested_total(self._batch, row)
        order = batch = 0.0
        for raw, constant in self._parts[: self._split]:
            order += constant if raw is None else raw[row]
        for raw, constant in self._parts[self._split :]:
            batch += constant if raw is None else raw[row]
        return order + batch

    def _nested_total(self, summands: list[range], row: int) -> float:
        """Their sum, of one row; not by `sum`, which later versions of Python let round less often than Go does."""
        values = [constant if raw is None else raw[row] for raw, constant in self._parts]
        return reduce(add, [reduce(add, values[each.start : each.stop], 0.0) for each in summands], 0.0)

    def _rank(self, candidates: BoolArray) -> None:
        if self._stale:
            self._score()
        self._dirty = False
        if self._depends_on_candidates:
            rows = candidates.nonzero()[0]
            self.ranked.fill(-np.inf)
            self.ranked[rows] = self.totals(rows)
            return
        self._sum(ALL, self.ranked)
        if np.count_nonzero(candidates) < len(candidates):
            self.ranked[~candidates] = -np.inf

    def totals(self, rows: npt.NDArray[np.intp]) -> FloatArray:
        """Total scores of these candidates (normalised over just them), shape [len(rows)]."""
        if not len(rows):
            return np.zeros(0)
        if self._stale:
            self._score()
        totals = self._sum(rows)
        return totals if totals.ndim else np.full(len(rows), totals)

    def parts(self, rows: npt.NDArray[np.intp]) -> list[tuple[str, FloatArray | float]]:
        """What each scorer adds to the totals of these candidates, by plugin. Who has not been asked yet is asked again
        when it counts: a choice is made of the same questions whether somebody looked on or not.
        """
        stale, raw = self._stale, [*self._raw]
        if stale:
            self._score()
        found = [(plugin, self._finished(i, rows)) for i, (plugin, _) in enumerate(self._by_plugin)]
        self._stale, self._raw = stale, raw
        return found

    def _finished(self, i: int, rows: Rows) -> FloatArray | float:
        score, raw = self._scores[i], self._raw[i]
        if score.constant is not None:
            return score.constant
        assert raw is not None
        return score.finish(raw[rows]) if score.normalised else raw[rows]

    def _sum(self, rows: Rows, out: FloatArray | None = None) -> FloatArray:
        order = self._sum_of(self._order, rows, out)
        batch = self._sum_of(self._batch, rows, None if order is out else out)
        for one, other in ((order, batch), (batch, order)):
            if isinstance(one, np.ndarray) and isinstance(other, float) and other == 0.0:
                return one  # it began with 0.0, so it holds no -0.0 that this would turn
        return np.add(order, batch, out=out)

    def _sum_of(self, summands: list[range], rows: Rows, out: FloatArray | None) -> FloatArray | float:
        total: FloatArray | float = 0.0
        for place, scores in enumerate(summands):
            if place == 0 or len(scores) == 1:
                for i in scores:
                    total = _plus(total, self._finished(i, rows), out)
            else:
                total = _plus(total, self._sum_of([scores], rows, None), out)
        return total
