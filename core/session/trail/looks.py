"""A search that tells how it looked, and looks made of searches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.core.resources.amounts import MIN_RESOURCE
from pumice.core.session.points.nodes import Volatility
from pumice.core.session.search.node_search import ALL, NodeSearch
from pumice.core.session.trail.records import FilterAnswer, Look

if TYPE_CHECKING:
    import numpy.typing as npt

    from pumice.core.objects.pod import Task
    from pumice.core.session.points.batches import BoolArray, FloatArray
    from pumice.core.session.points.nodes import NodeCheck
    from pumice.core.session.reasons import FitFailure, IntArray
    from pumice.core.session.session import Session


class HeardSearch(NodeSearch):
    """A NodeSearch whose choices are told to the session's trail."""

    _group: BoolArray | None = None  # the candidates among whom the last choice was made
    _seen: BoolArray | None = None  # who was looked at for it; None: all

    def choose(self) -> tuple[int, IntArray]:
        """The best node's row (-1: none) and the reason numbers of the nodes that were looked at and refused."""
        self._group = self._seen = None
        node, codes = super().choose()
        self.session.trail.looked(self, self.idle if self._group is None else self._group, node, self._seen)
        return node, codes

    def look(self, feasible: BoolArray) -> tuple[BoolArray, BoolArray]:
        """Which feasible nodes are taken and which were looked at, where not all of them are."""
        taken, self._seen = super().look(feasible)
        return taken, self._seen

    def choose_within(self, rows: npt.NDArray[np.intp]) -> tuple[int, IntArray]:
        """Choose among some rows only."""
        node, codes = super().choose_within(rows)
        assert self._group is not None
        self.session.trail.looked(self, self._group, node)
        return node, codes

    def best_of(self, group: BoolArray) -> int:
        """The best of a group of candidates other than the one whose scores are kept; -1 when it is empty or nobody can
        score it, a single one unscored.
        """
        self._group = group
        return super().best_of(group)

    def answers(self) -> list[FilterAnswer]:
        """What each filter says of each node by itself: room first, one answer a resource, then filter by filter."""
        found = list[FilterAnswer]()
        own = self.session.searches.hard_shard
        if own is not None:
            found.append(FilterAnswer("shard", np.where(own, 0, self.session.searches.outside_shard).astype(np.int32)))
        lacks = self.lacks(self.session.nodes.future)
        for dimension, _ in self.template.items if self._room else ():
            code = np.int32(self.session.searches.insufficient(dimension))
            found.append(FilterAnswer("resources", lacks[dimension] * code))
        for plugin, checks in self.filters.by_plugin:
            found += [FilterAnswer(plugin, self._answer(plugin, check)) for check in checks]
        return [answer for answer in found if answer.codes.any()]

    def _answer(self, plugin: str, check: NodeCheck) -> IntArray:
        """One filter's; of one whose answers cost questions, those that were given."""
        if check.volatility is not Volatility.MOMENT:
            return check.reject(ALL).copy()
        said = [code if _has_said(code, plugin, self) else 0 for code in self.codes.tolist()]
        return np.array(said, dtype=np.int32)


def _has_said(code: int, plugin: str, search: HeardSearch) -> bool:
    return any(reason.plugin == plugin for reason in search.session.reasons.reasons(code))


def look_of(
    search: HeardSearch, group: BoolArray, node: int, seen: BoolArray | None = None, *, every_filter: bool
) -> Look:
    """What a search sees now. `group`: the candidates; `node`: the row that was chosen among them, or -1; `seen`: who
    was looked at, None for all.
    """
    session, fitting = search.session, np.flatnonzero(group)
    return Look(
        session.action,
        search.task.key,
        session.nodes.names,
        session.reasons,
        search.codes.copy() if seen is None else np.where(seen, search.codes, np.int32(0)),
        fitting,
        chosen=session.nodes.names[node] if node >= 0 else "",
        nominated=search.task.nominated,
        every=search.answers() if every_filter else [],
        scores=_scores(search, fitting),
        lacking=_lacking(session, search.task),
        seen=seen,
    )


def look_of_nobody(session: Session, task: Task, failure: FitFailure) -> Look:
    """No node was looked at: none can do."""
    codes = np.full(session.nodes.count, session.reasons.intern(failure.reason), dtype=np.int32)
    nobody = np.zeros(0, dtype=np.intp)
    look = Look(session.action, task.key, session.nodes.names, session.reasons, codes, nobody)
    look.nominated, look.every = task.nominated, [FilterAnswer(failure.reason.plugin, codes)]
    return look


def look_at_one(session: Session, task: Task, row: int) -> Look:
    """Only the node that room had been made on was looked at, and taken."""
    name = session.nodes.names[row]
    codes, fitting = np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.intp)
    return Look(session.action, task.key, [name], session.reasons, codes, fitting, chosen=name, nominated=name)


def _scores(search: NodeSearch, fitting: npt.NDArray[np.intp]) -> dict[str, FloatArray]:
    if len(fitting) < 2:  # a single one is taken without: to score it would ask and move what no cycle does
        return {}
    found: dict[str, FloatArray] = {}
    for plugin, score in search.scoring.parts(fitting):
        found[plugin] = found[plugin] + score if plugin in found else np.broadcast_to(score, fitting.shape)
    return found


def _lacking(session: Session, task: Task) -> dict[str, tuple[float, float]]:
    future = session.nodes.future
    most = [(dimension, asked, float(future[dimension].max(initial=0.0))) for dimension, asked in task.template.items]
    return {
        session.dims.names[dimension]: (asked, amount)
        for dimension, asked, amount in most
        if asked - amount >= MIN_RESOURCE
    }
