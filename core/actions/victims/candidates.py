"""Which nodes a preemptor may look at: all that eviction could help, as far as sampling goes, one's own shard first.

Source: Volcano `FilterOutUnschedulableAndUnresolvableNodesForTask`, `PredicateForPreemptAction`
(`framework/session.go`), `PredicateNodes`, `GetPredicatedNodeByShard` (`pkg/scheduler/util`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pumice.core.session.search.node_search import ErrorCache
from pumice.core.session.trail.records import Ending

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.search.node_search import NodeSearch
    from pumice.core.session.session import Session

BoolArray = npt.NDArray[np.bool_]
RowArray = npt.NDArray[np.intp]
NO_CACHE = ErrorCache(enabled=False)


class CandidateNodes:
    """Candidate nodes by task, under one life of Volcano's error cache.

    A node that was refused for a role of a job stays refused (never for tasks without a role). A plain Unschedulable
    refuses nobody: evictions may cure it.
    """

    def __init__(self, session: Session, *, cache_errors: bool) -> None:
        self._session = session
        self._cache_errors = cache_errors
        self._refused: dict[tuple[str, str], BoolArray] = {}

    def find(self, task: Task, search: NodeSearch) -> list[RowArray]:
        """Rows in name order: one group, or under soft sharding one's own nodes and then the others'."""
        return [np.flatnonzero(group) for group in self._session.searches.by_shard(self.feasible(task, search))]

    def feasible(
        self, task: Task, search: NodeSearch, inside: BoolArray | None = None, lacking: BoolArray | None = None
    ) -> BoolArray:
        """The mask of the nodes taken: only those `inside`, and none that is `lacking`, when these are given."""
        session = self._session
        search.refresh(NO_CACHE)
        refused = session.reasons.are_terminal(search.codes)
        if lacking is not None:
            refused |= lacking
        remembered = self._refused.get((task.job, task.role)) if self._cache_errors and task.role else None
        if remembered is not None:
            refused |= remembered
        listed = self._listed(task)
        if inside is not None:
            listed = listed[inside[listed]] if len(listed) else np.flatnonzero(inside)
        taken, seen = self._look(listed, ~refused)
        if self._cache_errors and task.role:
            self._refused[task.job, task.role] = refused & seen
        session.trail.looked(search, taken, seen=seen if session.searches.samples else None)
        if not taken.any():
            session.trail.task_ended(task, Ending.NO_CANDIDATES)
        return taken

    def _listed(self, task: Task) -> RowArray:
        """Node rows in the order in which they are looked at: without those that were hopeless already in allocate."""
        session = self._session
        job = session.job_of(task)
        errors = None if job is None else session.fit.of(job, task)
        if errors is not None and errors.codes is not None:
            hopeless = errors.unresolvable_rows()
            if hopeless.any():
                return np.flatnonzero(~hopeless)
        return session.nodes.arrival

    def _look(self, listed: RowArray, feasible: BoolArray) -> tuple[BoolArray, BoolArray]:
        """Which nodes are taken and which were looked at; looking stops at the first feasible node too many."""
        sampling, carry, count = self._session.searches.sampling, self._session.carry, len(listed)
        taken, seen = np.zeros_like(feasible), np.zeros_like(feasible)
        if not count:
            return taken, seen
        order = (
            listed
            if count == len(feasible) and not sampling.applies(count)
            else np.roll(listed, -(carry.start % count))
        )
        beyond = looked_at = count
        if sampling.applies(count):
            beyond = int(np.searchsorted(np.cumsum(feasible[order]), sampling.enough(count) + 1))
            looked_at = min(beyond + 1, count)
        carry.start = (carry.start + looked_at) % count
        seen[order[:looked_at]] = True
        taken[order[:beyond]] = feasible[order[:beyond]]
        return taken, seen
