# SPDX-License-Identifier: Apache-2.0
"""The search for the node of a task: filters and scores of one kind of task, kept up to date row by row.

A search belongs to one template. The first answer looks at every node; later ones look again only at rows that were
touched since (all of them when a filter or score depends on placements anywhere). Order of merging and reasons: Volcano
`PredicateNodes`, `PrioritizeNodes` (`pkg/scheduler/util`) and allocate's `predicate` and `prioritizeNodes`.
"""

from __future__ import annotations

from functools import reduce
from itertools import groupby
from operator import add
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.points.nodes import FloatArray, Rows, Volatility
from pumice.core.session.search.filters import Filters
from pumice.core.state.dimensions import floats

if TYPE_CHECKING:
    from collections.abc import Callable, MutableSequence, Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import NodeScorer
    from pumice.core.session.points.point import Point
    from pumice.core.session.points.rules import Score
    from pumice.core.session.reasons import IntArray
    from pumice.core.session.session import Session

# --- Scores
# They are kept per scorer, so that a touched row costs one row. Source: Volcano `PrioritizeNodes`. total = (sum of
# NodeOrder scores) + (sum of BatchNodeOrder scores), each sum over the plugins in tier order, starting from 0, with
# what a plugin's own scorers add up to as one summand: floating-point addition is not associative, and equal totals
# go to the lowest name.

ONE_BY_ONE: Final = "scorers-add-up-one-by-one"
"""The rule of earlier versions: every scorer is a summand of its own."""


def _plus(total: FloatArray | float, further: FloatArray | float, out: FloatArray | None) -> FloatArray | float:
    """Return the sum, in the memory of `total` when it is an array (it is the caller's own), else in that of `out`."""
    if isinstance(total, np.ndarray):
        return np.add(total, further, out=total)
    return np.add(total, further, out=out) if isinstance(further, np.ndarray) else total + further


def _prepared(session: Session, task: Task, point: Point[Sequence[NodeScorer]]) -> list[tuple[str, Score]]:
    """Run PreScore of every scorer of a point, by plugin; those without a contribution are left out."""
    asked = session.searches.asked(point, task.template)
    prepared = [(plugin, each.prepare(session, task)) for plugin, scorers in asked for each in scorers]
    return [(plugin, score) for plugin, score in prepared if score is not None]


def _summands(session: Session, scores: list[tuple[str, Score]], first: int) -> list[range]:
    """Return the numbers of the scores, from `first` on, that make one summand each: those of a plugin."""
    apart = ONE_BY_ONE in session.config.pumice.fix
    lengths = [1] * len(scores) if apart else [len([*each]) for _, each in groupby(scores, lambda score: score[0])]
    starts = [first + sum(lengths[:place]) for place in range(len(lengths))]
    return [range(start, start + length) for start, length in zip(starts, lengths, strict=True)]


class Scoring:
    """Scores of a search. `ranked` float64 [N]: total score of the candidates, -inf elsewhere; its first maximum is the
    best node of lowest name. Scores are computed on first read: a search that finds no node, or a single one, needs
    none. `may_fail`: some scorer may have no answer; then every total is -inf. `lasts`: whether a later session would
    prepare the same scores.
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
        self._depends_on_candidates = True in [score.is_normalised for score in self._scores]
        self._raw: list[FloatArray | None] = [None] * len(self._scores)
        self._parts: list[tuple[MutableSequence[float] | None, float]] = []
        self._moving: list[tuple[MutableSequence[float], Callable[[int], float]]] | None = None
        self.ranked: FloatArray = np.empty(session.nodes.count)  # `_rank` writes it whole
        self._ranked_at = floats(self.ranked)
        # Asked anew at every choice, whatever was or was not touched.
        self._momentary = self.may_fail = Volatility.MOMENT in volatilities
        self.lasts = not self.may_fail and False not in [score.lasts for score in self._scores]
        self._stale = self._dirty = True  # no row is scored; no candidate is ranked

    def forget(self) -> None:
        """Forget the scores: any row may have changed, and the candidates with them."""
        self._stale = self._dirty = True

    def rerank(self) -> None:
        """Rank again after the candidates changed."""
        self._dirty = True

    def _score(self) -> None:
        """Score every row."""
        self._stale = False
        for i, score in enumerate(self._scores):
            # A static score holds for the whole session; any placement may have moved the others.
            if score.constant is None and (self._raw[i] is None or score.volatility is not Volatility.STATIC):
                self._raw[i] = score.many(ALL)
        self._moving = None

    def _look_closer(self) -> list[tuple[MutableSequence[float], Callable[[int], float]]]:
        """Prepare views for single rows: numpy's own indexing would cost more than the arithmetic, 4 % of the
        instructions of `bench allocate`. Many searches never see a touched row.
        """
        moving: list[tuple[MutableSequence[float], Callable[[int], float]]] = []
        self._parts, self._moving = [], moving
        for raw, score in zip(self._raw, self._scores, strict=True):
            view = None if raw is None else floats(raw)
            self._parts.append((view, 0.0) if score.constant is None else (None, score.constant))
            if view is not None and score.volatility is not Volatility.STATIC:
                moving.append((view, score.one))
        return moving

    def update(self, row: int, is_candidate: bool) -> None:
        """Update one row that changed, or joined or left the candidates."""
        if self._stale:
            return
        moving = self._look_closer() if self._moving is None else self._moving
        for raw, one in moving:
            raw[row] = one(row)
        if self._depends_on_candidates:
            was_candidate = self._ranked_at[row] != -np.inf
            # A normalised score depends on all candidates: one more or one less moves every total.
            self._dirty = self._dirty or is_candidate or was_candidate or self._has_moving_norm()
            if not is_candidate:
                self._ranked_at[row] = -np.inf
        else:
            self._ranked_at[row] = self._total_of(row) if is_candidate else -np.inf

    def update_many(self, rows: npt.NDArray[np.intp], are_candidates: BoolArray) -> None:
        """Update several rows that changed."""
        if self._stale:
            return
        for raw, score in zip(self._raw, self._scores, strict=True):
            if raw is not None and score.volatility is not Volatility.STATIC:
                raw[rows] = score.many(rows)
        if self._depends_on_candidates:
            self._dirty = True
            return
        totals = self.totals(rows)
        self.ranked[rows] = np.where(are_candidates, totals, -np.inf)

    def _has_moving_norm(self) -> bool:
        return any(s.is_normalised and s.volatility is not Volatility.STATIC for s in self._scores)

    def best(self, candidates: BoolArray) -> int:
        """Return the row of the highest total, or -1 when the candidates cannot be scored; the caller knows that a
        candidate exists.
        """
        if self._dirty or self._momentary:
            self._rank(candidates)
        # The first of equals, and rows are in name order; Volcano draws among equals at random
        # (SelectBestNodeAndScore).
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
        """Return the sum of one row; not by `sum`, which later versions of Python round less often than Go does."""
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
        """Return the total scores of these candidates (normalised over just them), shape [len(rows)]."""
        if not len(rows):
            return np.zeros(0)
        if self._stale:
            self._score()
        totals = self._sum(rows)
        return totals if totals.ndim else np.full(len(rows), totals)

    def parts(self, rows: npt.NDArray[np.intp]) -> list[tuple[str, FloatArray | float]]:
        """Return each scorer's part of the totals of these candidates, by plugin. A scorer that has not been asked yet
        is asked again when it counts: a choice makes the same questions with a reader or without.
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
        return raw[rows] if score.finish is None else score.finish(raw[rows])

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


ALL = slice(None)
BoolArray = npt.NDArray[np.bool_]
RESCAN_FRACTION = 8  # more touched rows than an eighth of all: looking at all is cheaper
FEW = 5  # up to so many rows are looked at one by one


class ErrorCache:
    """Volcano's predicate-error cache: within its life a node refused for a role stays refused, with its first reason.

    One per call of the task loop in allocate, one per task in backfill and reclaim, one per execution in preempt.
    """

    __slots__ = ("by_role", "enabled", "seen")

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        self.by_role: dict[str, NodeSearch] = {}
        self.seen: dict[str, IntArray] = {}  # under sampling: the reasons of just those nodes that were looked at

    def refused(self, role: str) -> IntArray:
        """Return the reason numbers remembered for a role that was searched for before."""
        return self.seen.get(role, self.by_role[role].codes)

    def remembers(self, role: str, row: int) -> bool:
        """Return whether that node was refused for that role before."""
        return self.enabled and role in self.by_role and bool(self.refused(role)[row])


class NodeSearch:
    """Keeps the answers of filters and scorers about all node rows for one template.

    Tasks of one template ask the same question, and a placement changes one row: so one row is asked again for the next
    task of a gang, and not every node. Without `room`, the question of room is left out (backfill).

    `codes` int32 [N]: reason number, 0 where the node is feasible (room in FutureIdle and every filter content). `idle`
    bool [N]: feasible, and room is idle now.
    """

    def __init__(self, session: Session, task: Task, *, room: bool = True) -> None:
        self.session = session
        self.task = task
        self._room = room
        self.template = task.template
        self._request = np.full((len(session.nodes.idle), 1), -np.inf)  # nothing is too little of what is not asked for
        for dimension, value in self.template.items:
            self._request[dimension] = value
        self.filters = Filters(session, task)
        self.scoring = Scoring(session, task)
        is_global = self.filters.is_global or self.scoring.is_global
        # Of a plain template, and of nothing that PreFilter has counted: the same checks would be prepared again.
        self.lasts = self.template.plain and not is_global and self.filters.lasts and self.scoring.lasts
        self._by_row = not is_global and session.nodes.count + FEW >= RESCAN_FRACTION  # else one row means all
        self._cache: ErrorCache | None = None
        self._stale: set[int] = set()
        self._all_stale = False
        self._read = 0
        self.codes: IntArray
        self.idle: BoolArray
        self.idle_count = 0
        self._spared: IntArray | None = (
            None  # where it is not 0 no filter is asked: another search of the role was refused
        )
        if self.filters.is_asking:
            self.codes, self.idle = np.zeros(session.nodes.count, np.int32), np.zeros(session.nodes.count, np.bool_)
            self._all_stale = True  # `refresh` says which nodes count
        else:
            self._scan()

    # --- keeping up --------------------------------------------------------------------------------------------------

    def refresh(self, cache: ErrorCache) -> None:
        """Bring codes, idle and scores up to the session's present state, under that error cache.

        Only rows that were touched are looked at. To look at all of them each time says the same (so the tests) and
        takes an allocation of 2,000 pods 2.7 times as long on 1,000 nodes, 4.7 times on 5,000, and that of openb, whose
        pods are all different, 1.3 times.
        """
        role = self.task.role
        known = cache if cache.enabled and role else None
        before = known.by_role.get(role) if known is not None else None
        remembers = known is not None and known is self._cache
        if self.filters.is_asking:
            self._spared = None if before is None or before is self else cache.refused(role)
        if not remembers:
            self._take_cache(known)
        touched, read = self.session.nodes.touched, self._read
        fresh = len(touched) - read
        # The usual case: one task was placed since, so one row is looked at, without a set or an array.
        if fresh == 1 and self._by_row:
            self._read = read + 1
            self._look_again(touched[read], remembers)
        elif fresh:
            self._read = read + fresh
            self._catch_up(touched[read:], remembers)
        if before is not None and before is not self:
            self._inherit(cache.refused(role))
        if known is not None:
            known.by_role[role] = self

    def forget_cache(self) -> None:
        """Forget the last error cache, which knows this search."""
        self._cache = None

    def _take_cache(self, cache: ErrorCache | None) -> None:
        """Take another error cache: the kept reasons belong to the last one and are asked anew."""
        self._cache = cache
        if self._all_stale:
            self._scan()
            self._all_stale = False
        elif self._stale:
            for row in sorted(self._stale):
                self._look(row)
        self._stale.clear()

    def _catch_up(self, touched: list[int], sticky: bool) -> None:
        rows = set(touched)
        if not self._by_row or len(rows) * RESCAN_FRACTION > self.session.nodes.count + FEW:
            # The error cache keeps the first refusals: a new scan must not lift them.
            kept = self.codes.copy() if sticky else None
            self._scan()
            if kept is not None:
                self._inherit(kept)
            return
        if len(rows) <= FEW:
            for row in rows:
                self._look_again(row, sticky)
            return
        if sticky:
            refused = [row for row in rows if self.codes[row]]
            self._stale.update(refused)
            rows.difference_update(refused)
        self._look_at(np.array(sorted(rows), dtype=np.intp))

    def _inherit(self, kept: IntArray) -> None:
        """Keep refused nodes refused, with the reason they had."""
        # Inherited reasons are the cache's, not this moment's: under another cache every row is asked anew.
        refused = kept != 0
        if not np.count_nonzero(refused):
            return
        self._all_stale = True
        self.codes = np.where(refused, kept, self.codes)
        self.idle &= ~refused
        self.idle_count = int(np.count_nonzero(self.idle))
        self.scoring.rerank()

    def _scan(self) -> None:
        """Look at every node."""
        self._read = len(self.session.nodes.touched)
        codes, idle = self._judge(ALL, self.session.nodes.count)
        self.codes, self.idle = codes, idle
        self.idle_count = int(np.count_nonzero(idle))
        self.scoring.forget()

    def _look_at(self, rows: npt.NDArray[np.intp]) -> None:
        """Look at some nodes again, together."""
        codes, idle = self._judge(rows, len(rows))
        self.idle_count += int(np.count_nonzero(idle)) - int(np.count_nonzero(self.idle[rows]))
        self.codes[rows], self.idle[rows] = codes, idle
        self.scoring.update_many(rows, idle)

    def _judge(self, rows: Rows, count: int) -> tuple[IntArray, BoolArray]:
        """Return the reason numbers of some rows, and which are feasible with idle room."""
        nodes = self.session.nodes
        codes = self.filters.reject(rows, count, self._among(rows, count) if self.filters.is_asking else None)
        if self._room:
            lacks = self.lacks(nodes.future[:, rows])
            if np.count_nonzero(lacks):
                for dimension, _ in reversed(self.template.items):  # the first that lacks is the reason
                    np.copyto(codes, self.session.searches.insufficient(dimension), where=lacks[dimension])
        feasible: BoolArray = codes == 0
        if nodes.has_future and self._room:
            feasible &= ~np.logical_or.reduce(self.lacks(nodes.idle[:, rows]))
        own = self.session.searches.hard_shard
        if own is not None:
            # Overrides every other reason, as in `code_of`, which asks for the shard first.
            codes[~own[rows]] = self.session.searches.outside_shard
            feasible &= own[rows]
        return codes, feasible

    def _among(self, rows: Rows, count: int) -> BoolArray:
        """Return which of some rows pass all other checks."""
        open_: BoolArray = np.ones(count, dtype=np.bool_)
        if self._room:
            open_ &= ~np.logical_or.reduce(self.lacks(self.session.nodes.future[:, rows]))
        if self._spared is not None:
            open_ &= self._spared[rows] == 0
        own = self.session.searches.hard_shard
        return open_ if own is None else open_ & own[rows]

    def lacks(self, room: FloatArray) -> BoolArray:
        """Return by row the dimensions of `room` [dimension, row] that are too small. Source: Volcano `LessEqual`."""
        lacking: BoolArray = self._request - room >= MIN_RESOURCE
        return lacking

    def _look_again(self, row: int, sticky: bool) -> None:
        """Look at a touched node again; one that the cache remembers as refused stays so for now."""
        if sticky and self.codes[row]:
            self._stale.add(row)
        else:
            self._look(row)

    def _look(self, row: int) -> None:
        """Look at one node again."""
        code, nodes = self.code_of(row), self.session.nodes
        # without room to come, idle room is all the room there is
        idle = code == 0 and (not (self._room and nodes.has_future) or nodes.fits_idle(row, self.task))
        self.codes[row] = code
        self.idle_count += idle - bool(self.idle[row])
        self.idle[row] = idle
        self.scoring.update(row, idle)

    def code_of(self, row: int) -> int:
        """Return the reason number of one node, asked now."""
        searches = self.session.searches
        if searches.hard_shard is not None and not searches.hard_shard[row]:
            return searches.outside_shard
        lacking = self.session.nodes.insufficient(row, self.task) if self._room else -1
        return searches.insufficient(lacking) if lacking >= 0 else self.filters.reject_one(row)

    def filter_code(self, row: int) -> int:
        """Return the reason number of one node by the filters alone, without the question of room."""
        return self.filters.reject_one(row)

    # --- answers -----------------------------------------------------------------------------------------------------

    def choose(self) -> tuple[int, IntArray]:
        """Return the best node's row (-1 without one) and the reason numbers of the nodes that were looked at and
        refused.

        Nodes with idle room go before nodes with room to come, and within both, nodes of one's own shard before others.
        """
        searches = self.session.searches
        if not searches.samples and searches.soft_shard is None:
            node = self.scoring.best(self.idle) if self.idle_count > 1 else self._best_of_few()
            return node if node >= 0 else self.best_of((self.codes == 0) & ~self.idle), self.codes
        taken, codes = self.codes == 0, self.codes
        if searches.samples:
            taken, seen = self.look(taken)
            # Volcano has fit errors only for nodes that it looked at (PredicateNodes).
            codes = np.where(seen, codes, np.int32(0))
            if self._cache is not None:
                # The first reason of a node stays, as in Volcano's cache.
                known = self._cache.seen.get(self.task.role, codes)
                self._cache.seen[self.task.role] = np.where(known != 0, known, codes)
        for idle_or_not in (taken & self.idle, taken & ~self.idle):
            for group in searches.by_shard(idle_or_not):
                node = self.best_of(group)
                if node >= 0:
                    return node, codes
        return -1, codes

    def look(self, feasible: BoolArray) -> tuple[BoolArray, BoolArray]:
        """Return which feasible nodes are taken and which were looked at, where not all of them are."""
        return self.session.searches.look(feasible)

    def choose_within(self, rows: npt.NDArray[np.intp]) -> tuple[int, IntArray]:
        """Choose among some rows only."""
        inside = np.zeros(len(self.codes), dtype=np.bool_)
        inside[rows] = self.codes[rows] == 0
        searches = self.session.searches
        for idle_or_not in (inside & self.idle, inside & ~self.idle):
            for group in searches.by_shard(idle_or_not):
                node = self.best_of(group)
                if node >= 0:
                    return node, self.codes
        return -1, self.codes

    def _best_of_few(self) -> int:
        """Return the best node where at most one has idle room."""
        if self.idle_count:
            return int(self.idle.argmax())
        return self.best_of(self.codes == 0)

    def best_of(self, group: BoolArray) -> int:
        """Return the best of a group of candidates without kept scores; -1 when it is empty or has no scores; a single
        candidate is not scored.
        """
        candidates = group.nonzero()[0]
        # A single node is taken unscored, as in prioritizeNodes (allocate.go).
        if len(candidates) <= 1:
            return int(candidates[0]) if len(candidates) else -1
        totals = self.scoring.totals(candidates)
        best = totals.argmax()
        return -1 if totals[best] == -np.inf else int(candidates[best])
