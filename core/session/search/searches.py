# SPDX-License-Identifier: Apache-2.0
"""The searches of a session: one per template, with the nodes that they may look at, and how many are enough."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from pumice.core.cached import cached
from pumice.core.errors import KeptColumnsError
from pumice.core.session.points.nodes import ReadsLabelsInPlay, labels_of
from pumice.core.session.reasons import Code, Reason
from pumice.core.session.search.node_search import ErrorCache, NodeSearch

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from pumice.config.schema import SchedulerConfig
    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.session.carry import Carry, SessionOptions
    from pumice.core.session.points.all_points import Points
    from pumice.core.session.points.nodes import NodeFilter, NodeScorer
    from pumice.core.session.points.point import Point
    from pumice.core.session.session import Session

# --- Sampling
# Source: Volcano `CalculateNumOfFeasibleNodesToFind`, `PredicateNodes`.


@dataclass(frozen=True, slots=True)
class Sampling:
    """Volcano's three options of sampling. `percentage` 0: adaptive, 50 minus a point per 125 nodes; 100 looks at
    all.
    """

    percentage: int
    minimum_nodes: int
    minimum_percentage: int

    def applies(self, nodes: int) -> bool:
        """Return whether a search among so many nodes may end early."""
        return self.enough(nodes) < nodes

    def enough(self, nodes: int) -> int:
        """Return how many feasible nodes end a search among so many."""
        if nodes <= self.minimum_nodes or self.percentage >= 100:
            return nodes
        percentage = self.percentage
        if percentage <= 0:
            percentage = max(50 - nodes // 125, self.minimum_percentage)
        return max(nodes * percentage // 100, self.minimum_nodes)


def look(
    sampling: Sampling, carry: Carry, arrival: npt.NDArray[np.intp], feasible: BoolArray
) -> tuple[BoolArray, BoolArray]:
    """Return which feasible nodes are taken and which were looked at at all, starting where the last search ended.

    Looking stops at the first feasible node too many; that one counts as looked at and is not used.
    """
    count = len(arrival)
    enough = sampling.enough(count)
    # Volcano starts at a process-wide index, which goes on where the last search ended; here it lives in the carry.
    order = np.roll(arrival, -(carry.start % count))
    found = np.cumsum(feasible[order])
    beyond = int(np.searchsorted(found, enough + 1))
    looked_at = min(beyond + 1, count)
    carry.start = (carry.start + looked_at) % count
    seen = np.zeros(count, dtype=np.bool_)
    seen[order[:looked_at]] = True
    taken = np.zeros(count, dtype=np.bool_)
    taken[order[:beyond]] = feasible[order[:beyond]]
    return taken, seen


BoolArray = npt.NDArray[np.bool_]
KEPT_ROWS = 500_000  # rows of all searches that are kept: the roles of a gang, and jobs alike, interleave
FEWEST, MOST = 16, 128  # searches
LASTING_ROWS = 100_000  # rows of those that are kept for a later session: a dozen numbers of each
F = TypeVar("F", "NodeFilter", "NodeScorer")
OUTSIDE_SHARD = Reason("shard", Code.ERROR, "node isn't in scheduler node shard")


@lru_cache(maxsize=256)
def lack_of(resource: str) -> Reason:
    """Return why a node without room for a task's request of a resource is refused."""
    return Reason("resources", Code.UNSCHEDULABLE, f"Insufficient {resource}")


class Reading:
    """The facts that some filters and scorers read of the tasks of a template, or of plain templates (None)."""

    __slots__ = ("_kinds", "_labels", "_shares", "by_labels")

    def __init__(self, asked: Iterable[NodeFilter | NodeScorer], template: PodTemplate | None) -> None:
        reads = [each.reads for each in asked]
        self._labels = any(each.labels for each in reads)
        self._kinds = [each.kind for each in reads if each.kind is not None]
        # two tasks of equal labels share their answers, whatever else differs
        self.by_labels = all(each.kind is None or each.of_labels for each in reads)
        self._shares = template is None or not any(each.anew is not None and each.anew(template) for each in reads)

    def of(self, task: Task) -> Hashable | None:
        """Return the facts by which two tasks share their answers; None when they never do."""
        if not self._shares:
            return None
        beside = tuple([kind(task) for kind in self._kinds]) if self._kinds else ()
        return (*beside, labels_of(task)) if self._labels else beside


class Readings:
    """The readings of the tasks of a template: some filters and scorers concern only some templates.

    `always`: what those read that concern every template.
    """

    def __init__(self, points: Points) -> None:
        self._points = points
        self._plain: dict[str, Sequence[tuple[str, Sequence[Any]]]] = {}
        self._asked: list[NodeFilter | NodeScorer] = [
            *[each for filters in points.predicate.rules for each in filters],
            *[each for point in (points.node_order, points.batch_node_order) for some in point.rules for each in some],
        ]
        self.always = Reading([each for each in self._asked if each.reads.concerns is None], None)
        self.of_company = [each for each in self._asked if isinstance(each, ReadsLabelsInPlay)]
        self._found: dict[int, Reading] = {}

    def of(self, template: PodTemplate) -> Reading:
        """Return the facts for tasks of this template, which is not a plain one."""
        found = self._found.get(template.number)
        if found is None:
            concerns = [(each, each.reads.concerns) for each in self._asked]
            concerned = [each for each, asks in concerns if asks is None or asks(template)]
            found = self._found[template.number] = Reading(concerned, template)
        return found

    def plain(self, point: Point[Sequence[F]]) -> Sequence[tuple[str, Sequence[F]]]:
        """Return a point's filters or scorers that concern every template, by plugin."""
        found = self._plain.get(point.name)
        if found is None:
            found = [(name, [each for each in some if each.reads.concerns is None]) for name, some in point.named]
            self._plain[point.name] = found
        return found


class Searches:
    """All searches. `soft_shard`, `hard_shard`: mask of this scheduler's own nodes under that mode of sharding, else
    None.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._search = session.trail.search
        self.sampling = _sampling(session.config, session.options)
        self.samples = self.sampling.applies(session.nodes.count)
        self.soft_shard = self._shard("soft")
        self.hard_shard = self._shard("hard")
        self.outside_shard = session.reasons.intern(OUTSIDE_SHARD)
        self._insufficient: dict[int, int] = {}
        self._kept: dict[Any, NodeSearch] = {}
        self._latest: Any = None  # kind
        self._has_older = False  # some are of an earlier session, and it was not asked yet whether they hold
        self._limit = min(max(KEPT_ROWS // max(session.nodes.count, 1), FEWEST), MOST)
        self.current: Task | None = None  # the task that is being placed

    def _shard(self, mode: str) -> BoolArray | None:
        shard = self._session.options.shard
        if shard is None or shard[0] != mode:
            return None
        return np.array([name in shard[1] for name in self._session.nodes.names], dtype=np.bool_)

    def insufficient(self, dimension: int) -> int:
        """Return the reason number of "Insufficient <resource>"."""
        code = self._insufficient.get(dimension)
        if code is None:
            reason = lack_of(self._session.dims.names[dimension])
            code = self._insufficient[dimension] = self._session.reasons.intern(reason)
        return code

    def look(self, feasible: BoolArray) -> tuple[BoolArray, BoolArray]:
        """Return which feasible nodes are taken and which were looked at, where not all of them are (`samples`)."""
        return look(self.sampling, self._session.carry, self._session.nodes.arrival, feasible)

    def by_shard(self, group: BoolArray) -> list[BoolArray]:
        """Return the shard's own nodes under soft sharding, then the others'; otherwise the group as it is."""
        return [group] if self.soft_shard is None else [group & self.soft_shard, group & ~self.soft_shard]

    @cached
    def readings(self) -> Readings:
        """Return the facts that the session's filters and scorers read; all have registered by the first search."""
        return Readings(self._session.points)

    def asked(self, point: Point[Sequence[F]], template: PodTemplate) -> Sequence[tuple[str, Sequence[F]]]:
        """Return a point's filters or scorers, by plugin, without those that a plain template does not concern."""
        return self.readings.plain(point) if template.plain else point.named

    def get(self, task: Task, *, room: bool) -> NodeSearch:
        """Return the search of the task's template, prepared. Raises FitFailure when no node fits."""
        self.current = task
        if self._has_older:
            self._keep_valid(task, room=room)
        kind = self.kind(task, room=room)
        if kind is None:
            return self._search(self._session, task, room=room)
        search = self._kept.get(kind)
        # A kept search was prepared for an earlier moment: the part of PreFilter that placements change is asked again.
        if search is not None and search.filters.pre_filters:
            for pre_filter in search.filters.pre_filters:
                pre_filter()
        if kind != self._latest:  # tasks alike come one after the other
            search = self._renew(kind, search or self._search(self._session, task, room=room))
        assert search is not None
        search.task = task
        return search

    def _demand_equal(self, search: NodeSearch, task: Task, *, room: bool) -> None:
        """Raise KeptColumnsError where a search differs from a new one: a node has changed, and was not named."""
        search.task = task
        search.refresh(ErrorCache(enabled=False))
        fresh = NodeSearch(self._session, task, room=room)
        rows = (fresh.codes == 0).nonzero()[0]
        scores = fresh.scoring.totals(rows), search.scoring.totals(rows)
        pairs = (fresh.codes, search.codes), (fresh.idle, search.idle), scores
        if not all(np.array_equal(one, other) for one, other in pairs):
            raise KeptColumnsError(f"the search for {task.key} differs from a new one")

    def _renew(self, kind: object, search: NodeSearch) -> NodeSearch:
        """Drop the search that was used longest ago."""
        self._kept.pop(kind, None)
        self._kept[kind] = search
        self._latest = kind
        if len(self._kept) > self._limit:
            # Dictionaries keep the order of insertion: the first was used longest ago.
            del self._kept[next(iter(self._kept))]
        return search

    def forget(self) -> None:
        """Forget all searches."""
        for search in self._kept.values():
            search.forget_cache()
        self._kept.clear()
        self._latest = self.current = None

    def let_go(self) -> None:
        """End the session; those of the newest searches that last are kept for the next one on the same columns: it
        looks only at the nodes that have changed since.
        """
        lasting = {kind: search for kind, search in self._kept.items() if search.lasts}
        self.forget()
        if any(each.in_play for each in self.readings.of_company):
            return
        most = max(LASTING_ROWS // max(self._session.nodes.count, 1), 1)
        for kind in [*lasting][-min(most, self._limit) :]:
            self._kept[kind] = lasting[kind]

    def renew(self) -> None:
        """Begin another session on the same columns."""
        self._has_older = bool(self._kept)
        if self._has_older:
            for each in self.readings.of_company:
                each.in_play = False

    def _keep_valid(self, task: Task, *, room: bool) -> None:
        """Drop the older searches when a pod has come that others are to be near to, or apart from."""
        self._has_older = False
        if any(each.is_concerned(self._session) for each in self.readings.of_company):
            self._kept.clear()
        lease, search = self._session.snapshot.lease, self._kept.get(self.kind(task, room=room))
        if lease is not None and lease.is_checked and search is not None:
            self._demand_equal(search, task, room=room)

    def kind(self, task: Task, *, room: bool) -> Any:
        """Return the facts by which two tasks share a search; None when they never do."""
        template, readings = task.template, self.readings
        shared = (readings.always if template.plain else readings.of(template)).of(task)
        # the error cache of one role says nothing of another
        return None if shared is None else (room, template.number, task.role, shared)


def _sampling(config: SchedulerConfig, options: SessionOptions) -> Sampling:
    pumice = config.pumice
    given = (options.percentage_of_nodes, options.minimum_feasible_nodes, options.minimum_percentage)
    configured = (
        pumice.percentage_of_nodes_to_find,
        pumice.minimum_feasible_nodes,
        pumice.minimum_percentage_of_nodes_to_find,
    )
    return Sampling(*(c if g is None else g for g, c in zip(given, configured, strict=True)))
