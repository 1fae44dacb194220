"""The searches a session keeps: one per template, which nodes they may look at, and how many are enough."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from core.session.reasons import Code, Reason
from core.session.sampling import Sampling, look
from core.session.search import NodeSearch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from config.schema import SchedulerConfig
    from core.objects.pod import Task
    from core.objects.pod_template import PodTemplate
    from core.session.carry import SessionOptions
    from core.session.points import Points
    from core.session.session import Session

BoolArray = npt.NDArray[np.bool_]
KEPT_ROWS = 500_000  # rows of all searches that are kept: the roles of a gang, and jobs alike, interleave
FEWEST, MOST = 16, 128  # searches
POINTS = ("Predicate", "NodeOrder", "BatchNodeOrder")
OUTSIDE_SHARD = Reason("shard", Code.ERROR, "node isn't in scheduler node shard")


@lru_cache(maxsize=256)
def lack_of(resource: str) -> Reason:
    """Why a node without room for a task's request of a resource is refused."""
    return Reason("resources", Code.UNSCHEDULABLE, f"Insufficient {resource}")


@dataclass(frozen=True, slots=True)
class Reading:
    """Filters and scorers that may read more of a task than its template: what was placed, or the task's labels. One
    may find out when it meets the first task with constraints, so they are asked every time. `kinds`: what some read
    beside.
    """

    placements: list[Any]
    labels: list[Any]
    kinds: list[Callable[[Task], Any]]


def _reading(asked: list[Any]) -> Reading:
    return Reading(
        placements=[f for f in asked if hasattr(f, "watches_placements")],
        # what stands in the class stays as it is
        labels=[f for f in asked if f.reads_labels or "reads_labels" in getattr(f, "__dict__", ())],
        kinds=[f.kind for f in asked if hasattr(f, "kind")],
    )


class Readings:
    """What is read of the tasks of a template: there are filters and scorers that concern only some templates.

    `plain`: those of each point, by plugin, that concern plain templates; `always`: what these read.
    """

    def __init__(self, points: Points) -> None:
        self._points = points
        self.plain = {
            point: [[f for f in group if not hasattr(f, "concerns")] for group in points.flat(point)]
            for point in POINTS
        }
        self.always = _reading([f for groups in self.plain.values() for group in groups for f in group])
        self._found: dict[int, Reading] = {}

    def of(self, template: PodTemplate) -> Reading:
        """Of tasks of this template, which is not a plain one."""
        found = self._found.get(template.number)
        return found if found is not None else self._find(template)

    def _find(self, template: PodTemplate) -> Reading:
        asked = [f for point in POINTS for group in self._points.flat(point) for f in group]
        concerned = [f for f in asked if not hasattr(f, "concerns") or f.concerns(template)]
        found = self._found[template.number] = _reading(concerned)
        return found


class Searches:
    """`soft_shard`, `hard_shard`: mask of this scheduler's own nodes under that mode of sharding, else None."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.sampling = _sampling(session.config, session.options)
        self.samples = self.sampling.applies(session.nodes.count)
        self.soft_shard = self._shard("soft")
        self.hard_shard = self._shard("hard")
        self.outside_shard = session.reasons.intern(OUTSIDE_SHARD)
        self._insufficient: dict[int, int] = {}
        self._kept: dict[Any, NodeSearch] = {}
        self._latest: Any = None  # kind
        self._limit = min(max(KEPT_ROWS // max(session.nodes.count, 1), FEWEST), MOST)
        self.current: Task | None = None  # the task that is being placed
        # For what is thrown away at once: fresh memory costs more than the arithmetic on it.
        self.scratch = np.empty(session.nodes.count)

    def _shard(self, mode: str) -> BoolArray | None:
        shard = self._session.options.shard
        if shard is None or shard[0] != mode:
            return None
        return np.array([name in shard[1] for name in self._session.nodes.names], dtype=np.bool_)

    def insufficient(self, dimension: int) -> int:
        """The reason number of "Insufficient <resource>"."""
        code = self._insufficient.get(dimension)
        if code is None:
            reason = lack_of(self._session.dims.names[dimension])
            code = self._insufficient[dimension] = self._session.reasons.intern(reason)
        return code

    def look(self, feasible: BoolArray) -> tuple[BoolArray, BoolArray]:
        """Which feasible nodes are taken and which were looked at, where not all of them are (`samples`)."""
        return look(self.sampling, self._session.carry, self._session.nodes.arrival, feasible)

    def by_shard(self, group: BoolArray) -> list[BoolArray]:
        """Under soft sharding one's own nodes, then the others'; else the group as it is."""
        return [group] if self.soft_shard is None else [group & self.soft_shard, group & ~self.soft_shard]

    @cached_property
    def readings(self) -> Readings:
        """What the session's filters and scorers read; they have registered by the time somebody asks."""
        return Readings(self._session.points)

    def asked(self, point: str, template: PodTemplate) -> Sequence[Any]:
        """A point's filters or scorers, by plugin, but for those that a plain template does not concern."""
        return self.readings.plain[point] if template.plain else self._session.points.flat(point)

    def get(self, task: Task, *, room: bool) -> NodeSearch:
        """The search of the task's template, prepared; raises FitFailure when no node can do."""
        self.current = task
        kind = self._kind(task, room)
        if kind is None:
            return NodeSearch(self._session, task, room=room)
        search = self._kept.get(kind)
        if kind != self._latest:  # tasks alike come one after the other
            search = self._renew(kind, search or NodeSearch(self._session, task, room=room))
        assert search is not None
        search.task = task
        return search

    def _renew(self, kind: Any, search: NodeSearch) -> NodeSearch:
        """Last used, last out."""
        self._kept.pop(kind, None)
        self._kept[kind] = search
        self._latest = kind
        if len(self._kept) > self._limit:
            del self._kept[next(iter(self._kept))]
        return search

    def forget(self) -> None:
        """No search is asked for again."""
        for search in self._kept.values():
            search.forget_cache()
        self._kept.clear()
        self._latest = None

    def _kind(self, task: Task, room: bool) -> Any:
        """What two tasks must share to share a search; None: nothing suffices."""
        template, readings = task.template, self.readings
        reading = readings.always if template.plain else readings.of(template)
        for each in reading.placements:
            if each.watches_placements:
                return None  # PreFilter itself reads what was placed: prepare anew for every task
        beside = tuple([kind(task) for kind in reading.kinds]) if reading.kinds else ()
        for each in reading.labels:
            if each.reads_labels:
                return room, template.number, task.role, beside, task.namespace, tuple(sorted(task.labels.items()))
        return room, template.number, task.role, beside  # the error cache of one role says nothing of another


def _sampling(config: SchedulerConfig, options: SessionOptions) -> Sampling:
    pumice = config.pumice
    given = (options.percentage_of_nodes, options.minimum_feasible_nodes, options.minimum_percentage)
    configured = (
        pumice.percentage_of_nodes_to_find,
        pumice.minimum_feasible_nodes,
        pumice.minimum_percentage_of_nodes_to_find,
    )
    return Sampling(*(c if g is None else g for g, c in zip(given, configured, strict=True)))
